"""The rules of consistency of docs/receipt.md: what the fields of a receipt must say of each other."""

from keys import Key
from limits import Refused


def is_change(receipt):
    """Whether rows of the model were exchanged, so that a new model was computed."""
    if receipt["kind"] == "forget":
        return receipt["outcome"] in ("erased", "partial")
    return receipt["kind"] in ("fit", "learn", "amend", "restore", "refit") and receipt["outcome"] == "done"


def outcome_of_kind(receipt):
    if receipt["outcome"] == "refused":
        return True
    return (receipt["kind"] == "forget") == (receipt["outcome"] != "done")


def reason_given(receipt):
    return receipt["outcome"] in ("erased", "done") or receipt["reason"] is not None


def rows_of_kind(receipt):
    removed, added = receipt["rows"]["removed"], receipt["rows"]["added"]
    if not is_change(receipt):
        return removed == added == 0
    if receipt["kind"] == "forget":
        return removed > 0 and added == 0
    if receipt["kind"] == "amend":
        return removed == added > 0
    if receipt["kind"] == "restore":
        return added == 0
    if receipt["kind"] == "refit":
        return removed > 0 and added > 0
    return removed == 0 and added > 0


def rows_commitment(receipt):
    rows = receipt["rows"]
    return (rows["commitment"] is not None) == (rows["removed"] + rows["added"] > 0)


def subject_of_forget(receipt):
    return receipt["kind"] == "forget" or receipt["subject"] is None


def starts_from_nothing(receipt):
    fit = receipt["kind"] == "fit"
    return all(fit == (receipt[what]["before"] is None) for what in ("training_set", "parameters"))


def first_is_fit(receipt):
    if receipt["sequence"] == 0:
        return receipt["kind"] == "fit" and receipt["outcome"] == "done"
    return receipt["kind"] != "fit"


def set_size(receipt):
    before, after, rows = receipt["training_set"]["before"], receipt["training_set"]["after"], receipt["rows"]
    expected = (before["count"] if before else 0) + rows["added"] - rows["removed"]
    if receipt["kind"] == "forget" and is_change(receipt):
        return after["count"] <= expected
    return after["count"] == expected


def set_root(receipt):
    before, after = receipt["training_set"]["before"], receipt["training_set"]["after"]
    return before is None or before["root"] != after["root"] or before["count"] == after["count"]


def nothing_changed(receipt):
    states = (receipt["training_set"], receipt["parameters"])
    return is_change(receipt) or all(state["before"] == state["after"] for state in states)


def claim_of_change(receipt):
    return all((receipt[what] is not None) == is_change(receipt) for what in ("method", "claim", "bound"))


def is_exact(receipt):
    return receipt["claim"] is not None and receipt["claim"]["kind"] == "exact"


def exact_has_bound(receipt):
    bound = receipt["bound"]
    return not is_exact(receipt) or (bound["distance"] is not None and bound["relative"] is not None)


def exact_within_tolerance(receipt):
    return not is_exact(receipt) or receipt["bound"]["relative"] <= receipt["claim"]["tolerance"]


def head_bound_is_no_bound(receipt):
    claim, bound = receipt["claim"], receipt["bound"]
    if receipt["head_bound"] is None:
        return True
    return (
        claim is not None and claim["kind"] == "approximate" and bound["distance"] is None and bound["relative"] is None
    )


def forgotten_time(receipt):
    return (receipt["times"]["forgotten_at"] is not None) == (receipt["rows"]["removed"] > 0)


def times_in_order(receipt):
    # Times have one form of one length, so that their texts are in the order of the times.
    times = receipt["times"]
    forgotten = times["forgotten_at"] or times["received_at"]
    return times["received_at"] <= forgotten <= (times["scrubbed_at"] or forgotten)


def scrubbed_time(receipt):
    times, scrubbed = receipt["times"], receipt["times"]["scrubbed_at"] is not None
    if receipt["kind"] == "settle":
        return scrubbed == (receipt["settles"] is not None)
    return not scrubbed or times["forgotten_at"] is not None


def settles_earlier(receipt):
    run = receipt["settles"]
    settle = receipt["kind"] == "settle" and receipt["outcome"] == "done"
    return run is None or (settle and run["first"] <= run["last"] < receipt["sequence"])


def withdrawn_time(receipt):
    for copy in receipt["copies"]:
        withdrawn = copy["withdrawn_at"]
        if (copy["state"] == "withdrawn") != (withdrawn is not None):
            return False
        if withdrawn is not None and withdrawn < copy["made_at"]:
            return False
    return True


def live_version(receipt):
    live = [copy for copy in receipt["copies"] if copy["kind"] == "version" and copy["state"] == "live"]
    return all(copy["parameters"] == receipt["parameters"]["after"] for copy in live)


def release_given(receipt):
    kind, outcome = receipt["kind"], receipt["outcome"]
    due = kind == "policy" or (kind == "export" and outcome == "done") or (kind == "forget" and is_change(receipt))
    return not due or receipt["release"] is not None


def audit_results(receipt):
    return receipt["kind"] != "audit" or receipt["outcome"] != "done" or bool(receipt["audit"])


def spent(receipt):
    return receipt["release"] and receipt["release"]["privacy"]


def spends_calibrated(receipt):
    release = receipt["release"]
    return not spent(receipt) or bool(receipt["kind"] == "export" and release["calibration"] and release["noise"])


def spends_as_promised(receipt):
    if not spent(receipt):
        return True
    found, promised = spent(receipt), receipt["release"]["calibration"]
    return found["delta"] == promised["delta"] and found["epsilon"] <= promised["epsilon"] * (1 + 1e-6)


def total_of_parts(receipt):
    total = spent(receipt) and spent(receipt)["total"]
    if not total:
        return True
    one = spent(receipt)
    return total["mu"] >= one["mu"] and total["epsilon"] >= one["epsilon"] and total["releases"] > 0


def spent_since_earlier(receipt):
    since = spent(receipt) and spent(receipt)["since"]
    return since is None or since < receipt["sequence"]


def keys_named(receipt):
    keys, kind = receipt["keys"], receipt["kind"]
    if (kind in ("fit", "key_rotation") and receipt["outcome"] == "done") != (keys is not None):
        return False
    if keys is None:
        return True
    try:
        named = [Key(text) for text in keys.values() if text is not None]
    except Refused:
        return False
    if any(key.name != receipt["origin"] for key in named) or Key(keys["by"]).id != receipt["key_id"]:
        return False
    if keys["recovery"] == keys["next"] or (kind == "fit") != (keys["retired"] is None):
        return False
    if kind == "fit":
        return keys["by"] == keys["next"]
    return keys["next"] not in (keys["retired"], keys["by"])


def head_before(receipt):
    previous, sequence = receipt["previous"], receipt["sequence"]
    return sequence == 0 if previous is None else 1 <= previous["size"] <= sequence


# In this order: the first rule that is broken is the one that is told. Later rules rely on earlier ones.
RULES = (
    outcome_of_kind, reason_given, rows_of_kind, rows_commitment, subject_of_forget, starts_from_nothing, first_is_fit,
    set_size, set_root, nothing_changed, claim_of_change, exact_has_bound, exact_within_tolerance, head_bound_is_no_bound,
    forgotten_time, times_in_order, scrubbed_time, settles_earlier, withdrawn_time, live_version, release_given, audit_results,
    spends_calibrated, spends_as_promised, total_of_parts, spent_since_earlier, keys_named, head_before,
)  # fmt: skip


def check_rules(receipt):
    for rule in RULES:
        if not rule(receipt):
            raise Refused("schema", f"the receipt contradicts itself: rule {rule.__name__}")
