"""The shape of a receipt, as docs/receipt.schema.json has it."""

import datetime
import re

from keys import control
from limits import EXACT, MAX_LIST, Refused


def shape(good, why):
    def check(value):
        if not good(value):
            raise Refused("schema", why)

    return check


def text_of(most):
    return shape(
        lambda v: isinstance(v, str) and 1 <= len(v.encode()) <= most and not any(map(control, v)), "not a short text"
    )


def hexadecimal(digits):
    pattern = re.compile(f"[0-9a-f]{{{digits}}}")
    return shape(lambda v: isinstance(v, str) and pattern.fullmatch(v), f"not {digits} hexadecimal digits")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= EXACT


def is_time(value):
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value, re.ASCII):
        return False
    # Python's calendar starts with the year 1; the year 0 is a leap year like 2000.
    year = "2000" if value.startswith("0000") else value[:4]
    try:
        datetime.datetime.strptime(year + value[4:-1], "%Y-%m-%dT%H:%M:%S.%f")
    except ValueError:
        return False
    return value[17:19] < "60"


def optional(check):
    return lambda value: None if value is None else check(value)


def list_of(check):
    def checks(value):
        shape(lambda v: isinstance(v, list), "not a list")(value)
        if len(value) > MAX_LIST:
            raise Refused("limits", "a list is too long")
        for item in value:
            check(item)

    return checks


def record(**fields):
    def checks(value):
        shape(lambda v: isinstance(v, dict) and v.keys() == fields.keys(), "fields are missing or unknown")(value)
        for name, check in fields.items():
            check(value[name])

    return checks


def one_of(*words):
    return shape(lambda v: isinstance(v, str) and v in words, "not one of the words")


def tagged(value):
    shape(lambda v: isinstance(v, dict) and isinstance(v.get("kind"), str) and v["kind"] in CLAIMS, "no claim")(value)
    CLAIMS[value["kind"]](value)


def request(value):
    shape(lambda v: isinstance(v, dict) and len(v) == 1, "not a request id")(value)
    (record(given=TEXT) if "given" in value else record(committed=HASH))(value)


def settings(value):
    shape(lambda v: isinstance(v, dict), "not an object")(value)
    if len(value) > MAX_LIST:
        raise Refused("limits", "too many settings")


TEXT = text_of(1024)
HASH = hexadecimal(64)
COUNT = shape(is_count, "not a count")
TIME = shape(is_time, "not a time")
BOOL = shape(lambda v: isinstance(v, bool), "not true or false")
SIZE = shape(lambda v: is_number(v) and v >= 0, "not a number, or negative")
ANY = shape(is_number, "not a number")
SEED = shape(lambda v: isinstance(v, str) and re.fullmatch("0|[1-9][0-9]{0,19}", v) and int(v) < 2**64, "no seed")
CODE = shape(lambda v: isinstance(v, str) and re.fullmatch("[a-z][a-z0-9_]{0,63}", v, re.ASCII), "not a code")
STATE = record(root=HASH, count=COUNT)
CLAIMS = {
    "exact": record(kind=TEXT, tolerance=SIZE),
    "certified": record(
        kind=TEXT, epsilon=SIZE, delta=SIZE, noise=SIZE, unit=TEXT, budget=SIZE, used=SIZE, left=SIZE, retrained=BOOL,
        adaptive=BOOL, assumptions=list_of(TEXT),
    ),
    "approximate": record(kind=TEXT),
}  # fmt: skip
AUDIT = record(test=TEXT, passed=optional(BOOL), value=optional(ANY), threshold=optional(ANY), trials=optional(COUNT))
UNCOVERED = record(code=CODE, detail=TEXT)
COPY = record(
    number=COUNT, kind=one_of("version", "export"), state=one_of("live", "withdrawn"), parameters=HASH, made_at=TIME,
    withdrawn_at=optional(TIME),
)  # fmt: skip
CALIBRATION = record(
    epsilon=SIZE, delta=SIZE, sensitivity=optional(SIZE), source=one_of("given", "measured")
)
PRIVACY = record(
    delta=SIZE, mu=SIZE, epsilon=SIZE, total=optional(record(mu=SIZE, epsilon=SIZE, releases=COUNT)),
    since=optional(COUNT),
)  # fmt: skip
RELEASE = record(
    minimum_batch=COUNT, batch=COUNT, delay_seconds=COUNT, noise=optional(SIZE), calibration=optional(CALIBRATION),
    privacy=optional(PRIVACY), warnings=list_of(TEXT),
)  # fmt: skip
KEY_TEXT = shape(lambda v: isinstance(v, str), "not a key")
KEYS = record(by=KEY_TEXT, retired=optional(KEY_TEXT), next=KEY_TEXT, recovery=optional(KEY_TEXT))
DISTANCE = record(distance=optional(SIZE), relative=optional(SIZE), source=one_of("measured", "carried"))
RECEIPT = record(
    schema=one_of("efface.receipt/1"), id=hexadecimal(32), origin=text_of(255), sequence=COUNT,
    request_id=optional(request),
    kind=one_of("fit", "forget", "learn", "amend", "settle", "export", "withdraw", "key_rotation", "policy", "audit",
                "restore", "destroy", "refit"),
    outcome=one_of("erased", "partial", "not_found", "refused", "done"), reason=optional(TEXT),
    times=record(
        requested_at=optional(TIME), received_at=TIME, forgotten_at=optional(TIME), scrubbed_at=optional(TIME)
    ),
    subject=optional(HASH), rows=record(commitment=optional(HASH), removed=COUNT, added=COUNT),
    training_set=record(before=optional(STATE), after=STATE), parameters=record(before=optional(HASH), after=HASH),
    method=optional(TEXT), efface=TEXT, settings=settings, seed=optional(SEED), claim=optional(tagged),
    bound=optional(DISTANCE), head_bound=optional(DISTANCE),
    audit=list_of(AUDIT), not_covered=list_of(UNCOVERED), kept_beside=list_of(UNCOVERED), copies=list_of(COPY), release=optional(RELEASE),
    settles=optional(record(first=COUNT, last=COUNT)),
    keys=optional(KEYS), key_id=hexadecimal(8),
    previous=optional(record(size=COUNT, root=HASH)),
)  # fmt: skip
CONSISTENCY = record(old=COUNT, new=COUNT, path=list_of(HASH))
