#!/usr/bin/env python3
"""Feeds both verifiers with the same mutated inputs and compares their verdicts.

    differential.py VERDICTS [SEED [CASES]]

VERDICTS is the program of `cargo build -p efface-evidence --example verdicts`, which answers for the first verifier. The
inputs follow from the seed alone: lists of keys and witnesses, checkpoints, time stamps, receipts with their proofs
(those of vectors/, and others that are signed anew after a change of their JSON) and evidence packs. Exit status: 0 if the
verdicts agree, 1 if they do not or a verifier ended otherwise than with a verdict; the inputs are then printed.
"""

import base64
import json
import pathlib
import random
import subprocess
import sys
import traceback

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import cose
import keys as keys_module
import pack
import stamp
import verify
from canonical import canonical
from limits import EXACT, Refused
from merkle import leaf_hash, node_hash, sha256, split_point

VECTORS = pathlib.Path(__file__).parent / "vectors"
# What texts are changed by: everything that some language takes for the end of a line, a blank or a digit.
SPECIAL = [
    "\r", "\n", "\r\n", "\n\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x7f", "\x85", "\xa0", "\u2028",
    "\u2029", "\u3000", "\ufeff", "\u0669", "\u00b2", " ", "\t", "+", "-", "=", "0", "9", "\u2014 ", " until ", " until 7", "a", "\0",
]  # fmt: skip
NUMBERS = [
    "0", "7", "+99", "-1", "0099", "00", "1e3", " 7", "7 ", "1_000", "\u0669", str(EXACT), str(EXACT + 1), str(2**63),
    str(2**64), "9" * 30, "", "0x10", "7.0",
]  # fmt: skip
TAGS = bytes.fromhex("00 01 02 03 04 05 06 07 0a 0c 13 17 18 1e 1f 24 30 31 3f 80 9f a0 a1 a4 bf df ff")


class Signer:
    """A key of a log, or of a witness."""

    def __init__(self, name, seed, kind=1):
        self.name, self.secret = name, Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        data = bytes([kind]) + self.secret.public_key().public_bytes_raw()
        self.id = sha256(name.encode(), b"\n", data)[:4]
        self.text = f"{name}+{self.id.hex()}+{base64.b64encode(data).decode()}"

    def line(self, body, time=None):
        """A signature line for a text; with a time, the cosignature of a witness."""
        if time is None:
            data = self.id + self.secret.sign(body.encode())
        else:
            message = f"cosignature/v1\ntime {time}\n{body}"
            data = self.id + time.to_bytes(8, "big") + self.secret.sign(message.encode())
        return f"\u2014 {self.name} {base64.b64encode(data).decode()}\n"


def tree_root(hashes):
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256()
    cut = split_point(len(hashes))
    return node_hash(tree_root(hashes[:cut]), tree_root(hashes[cut:]))


def inclusion(index, hashes):
    if len(hashes) < 2:
        return []
    cut = split_point(len(hashes))
    if index < cut:
        return inclusion(index, hashes[:cut]) + [tree_root(hashes[cut:])]
    return inclusion(index - cut, hashes[cut:]) + [tree_root(hashes[:cut])]


def consistency(old, hashes, whole=True):
    if old == len(hashes):
        return [] if whole else [tree_root(hashes)]
    cut = split_point(len(hashes))
    if old <= cut:
        return consistency(old, hashes[:cut], whole) + [tree_root(hashes[cut:])]
    return consistency(old - cut, hashes[cut:], False) + [tree_root(hashes[:cut])]


class Generator:
    """Makes inputs: each a kind, its parts as bytes, and the number of witnesses that are needed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        read = lambda name: json.loads((VECTORS / name).read_text(encoding="utf-8"))  # noqa: E731
        self.bundles, self.logs = read("bundles.json"), read("logs.json")
        rules = read("rules.json")
        self.receipts = rules["sound"] * 3 + [case["receipt"] for case in rules["broken"]]
        self.log = Signer("efface/fuzz", 7)
        self.stranger = Signer("efface/fuzz", 8)
        self.witnesses = [Signer(f"witness.example/{at}", 20 + at, 4) for at in range(3)]

    def case(self):
        kinds = [self.keys, self.bundle, self.checkpoint, self.quorum, self.stamp, self.receipt, self.pack]
        return self.random.choice(kinds + [self.keys, self.stamp])()

    # Texts.

    def text(self, text, changes=None):
        """A text with some changes."""
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3)) if changes is None else changes):
            at = self.random.randrange(len(text) + 1)
            match self.random.randrange(6):
                case 0 | 1 | 2:
                    # Most of what parsers disagree about stands at the ends of lines.
                    ends = [place for place, char in enumerate(text) if char in "\n "] + [len(text), 0]
                    at = self.random.choice(ends + [at])
                    text = text[:at] + self.random.choice(SPECIAL) + text[at:]
                case 3:
                    text = text[:at] + text[at + 1 :]
                case 4:
                    text = text[:at] + self.random.choice(SPECIAL) + text[at + 1 :]
                case _:
                    lines = text.split("\n")
                    lines.insert(self.random.randrange(len(lines) + 1), self.random.choice(lines))
                    text = "\n".join(lines)
        data = text.encode()
        if self.random.random() < 0.02:
            at = self.random.randrange(len(data) + 1)
            data = data[:at] + self.random.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf")) + data[at:]
        return data

    def key_text(self):
        if self.random.random() < 0.1:
            # Any 32 bytes: half of them are no point of the curve.
            point = self.random.choice((self.random.randbytes(32), bytes([self.random.randrange(30)]) + bytes(31)))
            data = b"\1" + point
            key_id = sha256(b"efface/fuzz\n", data)[:4].hex()
            return f"efface/fuzz+{key_id}+{base64.b64encode(data).decode()}"
        names = ["efface/fuzz", "a", "\u00e9", "a\u200bb", "a b", "a\u2028b", "x" * 255, "x" * 256, "", "\u3000"]
        known = [self.bundles["public_key"], self.bundles["next_key"], self.log.text, self.stranger.text]
        return self.random.choice(known * 4 + [Signer(name, 5).text for name in names])

    def keys(self):
        count = self.random.choice((1, 1, 2, 3, 128, 129, 130, 131))
        lines = []
        for at in range(count):
            until = at + 1 < count or self.random.random() < 0.3
            number = self.random.choice(NUMBERS) if self.random.random() < 0.5 / count else str(at)
            lines.append((self.key_text() if count < 9 else self.log.text) + (f" until {number}" if until else ""))
        ending = self.random.choice(("\n", "\n", "\n", "", "\r\n", "\r", "\u2028", "\n\n", "\n" * 70_000))
        return "keys", [self.text("\n".join(lines) + ending, None if count < 9 else 0)], None

    def note(self, body, signers):
        lines = "".join(signer.line(body) for signer in signers)
        return f"{body}\n{lines}"

    def body(self):
        root = base64.b64encode(sha256(b"root")).decode()
        extensions = "".join(
            f"{self.random.choice(SPECIAL)}line\n" for _ in range(self.random.choice((0, 0, 0, 0, 0, 1, 40)))
        )
        size = self.random.choice(NUMBERS) if self.random.random() < 0.2 else "7"
        return f"{self.log.name}\n{size}\n{root}\n{extensions}"

    def checkpoint(self):
        if self.random.random() < 0.3:
            note, keys = self.random.choice(self.logs["logs"])["checkpoint"], self.logs["public_key"]
            return "checkpoint", [self.text(note), keys.encode()], None
        count = self.random.choice((1, 1, 1, 2, 33))
        signers = self.random.choices([self.log, self.log, self.stranger, self.witnesses[0]], k=count)
        body = self.text(self.body(), self.random.choice((0, 0, 1))).decode(errors="replace")
        note = self.note(body, signers)
        keys = f"{self.stranger.text} until {self.random.choice((6, 7, 8))}\n{self.log.text}\n"
        return "checkpoint", [self.text(note, self.random.choice((0, 0, 1))), keys.encode()], None

    def quorum(self):
        body = self.body()
        times = (0, 1_772_442_900, 2**63 - 1) * 7 + (2**63, 2**64 - 1)
        signed = self.random.choices(self.witnesses, k=self.random.randrange(5))
        lines = [signer.line(body, self.random.choice(times)) for signer in signed]
        note = self.note(body, [self.log]) + "".join(lines)
        # The same key may be listed under two names, and two keys under one.
        names = (("witness.example/0", 21, 4), ("witness.example/9", 20, 4), ("witness.example/1", 21, 1))
        others = [[Signer(*name)] for name in names] + [[]] * 6
        listed = self.random.sample(self.witnesses, k=self.random.randrange(1, 4)) + self.random.choice(others)
        if self.random.random() < 0.1:
            listed.append(self.random.choice(listed))
        text = "".join(f"{signer.text}\n" for signer in listed)
        changed = self.random.choice(((0, 0), (0, 0), (0, 1), (1, 0)))
        parts = [self.text(part, changes) for part, changes in zip((note, text), changed)]
        return "witnesses", parts, self.random.choice((None, 0, 1, 1, 1, 2, 4))

    # Time stamps.

    def der(self, value):
        """A value in DER, from its tag and its content, which is bytes or a list of values. Some lengths are not the
        shortest."""
        tag, content = value
        if isinstance(content, list):
            content = b"".join(map(self.der, content))
        length = len(content)
        forms = [bytes([length])] if length < 128 else [b"\x81" + bytes([length])] if length < 256 else []
        forms.append(b"\x82" + length.to_bytes(2, "big"))
        other = self.random.choice(forms + [b"\x83" + length.to_bytes(3, "big"), b"\x80"])
        return bytes([tag]) + (other if self.random.random() < 0.003 else forms[0]) + content

    def stamp(self):
        signature = self.random.randbytes(64)
        times = ["20260302091500Z", "20260302091500.25Z", "20260302091500.Z", "2026030209150Z", "20260302091500+0100"]
        time = self.random.choice(times[:2] * 5 + times).encode()
        algorithm = (0x30, [(6, stamp.SHA256), (5, b"")])
        info = (0x30, [
            (2, b"\1"), (6, b"\x2a\3\4"), (0x30, [algorithm, (4, sha256(b"\x58\x40", signature))]), (2, b"\7"),
            (0x18, time),
            (0x30, [(2, b"\1")]), (1, b"\xff"), (2, b"\0\xc8"), (0xA0, [(0xA4, [(0x30, [])])]), (0xA1, []),
        ])  # fmt: skip
        content = (0x30, [(6, stamp.TST_INFO), (0xA0, [(4, [info])])])
        signed = (0x30, [(2, b"\3"), (0x31, [algorithm]), content, (0xA0, [(0x30, bytes(300))]), (0x31, [])])
        token = [0x30, [(6, stamp.SIGNED_DATA), (0xA0, [signed])]]
        for _ in range(self.random.choice((0, 1, 1, 2))):
            self.change_der(token)
        data = self.der(token)
        if self.random.random() < 0.1:
            data = self.bytes(data)
        return "stamp", [data, signature], None

    def change_der(self, value):
        """Changes a value somewhere in the tree."""
        if not isinstance(value[1], list) or self.random.random() < 0.15:
            if self.random.random() < 0.7:
                value[0] = self.random.choice(TAGS)
            else:
                value[1] = self.random.choice((b"", b"\0", b"0", self.random.randbytes(32)))
            return
        children = value[1] = [list(child) for child in value[1]]
        at = self.random.randrange(len(children) + 1)
        match self.random.randrange(8):
            case 0:
                children.insert(at, [self.random.choice(TAGS), self.random.choice((b"", b"\0", b"\1"))])
            case 1 if children:
                children.pop(at % len(children))
            case 2 if children:
                children.insert(at, list(self.random.choice(children)))
            case 3 if children:
                self.random.shuffle(children)
            case _ if children:
                self.change_der(children[at % len(children)])

    # Receipts.

    def bytes(self, data):
        at = self.random.randrange(len(data) + 1)
        match self.random.randrange(4):
            case 0 if at < len(data):
                return data[:at] + bytes([data[at] ^ 1 << self.random.randrange(8)]) + data[at + 1 :]
            case 1:
                return data[:at]
            case 2:
                return data[:at] + self.random.randbytes(self.random.randrange(1, 4)) + data[at:]
            case _:
                return data[:at] + data[at + self.random.randrange(1, 9) :]

    def bundle(self):
        data = base64.b64decode(self.random.choice(self.bundles["cases"])["bundle"])
        keys = self.random.choice((self.bundles["public_key"], self.bundles["next_key"]))
        if self.random.random() < 0.5:
            data = self.bytes(data)
        return "bundle", [data, self.text(keys + "\n", self.random.choice((0, 0, 1)))], None

    def value(self):
        receipt = json.loads(self.random.choice(self.receipts))
        field = self.random.choice(list(receipt.values()))
        times = [
            "2026-03-02T09:15:00.250Z", "2026-02-29T09:15:00.250Z", "0000-02-29T00:00:00.000Z", "2026-03-02T24:00:00.000Z",
            "2026-03-02T09:15:60.000Z", "2026-03-02t09:15:00.250Z", "\u0662026-03-02T09:15:00.250Z",
        ]  # fmt: skip
        plain = [
            None, True, False, 0, 1, -1, 0.5, -0.0, 1e300, 5e-324, EXACT, float(2**53), "", "a", "\u00e9", "\u2028",
            "\x7f", "a" * 1025, "0" * 64, "0" * 32, "A" * 64, [], {}, [None], {"a": 1}, "18446744073709551616",
        ]  # fmt: skip
        return self.random.choice(plain + times + [field, field])

    def change_json(self, value):
        """Changes a value somewhere in a JSON document."""
        places = list(value) if isinstance(value, dict) else range(len(value))
        if not places or self.random.random() < 0.1:
            if isinstance(value, dict):
                value[self.random.choice(("a", "kind", "\u00e9"))] = self.value()
            else:
                value.append(self.value())
            return
        place = self.random.choice(list(places))
        if isinstance(value[place], (dict, list)) and self.random.random() < 0.7:
            self.change_json(value[place])
        elif self.random.random() < 0.1:
            value.pop(place)
        else:
            value[place] = self.value()

    def signed_receipt(self):
        """A receipt in its log, both signed by the key of this program, as bytes with the checkpoint."""
        receipt = json.loads(self.random.choice(self.receipts))
        receipt["origin"], receipt["key_id"] = self.log.name, self.log.id.hex()
        receipt["sequence"] = self.random.choice((receipt["sequence"], receipt["sequence"], self.random.randrange(9)))
        for _ in range(self.random.choice((0, 1, 1, 2))):
            self.change_json(receipt)
        sequence = receipt.get("sequence")
        at = sequence if isinstance(sequence, int) and 0 <= sequence < 50 else 3
        hashes = [leaf_hash(bytes([place])) for place in range(at)]
        previous = receipt.get("previous")
        if isinstance(previous, dict) and isinstance(previous.get("size"), int) and 0 < previous["size"] <= at and at:
            previous["root"] = tree_root(hashes[: previous["size"]]).hex()
        else:
            previous = None
        payload = canonical(receipt)
        if self.random.random() < 0.05:
            payload = self.text(payload.decode(), 1)
        texts = [receipt.get(name) if isinstance(receipt.get(name), str) else "x" for name in ("origin", "id")]
        header = cose.statement_header({"origin": texts[0], "id": texts[1], "key_id": self.log.id.hex()})
        signature = self.log.secret.sign(cose.to_be_signed(header, payload))
        hashes.append(leaf_hash(cose.sign1(header, {}, payload, signature)))
        hashes += [leaf_hash(b"later")] * self.random.randrange(4)
        root, size = tree_root(hashes), len(hashes)
        note = self.note(f"{self.log.name}\n{size}\n{base64.b64encode(root).decode()}\n", [self.log])
        head_header = cose.head_header(self.log.name, self.log.id.hex())
        head = self.log.secret.sign(cose.to_be_signed(head_header, root))

        def attached(kind, first, second, path):
            return cose.receipt_bytes(self.log.name, self.log.id.hex(), head, kind, first, second, path)

        headers = {cose.RECEIPTS: [attached(cose.INCLUSION, size, at, inclusion(at, hashes))]}
        headers["checkpoint"] = note
        if previous:
            old = previous["size"]
            headers["consistency"] = attached(cose.CONSISTENCY, old, size, consistency(old, hashes))
        return cose.sign1(header, headers, payload, signature), note

    def receipt(self):
        return "bundle", [self.signed_receipt()[0], self.log.text.encode()], None

    # Packs.

    def pack(self):
        receipt = self.signed_receipt()[0]
        # A sound receipt in every second pack, or nearly all would be refused for it.
        while self.random.random() < 0.8 and verdict("bundle", [receipt, self.log.text.encode()], None) != "ok":
            receipt = self.signed_receipt()[0]
        try:
            note = verify.Bundle(receipt).checkpoint
        except Refused:
            note = self.note(self.body(), [self.log])
        files = {"summary.html": b"<p>\n", "keys.txt": b"", "checkpoint.txt": note.encode(), "receipts/3.cose": receipt}
        if self.random.random() < 0.2:
            files[self.random.choice(("../a", "a b", "/a", "\u00e9", "receipts/x.cose", "zz.csv", "a/b/c"))] = b"more"
        size = note.split("\n")[1]
        lines = "".join(f"{sha256(content).hex()} {name}\n" for name, content in sorted(files.items()))
        body = f"{pack.TITLE}\n{self.log.name}\n{size}\n{lines}"
        if self.random.random() < 0.2:
            body = self.text(body, 1).decode(errors="replace")
        files[pack.LIST] = self.note(body, [self.random.choice((self.log, self.log, self.log, self.stranger))]).encode()
        listed = [(name, files[name]) for name in sorted(files.keys() - {pack.LIST})] + [(pack.LIST, files[pack.LIST])]
        match self.random.randrange(12):
            case 0:
                at = self.random.randrange(len(listed))
                listed[at] = (listed[at][0], self.bytes(listed[at][1]))
            case 1:
                listed.pop(self.random.randrange(len(listed)))
            case 2:
                listed.insert(self.random.randrange(len(listed)), self.random.choice(listed))
            case 3:
                self.random.shuffle(listed)
            case 4:
                listed.insert(self.random.randrange(len(listed)), ("added.txt", b"x"))
        data = pack.write(listed)
        return "pack", [self.bytes(data) if self.random.random() < 0.3 else data, self.log.text.encode()], None


def verdict(kind, parts, quorum):
    """What the second verifier says: `ok`, or the check that failed."""
    try:
        if kind != "bundle" and kind != "stamp" and kind != "pack":
            parts = [part.decode() for part in parts]
        match kind:
            case "keys":
                keys_module.Keys(parts[0])
            case "checkpoint":
                keys_module.verify_checkpoint(parts[0], keys_module.Keys(parts[1]))
            case "witnesses":
                keys_module.verify_witnesses(*parts, quorum)
            case "stamp":
                stamp.check(*parts)
            case "bundle":
                verify.verify_bundle(parts[0], parts[1].decode())
            case "pack":
                pack.verify_pack(parts[0], parts[1].decode(), verify.verify_with_head)
    except UnicodeDecodeError:
        return "text"
    except Refused as refusal:
        return refusal.check
    return "ok"


def main(arguments):
    program, seed, cases = arguments[0], int((arguments[1:] or [1])[0]), int((arguments[2:] or [2000])[0])
    generator, counts, wrong, left = Generator(seed), {}, 0, cases
    while left:
        inputs = [generator.case() for _ in range(min(left, 500))]
        left -= len(inputs)
        encoded = [[base64.b64encode(part).decode() for part in parts] for _, parts, _ in inputs]
        requests = [
            json.dumps({"kind": kind, "parts": parts, "quorum": quorum})
            for (kind, _, quorum), parts in zip(inputs, encoded)
        ]
        done = subprocess.run([program], input="\n".join(requests) + "\n", capture_output=True, text=True, check=False)
        answers = done.stdout.split("\n")[:-1]
        if done.returncode or len(answers) != len(inputs):
            print(f"{program} ended with {done.returncode} at {requests[len(answers)]}\n{done.stderr}", file=sys.stderr)
            return 1
        for request, (kind, parts, quorum), first in zip(requests, inputs, answers):
            try:
                second = verdict(kind, parts, quorum)
            except Exception:  # noqa: BLE001: whatever it is, it is no verdict
                second = traceback.format_exc()
            passed = counts.setdefault(kind, [0, 0])
            passed[0 if first == "ok" else 1] += 1
            if (first == "ok") != (second == "ok"):
                wrong += 1
                print(f"seed {seed}: the first verifier says {first}, the second {second}: {request}", file=sys.stderr)
    for kind, (accepted, refused) in sorted(counts.items()):
        print(f"{kind}: {accepted} accepted, {refused} refused")
    print(f"seed {seed}: {cases} inputs, {wrong} with different verdicts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
