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

/// Text and JSON of every command that tells of a change name the method that did the work, what it
/// claims and how far from retraining the result can be.
#[test]
fn method_claim_and_bound_are_told_wherever_a_change_is() {
    for (options, method, claim) in [
        ("", "newton", "approximate"),
        (" --method influence", "influence", "approximate"),
        (" --method retrain", "retrain", "exact"),
    ] {
        let folder = Folder::new();
        let mut table = "id,who,x,z,y\n".to_owned();
        for at in 0..60 {
            let class = if (at * 7) % 11 < 5 { "a" } else { "b" };
            table.push_str(&format!(
                "r{at},p{},{},{},{class}\n",
                at % 20,
                at % 9,
                at % 7
            ));
        }
        std::fs::write(folder.path("rows.csv"), table).unwrap();
        folder.done("fit rows.csv --target y --model logistic --scale minmax --id id --subject who -o m.efface");
        let told = folder.run(&format!(
            "forget m.efface --ids r5 --allow-worse --receipt one.cose{options}"
        ));
        assert!(!told.err.contains("by auto"), "{told:?}");
        let json = folder.json(&format!(
            "forget m.efface --ids r6 --allow-worse --json{options}"
        ));
        let chosen = json["method"].as_str().unwrap().to_owned();
        if !options.is_empty() {
            assert_eq!(
                (chosen.as_str(), json["claim"].as_str()),
                (method, Some(claim))
            );
        }
        let claim = json["claim"].as_str().unwrap().to_owned();
        assert!(told.err.contains(&format!(" by {chosen}: ")), "{told:?}");
        assert!(
            told.err
                .contains(&format!("; claim {claim}; distance to retraining ")),
            "{told:?}"
        );
        assert!(told.err.matches("feature_scale").count() <= 1, "{told:?}");
        let log = folder.done("log m.efface");
        assert!(
            log.contains(" claim ") && log.contains(&chosen) && log.contains(&claim),
            "{log}"
        );
        let lines = folder.done("log m.efface --json");
        let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(
            (
                last["method"].as_str(),
                last["claim"]["kind"]
                    .as_str()
                    .or(last["claim"]["name"].as_str())
                    .is_some()
            ),
            (Some(chosen.as_str()), true),
            "{last}"
        );
        assert!(last["bound"]["source"].is_string(), "{last}");
        let page = folder.done("verify m.efface");
        for word in ["method", "claim", "bound", &chosen, &claim] {
            assert!(page.contains(word), "{word}: {page}");
        }
        std::fs::write(folder.path("m.pub"), folder.done("keys m.efface")).unwrap();
        let ended = folder.run("verify one.cose --key m.pub");
        let page = format!("{}{}", ended.out, ended.err);
        for word in [
            "method",
            "claim",
            "bound",
            &chosen,
            &claim,
            "the claim that is signed is",
        ] {
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(
            page.matches("the scale or the weights").count() <= 1,
            "{page}"
        );
        let told = folder.run(&format!(
            "forget --models . --subject who=p9 --request t1 --allow-worse{options}"
        ));
        for word in ["method", "claim", "bound", &chosen, &claim] {
            assert!(told.out.contains(word), "{word}: {told:?}");
        }
        assert!(told.err.matches("not covered").count() <= 1, "{told:?}");
    }
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
