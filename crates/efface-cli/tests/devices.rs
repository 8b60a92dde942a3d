//! A card that is asked for and cannot be used: the fit is done, and the user is told why.
#![allow(clippy::unwrap_used)]

mod common;

use common::Folder;

#[test]
fn a_card_that_cannot_be_used_is_told_and_the_processor_does_the_work() {
    let folder = Folder::with_houses();
    let plain = folder.json("fit houses.csv --target price --id house -o plain.efface --json");
    let ended =
        folder.run("fit houses.csv --target price --id house -o card.efface --device cuda --json");
    assert_eq!(ended.code, 0, "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&report["summary"]["rows"], &plain["summary"]["rows"]),
        (&7.into(), &7.into())
    );
    if cfg!(feature = "cuda") {
        // With a card, it is the one who multiplied; without one, the reason is given.
        let says = ["multiplied the rows", "--device cuda was not used: "];
        assert!(
            says.iter().any(|words| ended.err.contains(words)),
            "{ended:?}"
        );
    } else {
        let says = "--device cuda was not used: this program was built without the feature cuda; the processor did the work";
        assert!(ended.err.contains(says), "{ended:?}");
    }
    let one = folder.done("predict plain.efface houses.csv");
    assert_eq!(folder.done("predict card.efface houses.csv"), one);
}

#[test]
fn a_network_is_trained_where_it_can_be() {
    let folder = Folder::new();
    let line = |i: usize| {
        format!(
            "{},the {} of {}\n",
            ["a", "b"][i % 2],
            ["sea", "sky"][i % 2],
            ["fish", "bird"][i % 2]
        )
    };
    folder.write(
        "docs.csv",
        format!("topic,text\n{}", (0..20).map(line).collect::<String>()),
    );
    let fit = "fit docs.csv --model lstm --text text --target topic --hidden 4 --layers 2 --embedding-width 5 --epochs 2 --threads 1";
    folder.done(&format!("{fit} -o plain.efface"));
    let ended = folder.run(&format!("{fit} --device cuda -o card.efface --json"));
    assert_eq!(ended.code, 0, "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let device = &report["summary"]["network"]["device"];
    if ended.err.contains("did the work of the encoder") {
        // What a card made says so, wherever it is told of.
        assert!(device.is_string(), "{report}");
        assert!(
            folder
                .done("inspect card.efface")
                .contains("device of the fit")
        );
    } else {
        assert!(
            ended.err.contains("--device cuda was not used: "),
            "{ended:?}"
        );
        assert!(device.is_null(), "{report}");
        assert_eq!(
            folder.done("predict card.efface docs.csv"),
            folder.done("predict plain.efface docs.csv")
        );
    }
}

#[test]
fn the_processor_needs_no_word() {
    let folder = Folder::with_houses();
    let ended = folder.run("fit houses.csv --target price -o cpu.efface --device cpu");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!ended.err.contains("device"), "{ended:?}");
}

#[test]
fn other_models_and_other_devices_are_refused() {
    let folder = Folder::with_houses();
    let logistic = "fit houses.csv --target city --model logistic --device cuda -o a.efface";
    folder.fails(
        logistic,
        2,
        &[
            "--device has no meaning for --model logistic",
            "it is for --model ridge",
        ],
    );
    folder.fails(
        "fit houses.csv --target price --device tpu -o a.efface",
        2,
        &["tpu", "cpu, cuda"],
    );
}
