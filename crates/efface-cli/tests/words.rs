//! What the command says: one line where four said it, plurals, hints that name only what was
//! given.

mod common;

use common::Folder;

#[test]
fn what_is_not_covered_is_one_line_unless_it_is_asked_for() {
    let folder = Folder::with_houses();
    let told = folder.run("forget houses.efface --ids h1").err;
    assert_eq!(
        (
            told.matches("not covered").count(),
            told.matches("kept beside").count()
        ),
        (0, 1),
        "{told}"
    );
    assert!(told.contains("forgotten_ids, storage_blocks"), "{told}");
    assert!(told.contains("(--explain)"), "{told}");
    let told = folder.run("forget houses.efface --ids h2 --explain").err;
    assert!(
        told.contains("note: kept beside: what a file system or a drive keeps"),
        "{told}"
    );
    let page = folder.done("inspect houses.efface");
    assert_eq!(page.matches("kept beside").count(), 1, "{page}");
    assert!(
        folder
            .done("inspect houses.efface --explain")
            .matches("kept beside")
            .count()
            > 1
    );
}

#[test]
fn hints_name_only_options_that_were_given() {
    let folder = Folder::with_houses();
    let hint = |line: &str| {
        let told = folder.run(line).err;
        told.lines()
            .find(|line| line.starts_with("hint: "))
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        hint("forget houses.efface --ids h1 --rounds 2"),
        "hint: add --method projection_residual"
    );
    assert_eq!(
        hint("forget houses.efface --ids h1 --method projection_residual --rounds 2 --measure"),
        "hint: leave out --measure"
    );
    assert_eq!(
        hint("forget houses.efface --ids h1 --method scrub --tolerance 1"),
        "hint: leave out --tolerance"
    );
}

#[test]
fn durations_are_told_as_they_are_typed_and_requests_with_their_time() {
    let folder = Folder::with_houses();
    let page = folder.done(
        "policy houses.efface --delay 12h --expose-forgotten --settle-after 9 --settle-within 15m",
    );
    assert!(
        page.contains("12h") && page.contains("9 at a time, or after 15m"),
        "{page}"
    );
    folder.done("keys houses.efface -q");
    folder.write("houses.pub", folder.done("keys houses.efface"));
    folder
        .done("forget houses.efface --ids h1 --requested-at 2026-03-02T09:15:00Z --receipt r.cose");
    let told = folder.done("verify r.cose --key houses.pub");
    assert!(
        told.contains("requested") && told.contains("2026-03-02T09:15:00.000Z"),
        "{told}"
    );
    let told = folder.run("settle houses.efface").err;
    assert!(told.contains("settled: 1 row scrubbed"), "{told}");
}

#[test]
fn a_bound_that_nobody_knows_is_not_told_as_a_number() {
    let folder = Folder::with_houses();
    folder.done(
        "fit houses.csv --target city --ignore owner,house --model logistic --positive Lyon -o l.efface",
    );
    let told = folder
        .run("forget l.efface --ids 0 --method projection_residual")
        .err;
    let page = folder.done("inspect l.efface");
    for text in [told, page] {
        assert!(!text.contains("unknown"), "{text}");
        assert!(text.contains("not known"), "{text}");
    }
}

#[test]
fn a_fit_says_when_a_forget_will_read_all_rows() {
    let folder = Folder::with_houses();
    let fit = "fit houses.csv --target price --id house --subject owner";
    let told = folder
        .run(&format!("{fit} --curvature iterative -o i.efface"))
        .err;
    assert!(
        told.contains(
            "note: no curvature is kept for 4 features: a forget goes through all 7 rows"
        ),
        "{told}"
    );
    assert!(
        !folder
            .run(&format!("{fit} -o f.efface"))
            .err
            .contains("no curvature")
    );
}

#[test]
fn a_fit_that_misses_its_tolerance_ends_with_a_code() {
    let folder = Folder::with_houses();
    let told = folder.run(
        "fit houses.csv --target price --id house --subject owner --tolerance 1e-30 -o t.efface",
    );
    assert_eq!(told.code, 8, "{told:?}");
    assert!(
        told.err.contains("above the tolerance of 1.0e-30"),
        "{}",
        told.err
    );
    assert_eq!(
        folder.json("inspect t.efface --json")["rows"],
        7,
        "it is done all the same"
    );
}
