"""CBOR (RFC 8949) as far as receipts use it, COSE_Sign1 (RFC 9052) and COSE receipts (RFC 9942)."""

from limits import MAX_DEPTH, Refused

CONTENT_TYPE = "application/vnd.efface.receipt+json"
ALGORITHM, CONTENT, KEY_ID, CLAIMS = 1, 3, 4, 15
RECEIPTS, TREE, PROOFS = 394, 395, 396
# An RFC 3161 time stamp of the signature, `3161-ctt` (RFC 9921).
STAMP = 270
EDDSA, RFC9162_SHA256 = -8, 1
INCLUSION, CONSISTENCY = -1, -2
SIGN1 = 18


class Tag:
    def __init__(self, number, value):
        self.number, self.value = number, value


def head(major, number):
    """The first bytes of a CBOR item, in the shortest form."""
    if number < 24:
        return bytes([major << 5 | number])
    for code, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * width:
            return bytes([major << 5 | code]) + number.to_bytes(width, "big")
    raise Refused("encoding", "a number is too large")


def encode(value):
    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(encode(key) + encode(member) for key, member in value.items())
    return head(6, value.number) + encode(value.value)


class Reader:
    """Reads the kinds of items that receipts hold, and no others."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Refused("encoding", "cut short")
        self.at += count
        return self.data[self.at - count : self.at]

    def item(self, depth):
        if depth > MAX_DEPTH:
            raise Refused("encoding", "nested too deep")
        first = self.take(1)[0]
        major, code = first >> 5, first & 31
        if first == 0xF6:
            return None
        if major == 7 or code > 27:
            raise Refused("encoding", "an item that no receipt holds")
        number = code if code < 24 else int.from_bytes(self.take(1 << code - 24), "big")
        if major == 0:
            return number
        if major == 1:
            return -1 - number
        if major == 2:
            return self.take(number)
        if major == 3:
            try:
                return self.take(number).decode()
            except UnicodeDecodeError as error:
                raise Refused("encoding", "a text that is not UTF-8") from error
        if major == 6:
            return Tag(number, self.item(depth + 1))
        # An item takes a byte at least: a count beyond the rest is found before anything is made of it.
        if number > len(self.data) - self.at:
            raise Refused("encoding", "cut short")
        if major == 4:
            return [self.item(depth + 1) for _ in range(number)]
        found = {}
        for _ in range(number):
            key = self.item(depth + 1)
            if not isinstance(key, (int, str)) or key in found:
                raise Refused("encoding", "a label that is none, or twice")
            found[key] = self.item(depth + 1)
        return found


def decode(data):
    reader = Reader(data)
    value = reader.item(0)
    if reader.at != len(data):
        raise Refused("encoding", "something follows")
    return value


class Message:
    """A COSE_Sign1 that was read and not checked."""

    def __init__(self, data):
        found = decode(data)
        if not isinstance(found, Tag) or found.number != SIGN1 or not isinstance(found.value, list):
            raise Refused("encoding", "not a COSE_Sign1")
        if len(found.value) != 4:
            raise Refused("encoding", "not a COSE_Sign1")
        protected, self.unprotected, self.payload, self.signature = found.value
        if not isinstance(protected, bytes) or not isinstance(self.unprotected, dict):
            raise Refused("encoding", "headers are missing")
        self.protected = decode(protected)
        if not isinstance(self.protected, dict):
            raise Refused("encoding", "headers are missing")
        if not isinstance(self.signature, bytes) or len(self.signature) != 64:
            raise Refused("encoding", "an Ed25519 signature has 64 bytes")

    def key_id(self):
        found = self.protected.get(KEY_ID)
        if not isinstance(found, bytes) or len(found) != 4:
            raise Refused("encoding", "a key id has 4 bytes")
        return found.hex()

    def proof(self, kind):
        """The two numbers and the path of the one proof in a COSE receipt."""
        proofs = self.unprotected.get(PROOFS)
        if not isinstance(proofs, dict) or list(proofs) != [kind]:
            raise Refused("encoding", "not a proof of RFC 9942")
        found = proofs[kind]
        if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], bytes):
            raise Refused("encoding", "not a proof of RFC 9942")
        parts = decode(found[0])
        if not isinstance(parts, list) or len(parts) != 3 or not isinstance(parts[2], list):
            raise Refused("encoding", "not a proof of RFC 9942")
        first, second, path = parts
        counts = all(isinstance(number, int) and number >= 0 for number in (first, second))
        if not counts or not all(isinstance(node, bytes) and len(node) == 32 for node in path):
            raise Refused("encoding", "not a proof of RFC 9942")
        return first, second, path


def attached_receipt(message):
    """The one COSE receipt that is attached to a statement."""
    found = message.unprotected.get(RECEIPTS)
    if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], bytes):
        raise Refused("encoding", "not one COSE receipt")
    return Message(found[0])


def statement_header(receipt):
    claims = {1: receipt["origin"], 2: receipt["id"]}
    key_id = bytes.fromhex(receipt["key_id"])
    return encode({ALGORITHM: EDDSA, CONTENT: CONTENT_TYPE, KEY_ID: key_id, CLAIMS: claims})


def head_header(origin, key_id):
    claims = {1: origin, 2: origin}
    return encode({ALGORITHM: EDDSA, KEY_ID: bytes.fromhex(key_id), CLAIMS: claims, TREE: RFC9162_SHA256})


def to_be_signed(protected, payload):
    return encode(["Signature1", protected, b"", payload])


def sign1(protected, unprotected, payload, signature):
    return encode(Tag(SIGN1, [protected, unprotected, payload, signature]))


def receipt_bytes(origin, key_id, signature, kind, first, second, path):
    """A COSE receipt: the signed root, left out, and the proof that leads to it."""
    proofs = {PROOFS: {kind: [encode([first, second, path])]}}
    return sign1(head_header(origin, key_id), proofs, None, signature)
