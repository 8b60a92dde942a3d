//! Whole runs: a tiny one through every study, the structure of the quick report, and what is refused.

use std::fs;
use std::path::Path;

use crate::part::Study;
use crate::plan::Plan;
use crate::run::with_plan;
use crate::state::{Record, Values};
use crate::studies::{Context, measure};
use crate::{Error, Nobody, Part, Settings, Watch, data::Data, page};

fn settings(out: &Path) -> Settings {
    Settings {
        parts: Part::ALL.to_vec(),
        quick: true,
        data: None,
        out: out.into(),
        trials: None,
        seed: 1,
        threads: 1,
        force: false,
    }
}

/// The fields of a CSV that quotes only labels.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n'])
}

#[test]
fn a_tiny_run_measures_everything_and_every_number_of_its_page_is_in_a_csv() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let finished = with_plan(&settings, Plan::tiny(), &mut Nobody).unwrap();
    let html = fs::read_to_string(&finished.index).unwrap();
    let csv: Vec<String> = finished.files[1..].iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let known: std::collections::HashSet<&str> = csv.iter().flat_map(|text| fields(text)).collect();
    let values: Vec<&str> =
        html.split("<data value=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(values.len() > 150, "{} numbers", values.len());
    for value in values {
        assert!(known.contains(value), "{value} is in no CSV");
    }
    assert!(!html.contains("not run"), "every cell was measured");
    // What is the point of it all: exact forgetting leaves what retraining leaves.
    let record = fs::read_to_string(folder.path().join("state.jsonl")).unwrap();
    for line in record.lines().skip(1) {
        let record: Record = serde_json::from_str(line).unwrap();
        if ["injection", "head-injection", "review-injection"].contains(&record.study.as_str()) {
            assert!(record.values["exact"] <= 1e-9 && record.values["retrain"] <= 1e-9, "{line}");
        }
        if record.study == "distance" {
            assert!(record.values["exact"] <= 1e-6, "{line}");
        }
    }
    // The same again has nothing to do, and says so; half of it goes on.
    let again = with_plan(&settings, Plan::tiny(), &mut Nobody).unwrap();
    assert_eq!(again.trials, (0, finished.trials.0));
    assert_eq!(fs::read_to_string(&again.index).unwrap(), html);
    let half: Vec<&str> = record.lines().take(record.lines().count() / 2).collect();
    fs::write(folder.path().join("state.jsonl"), half.join("\n") + "\n{\"study\":\"ti").unwrap();
    let resumed = with_plan(&settings, Plan::tiny(), &mut Nobody).unwrap();
    assert_eq!(resumed.trials, (finished.trials.0 - (half.len() - 1), half.len() - 1));
}

/// Every trial of a plan with numbers that follow from its name.
fn invented(context: &Context) -> Vec<Record> {
    let studies = Part::ALL.iter().flat_map(|part| part.studies()).copied();
    let mut studies: Vec<Study> = studies.collect();
    studies.sort();
    studies.dedup();
    let jobs = studies.into_iter().flat_map(|study| measure(study, context).jobs());
    jobs.map(|job| Record {
        study: job.study.name().into(),
        cell: job.cell,
        trial: job.trial,
        seconds: 1.0,
        values: Values::from([("exact".into(), 0.0), ("INF".into(), 0.5), ("PRU".into(), 0.25)]),
    })
    .collect()
}

#[test]
fn the_quick_report_has_this_structure() {
    let folder = tempfile::tempdir().unwrap();
    let context = Context {
        plan: Plan::quick(),
        data: Data::new(None),
        seed: 1,
        threads: 1,
        cache: folder.path().into(),
    };
    let (page, _) = page::build(&context, &invented(&context), &settings(folder.path()));
    insta::assert_snapshot!(page.outline());
}

#[test]
fn the_full_report_has_the_papers_cells() {
    let folder = tempfile::tempdir().unwrap();
    let context = Context {
        plan: Plan::full(),
        data: Data::new(Some(folder.path())),
        seed: 1,
        threads: 1,
        cache: folder.path().into(),
    };
    let records = invented(&context);
    let of = |study: &str, cell: &str| records.iter().filter(|r| r.study == study && r.cell == cell).count();
    assert_eq!(of("times", "clothing reviews, d=3000"), 100);
    assert_eq!(of("injection", "k=100, p=0.1"), 50);
    assert_eq!(of("network-times", "AG News: heads"), 10);
    let (page, _) = page::build(&context, &records, &settings(folder.path()));
    let outline = page.outline();
    for part in [
        "table1-clothing-reviews",
        "table2-bbc-news",
        "table3",
        "table4",
        "table5",
        "l2",
        "figure1",
        "figure2",
    ] {
        assert!(outline.contains(part), "{part}");
    }
}

fn fails(change: impl FnOnce(&mut Settings)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path());
    change(&mut settings);
    with_plan(&settings, Plan::tiny(), &mut Nobody).unwrap_err()
}

#[test]
fn a_data_folder_that_lacks_a_file_is_named_with_what_it_is_for() {
    let empty = tempfile::tempdir().unwrap();
    let error = fails(|settings| settings.data = Some(empty.path().into()));
    let text = error.to_string();
    assert!(text.contains("womens-clothing.csv.gz is missing") && text.contains("table 1"), "{text}");
    assert!(error.hint().unwrap().contains("--data"));
    let error = fails(|settings| {
        settings.data = Some(empty.path().into());
        settings.parts = vec![Part::Figure1];
    });
    assert!(
        error.to_string().contains("bbc-text.csv") && error.to_string().contains("tables 2 and 3"),
        "{error}"
    );
    // What needs no file runs without.
    let folder = tempfile::tempdir().unwrap();
    let settings =
        Settings { data: Some(empty.path().into()), parts: vec![Part::L2], ..settings(folder.path()) };
    assert!(with_plan(&settings, Plan::tiny(), &mut Nobody).is_ok());
}

#[test]
fn too_few_rows_are_counted() {
    let data = tempfile::tempdir().unwrap();
    for set in ["womens-clothing/womens-clothing.csv", "amazon-musical/musical-instruments.csv"] {
        let path = data.path().join(set);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // The name says gzip; the reader goes by the content.
        fs::write(path.with_extension("csv.gz"), gzip("stars,title,summary,text\n5,a,b,good\n1,c,d,bad\n"))
            .unwrap();
    }
    let error = fails(|settings| {
        settings.data = Some(data.path().into());
        settings.parts = vec![Part::Membership];
    });
    let text = error.to_string();
    assert!(text.contains("has 2 rows") && text.contains("80 are needed"), "{text}");
}

/// Text as a gzip file of stored blocks, so that no compressor is needed here.
fn gzip(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let length = bytes.len() as u16;
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(bytes);
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    out.extend((!crc).to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

#[test]
fn settings_have_ranges_and_folders_owners() {
    assert!(matches!(fails(|s| s.trials = Some(0)), Error::Setting { name: "trials", .. }));
    assert!(matches!(fails(|s| s.threads = 0), Error::Setting { name: "threads", .. }));
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = fails(|s| s.out = file.path().join("below"));
    assert!(matches!(error, Error::File { .. }) && error.hint().unwrap().contains("--out"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let first = Settings { parts: vec![Part::L2], ..settings(folder.path()) };
    with_plan(&first, Plan::tiny(), &mut Nobody).unwrap();
    let page = fs::read_to_string(folder.path().join("index.html")).unwrap();
    let error = with_plan(&Settings { seed: 2, ..first.clone() }, Plan::tiny(), &mut Nobody).unwrap_err();
    assert!(error.to_string().contains("it was made with seed 1"), "{error}");
    assert_eq!(
        fs::read_to_string(folder.path().join("index.html")).unwrap(),
        page,
        "nothing was overwritten"
    );
}

#[test]
fn whoever_watches_can_stop_a_run_and_it_goes_on_later() {
    struct Once(std::cell::Cell<usize>);
    impl Watch for Once {
        fn start(&mut self, _what: &str, _amount: u64) {}
        fn at(&mut self, _done: u64) {
            self.0.set(self.0.get() + 1);
        }
        fn finish(&mut self) {}
        fn say(&mut self, _sentence: &str) {}
        fn stop(&self) -> bool {
            self.0.get() >= 3
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { parts: vec![Part::L2], ..settings(folder.path()) };
    let stopped = with_plan(&settings, Plan::tiny(), &mut Once(0.into()));
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(with_plan(&settings, Plan::tiny(), &mut Nobody).unwrap().trials, (5, 3));
}
