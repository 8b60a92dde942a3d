"""Holds the published schemas to the vectors, with a validator that is not ours (`jsonschema`)."""

import json
import pathlib
import unittest

import jsonschema
import referencing

HERE = pathlib.Path(__file__).parent
DOCS = HERE.parent / "docs"


def vectors(name):
    return json.loads((HERE / "vectors" / name).read_text(encoding="utf-8"))


def validators():
    receipt, bundle = (json.loads((DOCS / f"{name}.schema.json").read_text()) for name in ("receipt", "bundle"))
    registry = referencing.Registry().with_resource(receipt["$id"], referencing.Resource.from_contents(receipt))
    make = jsonschema.Draft202012Validator
    make.check_schema(receipt)
    make.check_schema(bundle)
    return make(receipt), make(bundle, registry=registry)


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
        receipts, _ = validators()
        for text in vectors("rules.json")["sound"]:
            receipts.validate(json.loads(text))

    def test_rules_of_the_schema_refuse(self):
        receipts, _ = validators()
        refused = {
            case["rule"]
            for case in vectors("rules.json")["broken"]
            if not receipts.is_valid(json.loads(case["receipt"]))
        }
        named = named_rules(receipts.schema)
        self.assertGreater(len(named), 15)
        self.assertEqual(named - refused, set(), "the schema names rules that it does not enforce")

    def test_bundles(self):
        _, bundles = validators()
        for case in vectors("bundles.json")["cases"]:
            if case["verdict"] == "ok":
                bundles.validate(json.loads(case["bundle"]))
        for name in ("2^53 rows", "no consistency proof", "a null was left out", "an unknown field"):
            (text,) = [case["bundle"] for case in vectors("bundles.json")["cases"] if case["name"] == name]
            self.assertFalse(bundles.is_valid(json.loads(text)), name)


if __name__ == "__main__":
    unittest.main()
