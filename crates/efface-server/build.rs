//! Takes the verifier for browsers along, if `cargo xtask verifier` has made it.

use std::path::PathBuf;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(browser_verifier)");
    println!("cargo::rerun-if-env-changed=EFFACE_VERIFIER");
    let workspace = PathBuf::from("../../target/verifier/efface-verifier.wasm.gz");
    let path = std::env::var_os("EFFACE_VERIFIER").map_or(workspace, PathBuf::from);
    println!("cargo::rerun-if-changed={}", path.display());
    if let Ok(path) = path.canonicalize() {
        println!("cargo::rustc-cfg=browser_verifier");
        println!("cargo::rustc-env=EFFACE_VERIFIER_WASM={}", path.display());
    }
}
