"""Receipts of efface, checked by an implementation of COSE receipts that is not ours: `scitt-cose` from PyPI."""

import base64
import json
import pathlib
import unittest

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from scitt_cose import attach_receipts, extract_receipts, parse_signed_statement, verify_receipt
from scitt_cose.cose_sign1 import verify_sign1
from scitt_cose.merkle import verify_consistency

HERE = pathlib.Path(__file__).parent


def pem(key):
    """A key of the form name+id+base64(0x01 and 32 bytes), as other tools read it."""
    data = base64.b64decode(key.split("+", 2)[2])[1:]
    return Ed25519PublicKey.from_public_bytes(data).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def bare(data):
    """The statement without its unprotected header: the entry of the log."""
    found = cbor2.loads(data)
    protected, _, payload, signature = found.value
    return cbor2.dumps(cbor2.CBORTag(18, [protected, {}, payload, signature]))


def verifies(data, signer, log):
    """Whether scitt-cose accepts the statement and its receipt. It raises nothing of its own on what it refuses."""
    statement = parse_signed_statement(data, public_key_pem=signer)
    if statement["signature_verified"] is not True:
        return False
    receipts = extract_receipts(data)
    entry = bare(data).hex()
    return bool(receipts) and all(
        verify_receipt(receipt, leaf_entry_hex=entry, log_public_key_pem=log).ok for receipt in receipts
    )


class ScittCose(unittest.TestCase):
    def setUp(self):
        found = json.loads((HERE / "vectors" / "bundles.json").read_text(encoding="utf-8"))
        self.old, self.new, self.wrong = (pem(found[name]) for name in ("public_key", "next_key", "wrong_key"))
        self.files = {
            case["name"]: base64.b64decode(case["bundle"]) for case in found["cases"] if case["verdict"] == "ok"
        }

    def test_every_sound_receipt_is_accepted(self):
        self.assertGreater(len(self.files), 10)
        for name, data in self.files.items():
            if name == "hand-over by the recovery key":
                continue
            signer = self.old if verifies(data, self.old, self.new) else self.new
            self.assertTrue(verifies(data, signer, self.new), name)
            self.assertFalse(verifies(data, self.wrong, self.new), name)
            self.assertFalse(verifies(data, signer, self.wrong), name)
            statement = parse_signed_statement(data, public_key_pem=signer)
            receipt = json.loads(statement["payload"])
            self.assertEqual(statement["issuer"], receipt["origin"])
            self.assertEqual(statement["subject"], receipt["id"])
            self.assertEqual(statement["content_type"], "application/vnd.efface.receipt+json")

    def test_the_proof_of_consistency_holds(self):
        data = self.files["forget"]
        receipt = cbor2.loads(data).value[1]["consistency"]
        (proof,) = cbor2.loads(receipt).value[1][396][-2]
        old, new, path = cbor2.loads(proof)
        previous = json.loads(cbor2.loads(data).value[2])["previous"]
        inclusion = extract_receipts(data)[0]
        root = verify_receipt(inclusion, leaf_entry_hex=bare(data).hex(), log_public_key_pem=self.new).root
        self.assertEqual(old, previous["size"])
        self.assertTrue(verify_consistency(previous["root"], root, old, new, [node.hex() for node in path]))
        verify_sign1(receipt, public_key_pem=self.new, detached_payload=bytes.fromhex(root))

    def test_every_tampered_byte_is_refused(self):
        # What a tool for SCITT reads: the statement and its receipt. The other labels are efface's own, and its verifiers
        # check every byte of those.
        data = self.files["forget"]
        plain = attach_receipts(bare(data), extract_receipts(data))
        self.assertTrue(verifies(plain, self.old, self.new))
        for at in range(len(plain)):
            for flip in (1 << at % 8, 0xFF):
                changed = plain[:at] + bytes([plain[at] ^ flip]) + plain[at + 1 :]
                try:
                    accepted = verifies(changed, self.old, self.new)
                except Exception:  # A message that does not parse is refused too.
                    accepted = False
                self.assertFalse(accepted, f"byte {at} of {len(plain)}, flipped by {flip:#x}")


if __name__ == "__main__":
    unittest.main()
