"""Holds the published schemas to the vectors, with validators that are not ours (`jsonschema`, `pycddl`)."""

import base64
import json
import pathlib
import re
import unittest

import cbor2
import jsonschema
import pycddl

HERE = pathlib.Path(__file__).parent
DOCS = HERE.parent / "docs"


def vectors(name):
    return json.loads((HERE / "vectors" / name).read_text(encoding="utf-8"))


def receipt_validator():
    schema = json.loads((DOCS / "receipt.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def piece_validator(rule):
    """A validator of one rule of receipt.cddl. It does not look into embedded CBOR: pycddl confuses levels there."""
    text = (DOCS / "receipt.cddl").read_text(encoding="utf-8")
    return pycddl.Schema(f"start = {rule}\n" + re.sub(r"bstr \.cbor [a-z-]+", "bstr", text))


def check_receipt(data, rule, number):
    piece_validator(rule + "-receipt").validate_cbor(data)
    protected, unprotected, _, _ = cbor2.loads(data).value
    piece_validator("head-header").validate_cbor(protected)
    piece_validator(rule).validate_cbor(unprotected[396][number][0])


def check_file(data, rule="receipt-file"):
    """A file, and every piece of CBOR that is embedded in it."""
    piece_validator(rule).validate_cbor(data)
    protected, unprotected, payload, signature = cbor2.loads(data).value
    piece_validator("statement-header").validate_cbor(protected)
    check_receipt(unprotected[394][0], "inclusion", -1)
    if "consistency" in unprotected:
        check_receipt(unprotected["consistency"], "consistency", -2)
    for link in unprotected.get("keys", []):
        check_file(link, "key-link")
    leaf = cbor2.dumps(cbor2.CBORTag(18, [protected, {}, payload, signature]))
    piece_validator("leaf").validate_cbor(leaf)


def named_rules(schema):
    """The rules that a schema says it has, anywhere in it."""
    if isinstance(schema, list):
        return set().union(*map(named_rules, schema))
    if not isinstance(schema, dict):
        return set()
    comment = schema.get("$comment", "")
    found = {comment.removeprefix("rule ")} if comment.startswith("rule ") else set()
    return found.union(*map(named_rules, schema.values()))


class Schemas(unittest.TestCase):
    def test_sound_receipts_fit(self):
        receipts = receipt_validator()
        for text in vectors("rules.json")["sound"]:
            receipts.validate(json.loads(text))

    def test_rules_of_the_schema_refuse(self):
        receipts = receipt_validator()
        refused = {
            case["rule"]
            for case in vectors("rules.json")["broken"]
            if not receipts.is_valid(json.loads(case["receipt"]))
        }
        named = named_rules(receipts.schema)
        self.assertGreater(len(named), 15)
        self.assertEqual(named - refused, set(), "the schema names rules that it does not enforce")

    def test_files(self):
        for case in vectors("bundles.json")["cases"]:
            data = base64.b64decode(case["bundle"])
            if case["verdict"] == "ok":
                check_file(data)
            if case["name"] in ("the statement alone", "cut short", "too deep"):
                with self.assertRaises(pycddl.ValidationError, msg=case["name"]):
                    check_file(data)


if __name__ == "__main__":
    unittest.main()
