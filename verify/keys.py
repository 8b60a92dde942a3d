"""Keys, and checkpoints in the form of C2SP signed-note and tlog-checkpoint."""

import base64
import binascii
import re

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from limits import EXACT, MAX_NOTE, MAX_SIGNATURES, Refused
from merkle import sha256


# The y of the points whose order divides 8, and the same y not reduced. Anyone can sign for such a key.
PRIME = 2**255 - 19
ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
WEAK = {0, 1, PRIME - 1, PRIME, PRIME + 1, ORDER_8, PRIME - ORDER_8}


def unbase64(text, check):
    """Base 64 that is its own encoding: no spaces, no stray bits."""
    try:
        data = base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(check, "bad base64") from error
    if base64.b64encode(data).decode() != text:
        raise Refused(check, "bad base64")
    return data


def control(char):
    return char < " " or "\x7f" <= char <= "\x9f"


def check_name(name, check="key"):
    if not 1 <= len(name.encode()) <= 255 or any(c.isspace() or control(c) or c == "+" for c in name):
        raise Refused(check, "not a name")


class Key:
    def __init__(self, text):
        if len(text.encode()) > 319 or text.count("+") < 2:
            raise Refused("key", "expected name+id+base64")
        self.text = text
        self.name, id_text, code = text.split("+", 2)
        check_name(self.name)
        data = unbase64(code, "key")
        if len(data) != 33 or data[0] != 1:
            raise Refused("key", "not an Ed25519 key")
        self.id = sha256(self.name.encode(), b"\n", data)[:4].hex()
        if self.id != id_text:
            raise Refused("key", "the id does not belong to this name and key")
        if int.from_bytes(data[1:], "little") % 2**255 in WEAK:
            raise Refused("key", "a weak point: anyone could sign for it")
        self.key = Ed25519PublicKey.from_public_bytes(data[1:])
        self.retired = None

    def holds(self, signature, message):
        try:
            self.key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


class Keys:
    """The keys that are trusted. A key that handed over signs nothing later."""

    def __init__(self, *texts):
        self.keys = [Key(text) for text in texts]

    def find(self, name, key_id):
        return next((key for key in self.keys if (key.name, key.id) == (name, key_id)), None)

    def active(self, name, key_id, sequence):
        key = self.find(name, key_id)
        if key is None:
            raise Refused("key", f"key {key_id} is not trusted")
        if key.retired is not None and sequence > key.retired:
            raise Refused("key", f"key {key_id} handed over at receipt {key.retired}")
        return key


def verify_checkpoint(note, keys):
    """The origin, size and root of a signed note (C2SP tlog-checkpoint)."""
    if len(note.encode()) > MAX_NOTE:
        raise Refused("limits", "the checkpoint is too long")
    if any(control(c) and c != "\n" for c in note) or not note.endswith("\n"):
        raise Refused("checkpoint", "control characters, or no newline at the end")
    cut = note.rfind("\n\n")
    if cut < 0:
        raise Refused("checkpoint", "no blank line")
    body, lines = note[: cut + 1], note[cut + 2 : -1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise Refused("limits", "too many signatures")
    texts = body[:-1].split("\n")
    if len(texts) < 3 or "" in texts:
        raise Refused("checkpoint", "fewer than three lines, or an empty one")
    check_name(texts[0])
    if not re.fullmatch("0|[1-9][0-9]{0,15}", texts[1], re.ASCII) or int(texts[1]) > EXACT:
        raise Refused("checkpoint", "the size is not a number")
    origin, size, root = texts[0], int(texts[1]), unbase64(texts[2], "checkpoint")
    if len(root) != 32 or (size == 0 and root != sha256()):
        raise Refused("checkpoint", "not a root")
    signed = False
    for line in lines:
        parts = re.fullmatch("\u2014 ([^ ]+) ([^ ]+)", line)
        if not parts:
            raise Refused("checkpoint", "not a signature line")
        name, data = parts.group(1), unbase64(parts.group(2), "checkpoint")
        check_name(name)
        if len(data) < 5:
            raise Refused("checkpoint", "not a signature")
        if not keys.find(name, data[:4].hex()):
            continue
        key = keys.active(name, data[:4].hex(), max(size - 1, 0))
        if len(data) != 68 or not key.holds(data[4:], body.encode()):
            raise Refused("checkpoint", "a signature is wrong")
        signed = signed or name == origin
    if not signed:
        raise Refused("checkpoint", "no trusted key has signed")
    return origin, size, root
