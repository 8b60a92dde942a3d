//! Keeps docs/receipt.schema.json and docs/receipt.md in step with the types. The conditions of the
//! schema, and docs/receipt.cddl, are tested by verify/test_schemas.py, with validators that are
//! not ours.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod common;

use std::collections::BTreeSet;

use common::*;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/receipt.schema.json");
const PAGE: &str = include_str!("../../../docs/receipt.md");

fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    while let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        schema = root.pointer(target.strip_prefix('#').unwrap()).unwrap();
    }
    schema
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolve(root, schema);
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let fitting = choices
            .iter()
            .filter(|choice| fits(root, choice, value).is_ok())
            .count();
        return if fitting == 1 {
            Ok(())
        } else {
            Err(format!("{value} fits {fitting} of the choices"))
        };
    }
    if let Some(expected) = schema.get("const") {
        return if expected == value {
            Ok(())
        } else {
            Err(format!("{value} is not {expected}"))
        };
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return if choices.contains(value) {
            Ok(())
        } else {
            Err(format!("{value} is not listed"))
        };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        other => return Err(format!("a schema without a type: {other}")),
    };
    if !types.iter().any(|name| is(name, value)) {
        return Err(format!("{value} is not {types:?}"));
    }
    if let Some(items) = value.as_array() {
        return items
            .iter()
            .try_for_each(|item| fits(root, &schema["items"], item));
    }
    if let Some(members) = value.as_object() {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            // An open object: settings.
            return Ok(());
        };
        if schema["additionalProperties"] != Value::Bool(false) {
            return Err("an object that lets anything through".to_owned());
        }
        let named: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let required: BTreeSet<&str> = schema["required"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let found: BTreeSet<&str> = members.keys().map(String::as_str).collect();
        if named != required || named != found {
            return Err(format!(
                "named {named:?}, required {required:?}, found {found:?}"
            ));
        }
        for (key, member) in members {
            fits(root, &properties[key], member).map_err(|problem| format!("{key}: {problem}"))?;
        }
    }
    Ok(())
}

#[test]
fn every_receipt_fits_the_published_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    for signed in grown_log().signed {
        let receipt = serde_json::to_value(&signed.receipt).unwrap();
        fits(&schema, &schema, &receipt).unwrap();
        let mut more = receipt.clone();
        more["extra"] = Value::Null;
        assert!(fits(&schema, &schema, &more).is_err());
        let mut less = receipt;
        less.as_object_mut().unwrap().remove("seed");
        assert!(fits(&schema, &schema, &less).is_err());
    }
}

fn names(value: &Value, found: &mut BTreeSet<String>) {
    if let Some(properties) = value.get("properties").and_then(Value::as_object) {
        found.extend(properties.keys().cloned());
    }
    match value {
        Value::Object(members) => members.values().for_each(|member| names(member, found)),
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_explained() {
    let mut found = BTreeSet::new();
    names(&serde_json::from_str(SCHEMA).unwrap(), &mut found);
    assert!(found.len() > 40);
    for name in found {
        let told = [
            format!("`{name}`"),
            format!(".{name}`"),
            format!("`{name}."),
        ];
        assert!(
            told.iter().any(|form| PAGE.contains(form)),
            "docs/receipt.md says nothing of {name}"
        );
    }
}

#[test]
fn every_rule_is_listed() {
    for rule in efface_receipt::RULES {
        let line = format!("| `{}` | {} |", rule.name, rule.says);
        assert!(PAGE.contains(&line), "docs/receipt.md has no line {line}");
    }
}

#[test]
fn every_limit_is_listed() {
    use efface_receipt::*;
    for (limit, value) in [
        ("bytes of a receipt in JSON", MAX_RECEIPT_BYTES as u64),
        (
            "bytes of a receipt with its proofs",
            MAX_BUNDLE_BYTES as u64,
        ),
        ("levels of nesting", MAX_DEPTH as u64),
        ("values in one document", MAX_VALUES as u64),
        ("bytes of a checkpoint", MAX_NOTE_BYTES as u64),
        (
            "signature lines of a checkpoint",
            MAX_NOTE_SIGNATURES as u64,
        ),
        ("bytes of a list of keys", MAX_KEY_LIST_BYTES as u64),
        ("keys in a list", MAX_KEYS as u64),
        ("bytes of an evidence pack", MAX_PACK_BYTES as u64),
        (
            "bytes of the list of digests in it",
            MAX_PACK_LIST_BYTES as u64,
        ),
        ("bytes of an origin", MAX_NAME_BYTES as u64),
        ("bytes of a text", MAX_TEXT_BYTES as u64),
        ("characters of a code", MAX_CODE_BYTES as u64),
        ("entries of a list, and settings", MAX_LIST as u64),
        (
            "receipts that name keys, beside a receipt",
            MAX_ROTATIONS as u64,
        ),
        ("an integer, and receipts of a log", MAX_INTEGER),
        ("a seed", u64::MAX),
    ] {
        let line = format!("| {limit} | {value} |");
        assert!(PAGE.contains(&line), "docs/receipt.md has no line {line}");
    }
}
