"""RFC 3161 time stamps: whether a token is over the signature of a receipt (RFC 9921, `3161-ctt`). Who made the token is for
`openssl ts -verify` to say."""

import re

from limits import MAX_STAMP, Refused
from merkle import sha256

BOOLEAN, INTEGER, OCTETS, NULL, OID, TIME = 0x01, 0x02, 0x04, 0x05, 0x06, 0x18
# The context-specific tags 0 and 1 are around other values.
SEQUENCE, SET, FIRST, SECOND = 0x30, 0x31, 0xA0, 0xA1
SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
TST_INFO = bytes.fromhex("2a864886f70d0109100104")
SHA256 = bytes.fromhex("608648016503040201")


def items(data):
    """The tags and contents of the values that follow each other in DER. Tags have one byte, and lengths, in the
    shortest form, at most three."""
    found, at = [], 0
    while at < len(data):
        if at + 2 > len(data):
            raise Refused("stamp", "cut short")
        tag, length, at = data[at], data[at + 1], at + 2
        if tag & 0x1F == 0x1F:
            raise Refused("stamp", "a tag of several bytes")
        if length in (129, 130):
            size, least = length - 128, 128 if length == 129 else 256
            if at + size > len(data):
                raise Refused("stamp", "cut short")
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
            # DER knows one way to write a length, the shortest.
            if length < least:
                raise Refused("stamp", "a length that is too long")
        elif length >= 128:
            raise Refused("stamp", "a length that is not read")
        if at + length > len(data):
            raise Refused("stamp", "cut short")
        found.append((tag, data[at : at + length]))
        at += length
    return found


def fields(data, required, optional=()):
    """The contents of the values in DER: one for each of the required tags, and then some of the optional ones, in their
    order, each at most once."""
    found = items(data)
    allowed = iter(optional)
    if [tag for tag, _ in found[: len(required)]] != list(required):
        raise Refused("stamp", "not a time stamp")
    if not all(any(tag == other for other in allowed) for tag, _ in found[len(required) :]):
        raise Refused("stamp", "not a time stamp")
    return [content for _, content in found]


def check(token, signature):
    """That a token is over a signature, as COSE writes it: a byte string of 64 bytes."""
    if len(token) > MAX_STAMP:
        raise Refused("limits", "the time stamp is too long")
    (whole,) = fields(token, [SEQUENCE])
    kind, content = fields(whole, [OID, FIRST])
    (signed,) = fields(content, [SEQUENCE])
    _version, _digests, wrapped, *_ = fields(signed, [INTEGER, SET, SEQUENCE], [FIRST, SECOND, SET])
    wrapped_kind, wrapped = fields(wrapped, [OID, FIRST])
    if kind != SIGNED_DATA or wrapped_kind != TST_INFO:
        raise Refused("stamp", "not a time stamp")
    (text,) = fields(wrapped, [OCTETS])
    (info,) = fields(text, [SEQUENCE])
    # Behind the time: accuracy, ordering, nonce, the authority's name and extensions.
    behind = [SEQUENCE, BOOLEAN, INTEGER, FIRST, SECOND]
    _version, _policy, imprint, _serial, time, *_ = fields(info, [INTEGER, OID, SEQUENCE, INTEGER, TIME], behind)
    algorithm, hashed = fields(imprint, [SEQUENCE, OCTETS])
    algorithm, *parameters = fields(algorithm, [OID], [NULL])
    if not re.fullmatch(rb"[0-9]{14}(\.[0-9]+)?Z", time) or parameters not in ([], [b""]):
        raise Refused("stamp", "not a time stamp")
    if algorithm != SHA256:
        raise Refused("stamp", "its hash is not SHA-256")
    if hashed != sha256(b"\x58\x40", signature):
        raise Refused("stamp", "it is of something else than this receipt")
