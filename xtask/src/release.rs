//! What must hold before a release, beside the tests: licences, bans and sources of everything that
//! is built in, known vulnerabilities where their database can be reached, and a list of the parts
//! (an SBOM in CycloneDX's form).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::root;

/// The release of cargo-deny that is installed where none is.
const DENY: &str = "0.20.2";

/// The crates that users get; what only tests and tools need is not in the list of parts.
const SHIPPED: [&str; 2] = ["efface-cli", "efface-py"];

pub(crate) fn check() -> Result<()> {
    let deny = tool("cargo-deny", DENY)?;
    let deny = deny.to_string_lossy();
    crate::run(
        &deny,
        &["--all-features", "check", "licenses", "bans", "sources"],
    )?;
    advisories(&deny)?;
    let list = parts_list()?;
    let path = root()?.join("target/efface.cdx.json");
    let count = list["components"].as_array().map_or(0, Vec::len);
    std::fs::write(&path, serde_json::to_string_pretty(&list)?)
        .context("cannot write the list of parts")?;
    println!("{}: {count} parts", path.display());
    Ok(())
}

/// A tool from the search path, or from the project's own tools, where it is installed if need be.
pub(crate) fn tool(name: &str, version: &str) -> Result<PathBuf> {
    if Command::new(name).arg("--version").output().is_ok() {
        return Ok(name.into());
    }
    let tools = root()?.join("target/tools");
    let program = tools.join("bin").join(name);
    if !program.exists() {
        let tools = tools.to_string_lossy();
        crate::run(
            "cargo",
            &[
                "install",
                name,
                "--version",
                version,
                "--locked",
                "--root",
                &tools,
            ],
        )?;
    }
    Ok(program)
}

/// Known vulnerabilities. Their database is fetched; where that cannot be done, it is said and
/// nothing is claimed.
fn advisories(deny: &str) -> Result<()> {
    let fetched = Command::new(deny)
        .args(["fetch", "db"])
        .current_dir(root()?)
        .output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        println!(
            "skipped: the database of advisories cannot be reached, vulnerabilities are not checked"
        );
        return Ok(());
    }
    crate::run(deny, &["--all-features", "check", "advisories"])
}

/// What the shipped crates are made of, as CycloneDX 1.6.
fn parts_list() -> Result<Value> {
    let output = Command::new("cargo")
        .args([
            "metadata",
            "--format-version",
            "1",
            "--all-features",
            "--locked",
        ])
        .current_dir(root()?)
        .output()
        .context("cannot start cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let lock =
        std::fs::read_to_string(root()?.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    Ok(parts_of(&metadata, &checksums(&lock)))
}

fn parts_of(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let packages: BTreeMap<&str, &Value> = list(&metadata["packages"])
        .map(|p| (text(&p["id"]), p))
        .collect();
    let needs: BTreeMap<&str, BTreeSet<&str>> = list(&metadata["resolve"]["nodes"])
        .map(|node| {
            let built_in = |dep: &&Value| list(&dep["dep_kinds"]).any(|kind| kind["kind"] != "dev");
            (
                text(&node["id"]),
                list(&node["deps"])
                    .filter(built_in)
                    .map(|dep| text(&dep["pkg"]))
                    .collect(),
            )
        })
        .collect();
    let shipped = |package: &&Value| SHIPPED.contains(&text(&package["name"]));
    let mut open: Vec<&str> = packages
        .values()
        .copied()
        .filter(shipped)
        .map(|p| text(&p["id"]))
        .collect();
    let mut parts: BTreeSet<&str> = BTreeSet::new();
    while let Some(id) = open.pop() {
        if parts.insert(id) {
            open.extend(needs.get(id).into_iter().flatten());
        }
    }
    let address = |id: &str| {
        let package = packages.get(id).copied().unwrap_or(&Value::Null);
        format!(
            "pkg:cargo/{}@{}",
            text(&package["name"]),
            text(&package["version"])
        )
    };
    let component = |id: &&str| {
        let package = packages.get(*id).copied().unwrap_or(&Value::Null);
        let name = text(&package["name"]);
        let version = text(&package["version"]);
        let mut part = json!({
            "type": "library", "bom-ref": address(id), "name": name, "version": version, "purl": address(id),
        });
        if let Some(license) = package["license"].as_str() {
            // Cargo takes the older sign for `OR`, which the standard does not know.
            part["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        }
        if let Some(sum) = checksums.get(&(name.to_owned(), version.to_owned())) {
            part["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        part
    };
    let graph = |id: &&str| {
        let on: Vec<String> = needs
            .get(*id)
            .into_iter()
            .flatten()
            .map(|id| address(id))
            .collect();
        json!({ "ref": address(id), "dependsOn": on })
    };
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": "efface", "name": "efface", "version": env!("CARGO_PKG_VERSION"),
        } },
        "components": parts.iter().map(component).collect::<Vec<_>>(),
        "dependencies": parts.iter().map(graph).collect::<Vec<_>>(),
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The checksums of a lock file by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |package: &str, name: &str| {
        let start = format!("{name} = \"");
        package
            .lines()
            .find_map(|line| Some(line.strip_prefix(&start)?.strip_suffix('"')?.to_owned()))
    };
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter_map(|package| {
            Some((
                (field(package, "name")?, field(package, "version")?),
                field(package, "checksum")?,
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_holds_what_is_built_in_and_not_what_tests_need() {
        let package = |name: &str| {
            let license = "MIT/Apache-2.0";
            json!({ "id": name, "name": name, "version": "1.0.0", "license": license })
        };
        let needs =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("efface-cli"), package("serde"), package("proptest"), package("xtask")],
            "resolve": { "nodes": [
                { "id": "efface-cli", "deps": [needs("serde", Value::Null), needs("proptest", "dev".into())] },
                { "id": "serde", "deps": [] },
                { "id": "xtask", "deps": [needs("serde", Value::Null)] },
            ] },
        });
        let lock = "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n";
        let found = parts_of(&metadata, &checksums(lock));
        let names: Vec<&str> = list(&found["components"])
            .map(|part| text(&part["name"]))
            .collect();
        assert_eq!(names, ["efface-cli", "serde"]);
        assert_eq!(found["components"][1]["hashes"][0]["content"], "00ff");
        assert_eq!(
            found["components"][1]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(
            found["dependencies"][0]["dependsOn"],
            json!(["pkg:cargo/serde@1.0.0"])
        );
    }
}
