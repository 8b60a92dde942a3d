//! Fit, forget, verify: a model file forgets a person, and its receipt is checked with the public
//! key alone.
//!
//! `cargo run -p efface-engine --example receipt`

use efface_engine::{Engine, FitRequest, ForgetOptions, ForgetRequest, RowSelection, Silent, fit};
use efface_io::Source;
use efface_receipt::{KeyRing, verify_bytes};

const HOUSES: &str =
    "house,owner,rooms,price\nh1,ann,3,210\nh2,bob,5,340\nh3,ann,2,150\nh4,cy,4,280\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("houses.efface");
    let mut request = FitRequest::new(Source::from_bytes("houses.csv", HOUSES, None)?);
    request.targets = vec!["price".into()];
    request.id = Some("house".into());
    request.subject = Some("owner".into());
    fit(&request, &path, false, &Silent)?;

    let mut engine = Engine::open(&path)?;
    let ann = RowSelection::Subject {
        column: "owner".into(),
        value: "ann".into(),
    };
    let report = engine.forget(&ForgetRequest::new(ann), &ForgetOptions::default())?;
    println!(
        "forgot {} rows: {}, bound {:.0e}",
        report.forgotten, report.claim, report.bound
    );

    // What follows needs the bundle and the key, and no model.
    let receipt = report.receipt.ok_or("a forget leaves a receipt")?;
    let bundle = engine.bundle(&receipt.id)?.to_bytes()?;
    // What an auditor gets: the public keys of the log, one a line.
    let keys: String = engine
        .public_keys()?
        .iter()
        .map(|key| format!("{key}\n"))
        .collect();
    let verified = verify_bytes(&bundle, &KeyRing::parse(&keys)?)?;
    println!(
        "receipt {} holds: {} rows out",
        verified.receipt.id, verified.receipt.rows.removed
    );
    Ok(())
}
