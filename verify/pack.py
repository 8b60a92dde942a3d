"""Evidence packs: the one form of their ZIP files, and the signed list of digests that covers every file."""

import binascii
import re
import struct

from keys import Keys, check_name, check_signatures, count, split_note, verify_checkpoint
from limits import MAX_PACK, MAX_PACK_LIST, Refused
from merkle import sha256

TITLE, LIST = "efface pack v1", "digests.txt"
LOCAL, CENTRAL, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"


def is_file_name(name):
    """A relative path of letters, digits, `.`, `_` and `-`, whose parts are none of `.` and `..`."""
    parts = name.split("/")
    return len(name) <= 255 and all(re.fullmatch("[A-Za-z0-9._-]+", part) and part not in (".", "..") for part in parts)


def write(files):
    """The bytes of a ZIP file with these names and contents: stored, without times, attributes and comments."""
    found, directory = bytearray(), bytearray()
    for name, content in files:
        crc, length, name = binascii.crc32(content), len(content), name.encode()
        # Version 1.0, no flags, stored, midnight of 1 January 1980, CRC-32, both sizes, and no extra field.
        facts = struct.pack("<HHHHHIIIHH", 10, 0, 0, 0, 0x21, crc, length, length, len(name), 0)
        directory += CENTRAL + struct.pack("<H", 10) + facts + bytes(10) + struct.pack("<I", len(found)) + name
        found += LOCAL + facts + name + content
    counts = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(directory), len(found), 0)
    return bytes(found + directory + END + counts)


def read(data):
    """The names and contents of a ZIP file that is written in this form and no other."""
    if len(data) > MAX_PACK:
        raise Refused("limits", "the pack is too long")
    files, at = [], 0
    while data[at : at + 4] == LOCAL and at + 30 <= len(data):
        length, width = struct.unpack_from("<IH", data, at + 22)
        start = at + 30 + width
        try:
            files.append((data[at + 30 : start].decode("ascii"), data[start : start + length]))
        except UnicodeDecodeError as error:
            raise Refused("pack", "a name that is not ASCII") from error
        at = start + length
    if len(files) > 0xFFFF or write(files) != data:
        raise Refused("pack", "not written in the one way of a pack")
    return files


def read_list(text):
    """The origin and size of the log, and the digests by name, of a list; the text that is signed, and its signatures."""
    lines, body, signatures = split_note(text, MAX_PACK_LIST)
    if len(lines) < 3 or lines[0] != TITLE or count(lines[2]) is None:
        raise Refused("checkpoint", "not a list of digests")
    check_name(lines[1])
    digests, last = {}, ""
    for line in lines[3:]:
        entry = re.fullmatch("([0-9a-f]{64}) (.+)", line)
        if not entry or not is_file_name(entry.group(2)) or entry.group(2) <= last:
            raise Refused("checkpoint", "not a list of digests")
        last = entry.group(2)
        digests[last] = bytes.fromhex(entry.group(1))
    return (lines[1], count(lines[2]), digests), body, signatures


def verify_pack(data, key_text, verify_bundle):
    """Verifies all of a pack, with a function that verifies a receipt and gives it with its checkpoint; gives its
    files and receipts."""
    keys, files = Keys(key_text), dict(listed := read(data))
    names = [name for name, _ in listed]
    if names != sorted(files.keys() - {LIST}) + [LIST]:
        raise Refused("pack", "its files are not in order, or there is no list of digests")
    texts = {}
    for name in (LIST, "checkpoint.txt"):
        try:
            texts[name] = files[name].decode()
        except (KeyError, UnicodeDecodeError) as error:
            raise Refused("pack", f"no text {name}") from error
    (origin, size, digests), body, signatures = read_list(texts[LIST])
    check_signatures(body, signatures, keys, origin, size, "pack")
    if {name: sha256(content) for name, content in files.items() if name != LIST} != digests:
        raise Refused("pack", "its files are not those that were signed")
    if verify_checkpoint(texts["checkpoint.txt"], keys)[:2] != (origin, size):
        raise Refused("pack", "the list of digests is of another head than checkpoint.txt")
    receipts = []
    for name in names:
        if name.startswith("receipts/") and name.endswith(".cose"):
            receipt, checkpoint = verify_bundle(files[name], key_text)
            if checkpoint != texts["checkpoint.txt"]:
                raise Refused("pack", f"{name} is proved against another head than checkpoint.txt")
            receipts.append(receipt)
    if not receipts:
        raise Refused("pack", "no receipt")
    return files, receipts
