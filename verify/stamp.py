"""RFC 3161 time stamps: whether a token is over the signature of a receipt (RFC 9921, `3161-ctt`). Who made the token is for
`openssl ts -verify` to say."""

import re

from limits import MAX_STAMP, Refused
from merkle import sha256

SEQUENCE, INTEGER, OCTETS, OID, TIME = 0x30, 0x02, 0x04, 0x06, 0x18
SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
TST_INFO = bytes.fromhex("2a864886f70d0109100104")
SHA256 = bytes.fromhex("608648016503040201")


def items(data):
    """The tags and values that follow each other in DER."""
    found, at = [], 0
    while at < len(data):
        if at + 2 > len(data):
            raise Refused("stamp", "cut short")
        tag, length, at = data[at], data[at + 1], at + 2
        if length in (129, 130):
            size, least = length - 128, 128 if length == 129 else 256
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


def inside(found, at, *tags):
    """What is in the value at a place, which has one of these tags."""
    if len(found) <= at or found[at][0] not in tags:
        raise Refused("stamp", "not a time stamp")
    return found[at][1]


def check(token, signature):
    """That a token is over a signature, as COSE writes it: a byte string of 64 bytes."""
    if len(token) > MAX_STAMP:
        raise Refused("limits", "the time stamp is too long")
    whole = items(token)
    content = items(inside(whole, 0, SEQUENCE))
    if inside(content, 0, OID) != SIGNED_DATA:
        raise Refused("stamp", "not a time stamp")
    signed = items(inside(items(inside(content, 1, 0xA0)), 0, SEQUENCE))
    wrapped = items(inside(signed, 2, SEQUENCE))
    if inside(wrapped, 0, OID) != TST_INFO:
        raise Refused("stamp", "not a time stamp")
    text = items(inside(items(inside(wrapped, 1, 0xA0)), 0, OCTETS))
    info = items(inside(text, 0, SEQUENCE))
    imprint = items(inside(info, 2, SEQUENCE))
    algorithm = items(inside(imprint, 0, SEQUENCE))
    sizes = (len(whole), len(content), len(wrapped), len(text), len(imprint))
    if sizes != (1, 2, 2, 1, 2) or len(algorithm) > 2:
        raise Refused("stamp", "not a time stamp")
    if not re.fullmatch(rb"[0-9]{14}(\.[0-9]+)?Z", inside(info, 4, TIME)):
        raise Refused("stamp", "not a time")
    if inside(algorithm, 0, OID) != SHA256:
        raise Refused("stamp", "its hash is not SHA-256")
    if inside(imprint, 1, OCTETS) != sha256(b"\x58\x40", signature):
        raise Refused("stamp", "it is of something else than this receipt")
