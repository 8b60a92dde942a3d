"""Keys, and checkpoints in the form of C2SP signed-note and tlog-checkpoint."""

import base64
import binascii
import re

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from limits import EXACT, MAX_KEY_LIST, MAX_KEYS, MAX_NOTE, MAX_SIGNATURES, Refused
from merkle import sha256


# The y of the points whose order divides 8, and the same y not reduced. Anyone can sign for such a key.
PRIME = 2**255 - 19
ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
WEAK = {0, 1, PRIME - 1, PRIME, PRIME + 1, ORDER_8, PRIME - ORDER_8}


def is_point(data):
    """Whether 32 bytes name a point of the curve −x² + y² = 1 + dx²y²: x² must be a square modulo the prime."""
    y = int.from_bytes(data, "little") % 2**255
    d = -121665 * pow(121666, -1, PRIME)
    square = (y * y - 1) * pow(d * y * y + 1, -1, PRIME) % PRIME
    return pow(square, (PRIME - 1) // 2, PRIME) in (0, 1)


def is_weak(data):
    return int.from_bytes(data, "little") % 2**255 in WEAK


def count(text):
    """A count in decimal digits without a sign or leading zeros, at most 2**53 - 1; None for anything else."""
    if not re.fullmatch("0|[1-9][0-9]{0,15}", text, re.ASCII) or int(text) > EXACT:
        return None
    return int(text)


def list_lines(text):
    """The lines of a list of keys that are not empty. Only a newline ends a line."""
    if len(text.encode()) > MAX_KEY_LIST:
        raise Refused("limits", "the list of keys is too long")
    return [line for line in text.split("\n") if line]


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
        if is_weak(data[1:]) or not is_point(data[1:]):
            raise Refused("key", "no point of the curve, or a weak one: anyone could sign for it")
        self.key = Ed25519PublicKey.from_public_bytes(data[1:])
        # The receipts that it may sign: from the one after the hand-over to it, up to the one in which it hands over.
        self.first, self.last = 0, None

    def holds(self, signature, message):
        # The first half of a signature is a point, and a weak one proves nothing about the message.
        if is_weak(signature[:32]):
            return False
        try:
            self.key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


class Keys:
    """The keys that are trusted, from a list with one a line, oldest first. A key that handed over is followed by
    ` until N`; only the last key may sign without end. Without a list there are none yet."""

    def __init__(self, text=None):
        self.keys, self.recovery = [], None
        if text is not None and not list_lines(text):
            raise Refused("key", "there is no key")
        for line in list_lines(text or ""):
            if self.keys and self.keys[-1].last is None:
                raise Refused("key", "only the last key of a list has no `until N`")
            key_text, until, last = line.partition(" until ")
            if until and count(last) is None:
                raise Refused("key", "`until` names a receipt")
            self.add(key_text, 0, count(last) if until else None)

    def get(self, text):
        return next((key for key in self.keys if key.text == text), None)

    def is_known(self, name, key_id):
        return any((key.name, key.id) == (name, key_id) for key in self.keys)

    def add(self, text, first, last):
        if len(self.keys) >= MAX_KEYS:
            raise Refused("limits", "too many keys")
        key = Key(text)
        key.first, key.last = first, last
        self.keys.append(key)

    def active(self, name, key_id, sequence):
        why = f"key {key_id} is not trusted"
        for key in self.keys:
            if (key.name, key.id) != (name, key_id):
                continue
            if key.last is not None and sequence > key.last:
                why = f"key {key_id} handed over at receipt {key.last}"
            elif sequence < key.first:
                why = f"key {key_id} took over for receipt {key.first}"
            else:
                return key
        raise Refused("key", why)


class Witness:
    """The key of a witness: name+id+base64(0x04 ‖ key)."""

    def __init__(self, text):
        parts = text.split("+", 2)
        if len(parts) != 3:
            raise Refused("key", "expected name+id+base64")
        self.name, id_text, code = parts
        check_name(self.name)
        data = unbase64(code, "key")
        if len(data) != 33 or data[0] != 4:
            raise Refused("key", "not the key of a witness")
        self.id = sha256(self.name.encode(), b"\n", data)[:4]
        if self.id.hex() != id_text:
            raise Refused("key", "the id does not belong to this name and key")
        # The same Ed25519 key, under the id that it would have as the key of a log: weak points are refused there.
        plain = b"\x01" + data[1:]
        plain_id = sha256(self.name.encode(), b"\n", plain)[:4].hex()
        self.key = Key(f"{self.name}+{plain_id}+{base64.b64encode(plain).decode()}")
        self.bytes = data

    def holds(self, signature, body):
        if len(signature) != 72 or signature[0] >= 128:
            return False
        time = int.from_bytes(signature[:8], "big")
        return self.key.holds(signature[8:], f"cosignature/v1\ntime {time}\n{body}".encode())


def verify_witnesses(note, witness_text, quorum=None):
    """That enough witnesses signed a checkpoint (C2SP tlog-cosignature). Its other signatures are checked elsewhere."""
    witnesses = list(map(Witness, list_lines(witness_text)))
    if len(witnesses) > MAX_KEYS:
        raise Refused("limits", "too many witnesses")
    names, different = {witness.name for witness in witnesses}, {witness.bytes for witness in witnesses}
    if not len(names) == len(different) == len(witnesses):
        raise Refused("key", "a witness is listed twice, under one name or two")
    needed = len(witnesses) if quorum is None else quorum
    if not 1 <= needed <= len(witnesses):
        raise Refused("key", "a quorum is at least one witness and at most all of them")
    _, body, lines = read_note(note)
    signed = set()
    for name, data in lines:
        known = next((w for w in witnesses if (w.name, w.id) == (name, data[:4])), None)
        if known is None:
            continue
        if not known.holds(data[4:], body):
            raise Refused("witness", "the cosignature of a witness is wrong")
        signed.add(name)
    if len(signed) < needed:
        raise Refused("witness", f"{len(signed)} of the named witnesses signed, and {needed} are needed")
    return signed


def split_note(note, limit=MAX_NOTE):
    """The lines that a signed note is about, the text that is signed, and its signatures with their names (C2SP
    signed-note)."""
    if len(note.encode()) > limit:
        raise Refused("limits", "the signed note is too long")
    if any(control(c) and c != "\n" for c in note) or not note.endswith("\n"):
        raise Refused("checkpoint", "control characters, or no newline at the end")
    cut = note.rfind("\n\n")
    if cut < 0:
        raise Refused("checkpoint", "no blank line")
    body, lines = note[: cut + 1], note[cut + 2 : -1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise Refused("limits", "too many signatures")
    signatures = []
    for line in lines:
        parts = re.fullmatch("\u2014 ([^ ]+) ([^ ]+)", line)
        if not parts:
            raise Refused("checkpoint", "not a signature line")
        name, data = parts.group(1), unbase64(parts.group(2), "checkpoint")
        check_name(name)
        if len(data) < 5:
            raise Refused("checkpoint", "not a signature")
        signatures.append((name, data))
    return body[:-1].split("\n"), body, signatures


def read_note(note):
    """The origin, size and root of a checkpoint (C2SP tlog-checkpoint), the text that is signed, and its signatures."""
    texts, body, signatures = split_note(note)
    if len(texts) < 3 or "" in texts:
        raise Refused("checkpoint", "fewer than three lines, or an empty one")
    check_name(texts[0])
    size, root = count(texts[1]), unbase64(texts[2], "checkpoint")
    if size is None:
        raise Refused("checkpoint", "the size is not a number")
    if len(root) != 32 or (size == 0 and root != sha256()):
        raise Refused("checkpoint", "not a root")
    return (texts[0], size, root), body, signatures


def check_signatures(body, signatures, keys, origin, size, check="checkpoint"):
    """That a trusted key of the log has signed a note about its first `size` receipts, and that no signature by a
    trusted key is wrong."""
    signed = False
    for name, data in signatures:
        if not keys.is_known(name, data[:4].hex()):
            continue
        # A head is signed by the key that would sign the next receipt: after a hand-over, the new one.
        key = keys.active(name, data[:4].hex(), size)
        if len(data) != 68 or not key.holds(data[4:], body.encode()):
            raise Refused(check, "a signature is wrong")
        signed = signed or name == origin
    if not signed:
        raise Refused(check, "no trusted key has signed")


def verify_checkpoint(note, keys):
    """The origin, size and root of a signed note (C2SP tlog-checkpoint)."""
    head, body, signatures = read_note(note)
    check_signatures(body, signatures, keys, *head[:2])
    return head
