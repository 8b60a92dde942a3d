//! Keeps docs/receipt.schema.json and the types in step, with as much of JSON Schema as that file uses.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

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

/// Whether a value is as an `if` or a `then` says: only the members that it names count.
fn meets(schema: &Value, value: &Value) -> bool {
    let constant = schema.get("const").is_none_or(|expected| expected == value);
    let kind = schema.get("type").and_then(Value::as_str).is_none_or(|name| is(name, value));
    let named = schema.get("properties").and_then(Value::as_object);
    let members = named.is_none_or(|named| {
        named.iter().all(|(key, schema)| value.get(key).is_none_or(|member| meets(schema, member)))
    });
    constant && kind && members
}

fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolve(root, schema);
    if let (Some(condition), Some(consequence)) = (schema.get("if"), schema.get("then"))
        && meets(condition, value)
        && !meets(consequence, value)
    {
        return Err("the consequence of a condition does not hold".to_owned());
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let fitting = choices.iter().filter(|choice| fits(root, choice, value).is_ok()).count();
        return if fitting == 1 { Ok(()) } else { Err(format!("{value} fits {fitting} of the choices")) };
    }
    if let Some(expected) = schema.get("const") {
        return if expected == value { Ok(()) } else { Err(format!("{value} is not {expected}")) };
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return if choices.contains(value) { Ok(()) } else { Err(format!("{value} is not listed")) };
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
        return items.iter().try_for_each(|item| fits(root, &schema["items"], item));
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
        let required: BTreeSet<&str> =
            schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let found: BTreeSet<&str> = members.keys().map(String::as_str).collect();
        if named != required || named != found {
            return Err(format!("named {named:?}, required {required:?}, found {found:?}"));
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
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
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

#[test]
fn an_exact_claim_without_a_bound_does_not_fit() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let exact = serde_json::to_value(&log().signed[1].receipt).unwrap();
    assert_eq!(exact["claim"]["kind"], "exact");
    fits(&schema, &schema, &exact).unwrap();
    for missing in ["/bound", "/bound/distance", "/bound/relative"] {
        let mut receipt = exact.clone();
        *receipt.pointer_mut(missing).unwrap() = Value::Null;
        assert!(fits(&schema, &schema, &receipt).is_err(), "{missing}");
        receipt["claim"] = serde_json::json!({"kind": "approximate"});
        fits(&schema, &schema, &receipt).unwrap();
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
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut found = BTreeSet::new();
    names(&schema, &mut found);
    assert!(found.len() > 40);
    for name in found {
        let told = [format!("`{name}`"), format!(".{name}`"), format!("`{name}.")];
        assert!(told.iter().any(|form| PAGE.contains(form)), "docs/receipt.md says nothing of {name}");
    }
}
