"""Runs the Python verifier over the vectors that the Rust crate makes. `python3 -m unittest discover verify`"""

import base64
import json
import pathlib
import struct
import sys
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import canonical  # noqa: E402
import keys as keys_module  # noqa: E402
import merkle  # noqa: E402
import rules  # noqa: E402
import shape  # noqa: E402
import stamp  # noqa: E402
import verify  # noqa: E402
from limits import Refused  # noqa: E402


def vectors(name):
    return json.loads((HERE / "vectors" / name).read_text(encoding="utf-8"))


def verdict(check, *arguments):
    try:
        check(*arguments)
    except Refused as refusal:
        return refusal.check
    return "ok"


class CanonicalJson(unittest.TestCase):
    def test_numbers(self):
        for bits, text in vectors("canonical.json")["numbers"]:
            (number,) = struct.unpack(">d", bytes.fromhex(bits))
            self.assertEqual(canonical.number_text(number), text)

    def test_texts(self):
        found = vectors("canonical.json")
        for text in found["texts"]:
            self.assertEqual(canonical.canonical(canonical.parse(text.encode(), 10_000)), text.encode())
        for text in found["refused"]:
            self.assertEqual(verdict(canonical.parse, text.encode(), 10_000), "canonical", text)

    def test_input_meant_to_exhaust(self):
        for data in (b"[" * 100_000, b'{"a":' * 100_000, b'"' * 100_000, b"9" * 100_000, b"[" + b"0," * 400_000 + b"0]"):
            self.assertNotEqual(verdict(verify.verify_bundle, data, ""), "ok")


class Trees(unittest.TestCase):
    def test_log(self):
        found = vectors("tree.json")
        leaves = [leaf.encode() for leaf in found["leaves"]]
        roots = [bytes.fromhex(size["root"]) for size in found["sizes"]]
        edge = merkle.Edge()
        self.assertEqual(edge.root(), roots[0])
        for leaf, size in zip(leaves, found["sizes"][1:]):
            edge.append(leaf)
            n, root = size["size"], edge.root()
            self.assertEqual(root, roots[n])
            for proof in size["inclusion"]:
                path = verify.hashes(proof["path"])
                merkle.verify_inclusion(leaves[proof["index"]], proof["index"], n, path, root)
                for bad in (path[:-1], path + [root], [bytes(32)] * len(path)):
                    if bad != path:
                        with self.assertRaises(Refused):
                            merkle.verify_inclusion(leaves[proof["index"]], proof["index"], n, bad, root)
            for proof in size["consistency"]:
                path, old = verify.hashes(proof["path"]), proof["old"]
                merkle.verify_consistency(old, n, path, roots[old], root)
                for bad in (path[:-1], path + [root], [bytes(32)] * len(path)):
                    if bad != path:
                        with self.assertRaises(Refused):
                            merkle.verify_consistency(old, n, bad, roots[old], root)

    def test_training_set(self):
        found = vectors("training_set.json")
        keys = verify.hashes(found["keys"])
        for state in found["sizes"]:
            self.assertEqual(merkle.set_root(reversed_first(keys, state["count"])).hex(), state["root"])
        root, count = bytes.fromhex(found["sizes"][-1]["root"]), found["sizes"][-1]["count"]
        for case in found["proofs"]:
            key, path = bytes.fromhex(case["key"]), verify.hashes(case["proof"]["path"])
            end = case["proof"]["end"] and bytes.fromhex(case["proof"]["end"])
            self.assertEqual(merkle.is_member(root, count, key, path, end), case["member"])
            with self.assertRaises(Refused):
                merkle.is_member(root, count + 1, key, path, end)

    def test_commitments(self):
        found = vectors("training_set.json")
        salt, subject, row = bytes.fromhex(found["salt"]), found["subject"], found["row"]
        value = subject["value"].encode()
        nonce = merkle.nonce(salt, b"subject", value)
        self.assertEqual(nonce.hex(), subject["nonce"])
        self.assertEqual(merkle.commitment(nonce, b"subject", value).hex(), subject["commitment"])
        name = row["id"].encode()
        value = len(name).to_bytes(8, "big") + name + bytes.fromhex(row["content"])
        self.assertEqual(merkle.commitment(merkle.nonce(salt, b"row", value), b"row", value).hex(), row["commitment"])
        self.assertEqual(merkle.rows_commitment(verify.hashes(found["keys"][:3])).hex(), found["rows"])


def reversed_first(keys, count):
    """The order of the keys must not matter."""
    return list(reversed(keys[:count]))


class KeyLists(unittest.TestCase):
    def test_grammar(self):
        for case in vectors("keys.json"):
            try:
                text = base64.b64decode(case["list"]).decode()
            except UnicodeDecodeError:
                self.assertEqual(case["expected"], "key", case["name"])
                continue
            self.assertEqual(verdict(keys_module.Keys, text), case["expected"], case["name"])


class Stamps(unittest.TestCase):
    def test_grammar(self):
        found = vectors("stamps.json")
        signature = base64.b64decode(found["signature"])
        for case in found["cases"]:
            token = base64.b64decode(case["token"])
            self.assertEqual(verdict(stamp.check, token, signature), case["expected"], case["name"])


class Witnesses(unittest.TestCase):
    def test_quorum(self):
        for case in vectors("witness.json"):
            found = verdict(keys_module.verify_witnesses, case["checkpoint"], case["witnesses"], case["quorum"])
            self.assertEqual(found, case["expected"], case["name"])


class Rules(unittest.TestCase):
    def test_each_is_broken_by_its_vectors_alone(self):
        found = vectors("rules.json")
        for text in found["sound"]:
            receipt = canonical.parse(text.encode(), 100_000)
            shape.RECEIPT(receipt)
            rules.check_rules(receipt)
        for case in found["broken"]:
            receipt = canonical.parse(case["receipt"].encode(), 100_000)
            shape.RECEIPT(receipt)
            with self.assertRaises(Refused) as refusal:
                rules.check_rules(receipt)
            self.assertEqual(refusal.exception.check, "schema")
            self.assertTrue(str(refusal.exception).endswith(f"rule {case['rule']}"), (case["rule"], refusal.exception))
        self.assertEqual({rule.__name__ for rule in rules.RULES}, {case["rule"] for case in found["broken"]})


class Bundles(unittest.TestCase):
    def test_verdicts(self):
        found = vectors("bundles.json")
        for case in found["cases"]:
            data = base64.b64decode(case["bundle"])
            self.assertEqual(verdict(verify.verify_bundle, data, found["public_key"]), case["verdict"], case["name"])
            self.assertNotEqual(verdict(verify.verify_bundle, data, found["wrong_key"]), "ok", case["name"])
            # Any key of the log from the receipt's own time on will do.
            if case["verdict"] == "ok":
                self.assertEqual(verdict(verify.verify_bundle, data, found["next_key"]), "ok", case["name"])

    def test_every_byte_counts(self):
        found = vectors("bundles.json")
        (data,) = [base64.b64decode(case["bundle"]) for case in found["cases"] if case["name"] == "forget"]
        for at in range(len(data)):
            for flip in (1 << at % 8, 0x80):
                changed = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
                self.assertNotEqual(verdict(verify.verify_bundle, changed, found["public_key"]), "ok", at)

    def test_truncation(self):
        found = vectors("bundles.json")
        data = base64.b64decode(found["cases"][1]["bundle"])
        for end in range(0, len(data), 7):
            self.assertNotEqual(verdict(verify.verify_bundle, data[:end], found["public_key"]), "ok", end)


class Logs(unittest.TestCase):
    def test_verdicts(self):
        found = vectors("logs.json")
        for case in found["logs"]:
            lines = [base64.b64decode(line) for line in case["log"]]
            check = verdict(verify.verify_log, lines, case["checkpoint"], found["public_key"])
            self.assertEqual(check, case["verdict"], case["name"])

    def test_every_byte_counts(self):
        found = vectors("logs.json")
        lines = [base64.b64decode(line) for line in found["logs"][0]["log"]]
        note = found["logs"][0]["checkpoint"].encode()

        def check(lines, note):
            try:
                text = note.decode()
            except UnicodeDecodeError:
                return "checkpoint"
            return verdict(verify.verify_log, lines, text, found["public_key"])

        self.assertEqual(check(lines, note), "ok")
        keys = keys_module.Keys(found["public_key"])
        for which, line in enumerate(lines):
            for at in range(len(line)):
                changed = line[:at] + bytes([line[at] ^ 1 << at % 8]) + line[at + 1 :]
                # A log is refused at the first receipt that is; only one that passes by itself needs the others.
                if verdict(lambda leaf: verify.read_signed(leaf).verify(keys), changed) == "ok":
                    self.assertNotEqual(check(lines[:which] + [changed] + lines[which + 1 :], note), "ok", (which, at))
            signed = verify.read_signed(line)
            if signed.receipt["keys"] is not None:
                verify.follow(keys, signed)
        for at in range(len(note)):
            changed = note[:at] + bytes([note[at] ^ 1 << at % 8]) + note[at + 1 :]
            self.assertNotEqual(check(lines, changed), "ok", at)

    def test_successions(self):
        found = vectors("logs.json")
        keys = keys_module.Keys(found["public_key"])
        verify.follow(keys, verify.read_signed(base64.b64decode(found["rotation"])))
        for case in found["successions"]:
            check = verdict(verify.verify_succession, case["old"], case["new"], case["proof"], keys)
            self.assertEqual(check, case["verdict"], case["name"])


class KeyText(unittest.TestCase):
    def test_weak_and_wrong_keys(self):
        good = vectors("bundles.json")["public_key"]
        keys_module.Key(good)
        for text in ("", "a", "a+b+c", good + "A", good.replace("+", "-"), good[:-1], " " + good, "x" * 1000):
            self.assertEqual(verdict(keys_module.Key, text), "key", text)
        for y in keys_module.WEAK:
            for sign in (0, 1 << 255):
                data = b"\1" + (y | sign).to_bytes(32, "little")
                key_id = merkle.sha256(b"weak\n", data)[:4].hex()
                text = f"weak+{key_id}+{base64.b64encode(data).decode()}"
                self.assertEqual(verdict(keys_module.Key, text), "key")


if __name__ == "__main__":
    unittest.main()
