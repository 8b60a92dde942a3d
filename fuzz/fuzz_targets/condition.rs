#![no_main]
//! Arbitrary text as a condition on rows (`--where`): a condition, or an error that names a place
//! in the text, never a panic. A condition that was read holds for any row or its negation does,
//! and its columns may be missing.

use efface::features::Cell;
use efface_io::RowCondition;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(condition) = RowCondition::parse(text) else {
        return;
    };
    let cells = [
        Cell::Missing,
        Cell::Number(-1.5),
        Cell::Text("2026-03-02".into()),
        Cell::Text(String::new()),
    ];
    let negated = RowCondition::parse(&format!("not ({text})"));
    for cell in &cells {
        let holds = condition.holds(&|_| Some(cell));
        // One that is as long or as deep as allowed has no room for a negation.
        if let Ok(negated) = &negated {
            assert_ne!(negated.holds(&|_| Some(cell)), holds);
        }
    }
    condition.holds(&|_| None);
    assert!(
        condition
            .columns()
            .iter()
            .all(|name| text.len() >= name.len())
    );
});
