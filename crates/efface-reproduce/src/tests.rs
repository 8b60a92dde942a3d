//! Whole runs: a tiny one through every study, the structure of the quick report, and what is
//! refused.

use std::fs;
use std::path::Path;

use efface_report::Page;

use crate::part::PaperStudy;
use crate::plan::StudyPlan;
use crate::run::with_plan;
use crate::state::{TrialRecord, Values};
use crate::studies::{StudyContext, measure};
use crate::{Error, PaperPart, ReproduceSettings, RunWatch, SilentWatch, data::DataFolder, page};

fn settings(out: &Path) -> ReproduceSettings {
    ReproduceSettings {
        parts: PaperPart::ALL.to_vec(),
        quick: true,
        data: None,
        out: out.into(),
        trials: None,
        seed: 1,
        threads: 1,
        force: false,
    }
}

/// The quick settings on generated data.
fn quick(cache: &Path) -> StudyContext {
    StudyContext {
        plan: StudyPlan::quick(),
        data: DataFolder::new(None),
        seed: 1,
        threads: 1,
        cache: cache.into(),
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
    let finished = with_plan(&settings, StudyPlan::tiny(), &mut SilentWatch).unwrap();
    let html = fs::read_to_string(&finished.index).unwrap();
    let csv: Vec<String> = finished.files[1..]
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let known: std::collections::HashSet<&str> = csv.iter().flat_map(|text| fields(text)).collect();
    let values: Vec<&str> = html
        .split("<data value=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(values.len() > 150, "{} numbers", values.len());
    for value in values {
        assert!(known.contains(value), "{value} is in no CSV");
    }
    assert!(!html.contains("not run"), "every cell was measured");
    // What is the point of it all: exact forgetting leaves what retraining leaves.
    let record = fs::read_to_string(folder.path().join("state.jsonl")).unwrap();
    for line in record.lines().skip(1) {
        let record: TrialRecord = serde_json::from_str(line).unwrap();
        if ["injection", "head-injection", "review-injection"].contains(&record.study.as_str()) {
            assert!(
                record.values["exact"] <= 1e-9 && record.values["retrain"] <= 1e-9,
                "{line}"
            );
        }
        if record.study == "distance" {
            let exact = record
                .values
                .iter()
                .filter(|(name, _)| name.ends_with(" exact"));
            assert!(
                exact.clone().count() == 2 && exact.into_iter().all(|(_, value)| *value <= 1e-6),
                "{line}"
            );
        }
        if record.study == "adaptive" {
            let value = |name: &str| record.values[name];
            assert!(
                value("T=1 after") < 1e-12 && value("T=4 after") > 1e-6,
                "{line}"
            );
            assert!(
                value("ridge before") > 1e-6 && value("ridge after") < 1e-9,
                "{line}"
            );
        }
        if record.study == "times" {
            assert!(
                record.values["refit s"] > 0.0 && record.values["k=5 Newton step s"] > 0.0,
                "{line}"
            );
        }
    }
    // A second run of the same settings has nothing to do, and says so; an interrupted one goes on.
    let again = with_plan(&settings, StudyPlan::tiny(), &mut SilentWatch).unwrap();
    assert_eq!(again.trials, (0, finished.trials.0));
    assert_eq!(fs::read_to_string(&again.index).unwrap(), html);
    let half: Vec<&str> = record.lines().take(record.lines().count() / 2).collect();
    fs::write(
        folder.path().join("state.jsonl"),
        half.join("\n") + "\n{\"study\":\"ti",
    )
    .unwrap();
    let resumed = with_plan(&settings, StudyPlan::tiny(), &mut SilentWatch).unwrap();
    assert_eq!(
        resumed.trials,
        (finished.trials.0 - (half.len() - 1), half.len() - 1)
    );
}

/// Every trial of a plan with numbers that follow from its name.
fn invented(context: &StudyContext) -> Vec<TrialRecord> {
    let studies = PaperPart::ALL
        .iter()
        .flat_map(|part| part.studies())
        .copied();
    let mut studies: Vec<PaperStudy> = studies.collect();
    studies.sort();
    studies.dedup();
    let jobs = studies
        .into_iter()
        .flat_map(|study| measure(study, context).jobs());
    jobs.map(|job| TrialRecord {
        study: job.study.name().into(),
        cell: job.cell,
        trial: job.trial,
        seconds: 1.0,
        values: Values::from([
            ("exact".into(), 0.0),
            ("retrain".into(), 0.0),
            ("INF".into(), 0.5),
            ("PRU".into(), 0.25),
        ]),
    })
    .collect()
}

#[test]
fn the_quick_report_has_this_structure() {
    let folder = tempfile::tempdir().unwrap();
    let context = quick(folder.path());
    let (page, _) = page::build(&context, &invented(&context), &settings(folder.path()));
    insta::assert_snapshot!(page.outline());
}

/// The findings of one trial a cell, whose numbers follow from the study and the cell.
fn findings(values: impl Fn(PaperStudy, &str) -> Vec<(&'static str, f64)>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let context = quick(folder.path());
    let studies = PaperPart::ALL
        .iter()
        .flat_map(|part| part.studies())
        .copied();
    let jobs = studies
        .flat_map(|study| measure(study, &context).jobs())
        .filter(|job| job.trial == 0);
    let records = jobs.map(|job| {
        let values = values(job.study, &job.cell)
            .into_iter()
            .map(|(name, value)| (name.to_string(), value));
        let study = job.study.name().into();
        let values = values.collect();
        TrialRecord {
            study,
            cell: job.cell,
            trial: 0,
            seconds: 1.0,
            values,
        }
    });
    let (_, found) = page::build(
        &context,
        &records.collect::<Vec<_>>(),
        &settings(folder.path()),
    );
    found
        .iter()
        .map(|text| text.plain())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_finding_says_the_opposite_when_the_numbers_do() {
    let injection = |exact: f64, sparser: f64| {
        move |study: PaperStudy, cell: &str| match study {
            PaperStudy::Injection => {
                let projection = if cell.ends_with("p=0.5") {
                    0.5
                } else {
                    sparser
                };
                vec![
                    ("exact", exact),
                    ("retrain", 0.0),
                    ("PRU", projection),
                    ("INF", 1.0),
                ]
            }
            _ => Vec::new(),
        }
    };
    let good = findings(injection(0.0, 0.2));
    assert!(
        good.contains("Exact forgetting forgets") && good.contains("table 4, reproduces"),
        "{good}"
    );
    let bad = findings(injection(0.3, 0.6));
    assert!(
        bad.contains("leaves more than it should") && bad.contains("at most 0.3"),
        "{bad}"
    );
    assert!(
        bad.contains("does not reproduce here") && !bad.contains("forgets"),
        "{bad}"
    );

    let times = |seconds: f64| {
        move |study: PaperStudy, _: &str| match study {
            PaperStudy::Times => vec![
                ("refit s", 1.0),
                ("k=1 Newton step s", 0.1),
                ("k=200 Newton step s", 0.1),
                ("k=1 exact s", 1e-4),
                ("k=200 exact s", seconds),
            ],
            _ => Vec::new(),
        }
    };
    let good = findings(times(0.01));
    assert!(
        good.contains("It is fast") && good.contains("between 100 and 10,000 times faster"),
        "{good}"
    );
    // One row takes 1 and 10 ×10⁻⁴, below 60 and 15; 200 rows take 100 and 1,000, and the paper
    // prints 316 and 172.
    assert!(
        good.contains(
            "share of a refit is below both numbers that the paper prints in 4 of 4 cells"
        ),
        "{good}"
    );
    assert!(
        good.contains("divided, is below both numbers that the paper prints in 2 of 4 cells"),
        "{good}"
    );
    let bad = findings(times(2.0));
    assert!(
        bad.contains("not always faster") && bad.contains("paper prints in 2 of 4 cells"),
        "{bad}"
    );

    let head = |left: f64| {
        move |study: PaperStudy, _: &str| match study {
            PaperStudy::HeadInjection => vec![
                ("exact", 0.0),
                ("retrain", 0.0),
                ("INF", left),
                ("PRU", left),
            ],
            _ => Vec::new(),
        }
    };
    assert!(
        findings(head(0.5)).contains("Table 3 does not reproduce: INF and PRU leave between 5,000")
    );

    let attack = |exact: f64, before: f64| {
        move |study: PaperStudy, _: &str| match study {
            PaperStudy::Membership => vec![
                ("exact forgotten auc", exact),
                ("exact forgotten low", exact - 0.02),
                ("exact forgotten high", exact + 0.02),
                ("retrain forgotten auc", 0.5),
                ("retrain forgotten low", 0.48),
                ("retrain forgotten high", 0.52),
                ("before forgotten auc", before),
                ("before forgotten low", before - 0.02),
                ("before forgotten high", before + 0.02),
            ],
            _ => Vec::new(),
        }
    };
    let good = findings(attack(0.51, 0.6));
    assert!(
        good.contains("does not tell exact forgetting from retraining") && !good.contains("coin"),
        "{good}"
    );
    assert!(findings(attack(0.55, 0.6)).contains("finds more after exact forgetting"));
    assert!(findings(attack(0.45, 0.6)).contains("finds less after exact forgetting"));
    assert!(findings(attack(0.5, 0.51)).contains("shows little on these rows"));

    let distance = findings(|study, _| match study {
        PaperStudy::Distance => vec![("×10 exact", 1e-9), ("×10 PRU", 0.9), ("×10 INF", 0.5)],
        _ => Vec::new(),
    });
    assert!(
        distance.contains("ends at most 1×10⁻⁹ of the way"),
        "{distance}"
    );

    let adaptive = |after: f64| {
        move |study: PaperStudy, _: &str| match study {
            PaperStudy::Adaptive => vec![
                ("T=1 after", 1e-15),
                ("T=100 before", 0.1),
                ("T=100 after", after),
                ("ridge after", 1e-14),
            ],
            _ => Vec::new(),
        }
    };
    assert!(
        findings(adaptive(3.0))
            .contains("fails on an adaptive learner, and is worse there than forgetting nothing")
    );
    assert!(findings(adaptive(0.05)).contains("fails on an adaptive learner: with 100 rows"));
    assert!(findings(adaptive(0.0)).contains("does not get worse with adaptive rounds"));
    assert_eq!(
        findings(|_, _| Vec::new()),
        "Nothing has been measured yet."
    );
}

/// Times of table 1, the same in every cell, over some trials.
fn timed(exact: &[f64], refit: &[f64], waited: f64) -> (String, Page) {
    let folder = tempfile::tempdir().unwrap();
    let context = quick(folder.path());
    let mut records = Vec::new();
    for job in measure(PaperStudy::Times, &context)
        .jobs()
        .into_iter()
        .filter(|job| job.trial < exact.len())
    {
        let values = Values::from([
            ("k=1 exact s".into(), exact[job.trial]),
            ("k=1 Newton step s".into(), 0.5),
            ("refit s".into(), refit[job.trial]),
            ("waited share".into(), waited),
        ]);
        records.push(TrialRecord {
            study: "times".into(),
            cell: job.cell,
            trial: job.trial,
            seconds: 1.0,
            values,
        });
    }
    let (page, found) = page::build(&context, &records, &settings(folder.path()));
    (
        found
            .iter()
            .map(|text| text.plain())
            .collect::<Vec<_>>()
            .join("\n"),
        page,
    )
}

#[test]
fn times_that_are_far_apart_are_said_to_be_so() {
    let (steady, page) = timed(&[1e-3, 1.1e-3, 1.2e-3], &[1.0, 1.0, 1.0], 0.01);
    assert!(!steady.contains("trusted"), "{steady}");
    // A median by a median: 1.1 ms by 0.5 s and by 1 s; the quartiles are 0.1 ms apart.
    let table = page
        .csv()
        .into_iter()
        .find(|file| file.name == "table1-generated-rows.csv")
        .unwrap();
    let line = table
        .text
        .lines()
        .find(|line| line.starts_with("1,exact"))
        .unwrap();
    let numbers: Vec<f64> = line
        .split(',')
        .filter_map(|field| field.parse().ok())
        .collect();
    assert!(
        numbers.iter().any(|value| (value - 22.0).abs() < 1e-9),
        "{line}"
    );
    assert!(
        numbers.iter().any(|value| (value - 11.0).abs() < 1e-9),
        "{line}"
    );
    assert!(
        numbers
            .iter()
            .any(|value| (value - 1.0 / 11.0).abs() < 1e-9),
        "{line}"
    );
    // Whichever side of a share it is.
    for (exact, refit) in [([1e-3, 2e-3, 3e-3], [1.0; 3]), ([1e-3; 3], [1.0, 2.0, 3.0])] {
        let (unsteady, _) = timed(&exact, &refit, 0.0);
        assert!(
            unsteady.contains("trusted. In 2 of 2 cells") && unsteady.contains("more than 25 %"),
            "{unsteady}"
        );
        assert!(unsteady.contains("at most 50 %"), "{unsteady}");
    }
    // A machine that is busy all the time gives steady times that are wrong.
    let (busy, _) = timed(&[1e-3; 3], &[1.0; 3], 0.6);
    assert!(
        busy.contains("trusted. Up to 60 % of the time") && busy.contains("when it is idle"),
        "{busy}"
    );
    // One trial says nothing of how far apart others would be.
    let (single, page) = timed(&[1e-3], &[1.0], 0.0);
    assert!(
        !single.contains("trusted") && page.html().contains("one trial"),
        "{single}"
    );
    assert!(
        timed(&[1e-3], &[1.0], 0.6)
            .0
            .contains("Up to 60 % of the time")
    );
}

#[test]
fn the_explanation_of_the_l2_table_follows_from_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let context = quick(folder.path());
    let jobs = measure(PaperStudy::Distance, &context).jobs();
    let records = jobs.into_iter().map(|job| {
        let right = if job.cell.starts_with("make_spd_matrix") {
            0.88
        } else {
            0.95
        };
        let mut values = Values::new();
        for scale in ["×1", "×10", "×100"] {
            values.insert(format!("{scale} PRU"), right);
            values.insert(format!("{scale} PRU, one row more"), right + 0.03);
        }
        TrialRecord {
            study: "distance".into(),
            cell: job.cell,
            trial: job.trial,
            seconds: 1.0,
            values,
        }
    });
    let (page, _) = page::build(
        &context,
        &records.collect::<Vec<_>>(),
        &settings(folder.path()),
    );
    let html = page.html();
    let text = page
        .csv()
        .into_iter()
        .find(|file| file.name == "text.csv")
        .unwrap()
        .text;
    assert!(html.contains("The covariance moves PRU by up to"), "{html}");
    for (name, value) in [
        ("by the covariance", 0.07),
        ("by a scaled row", 0.0),
        ("by a missing row", 0.03),
    ] {
        let line = text
            .lines()
            .find(|line| line.contains(&format!("shift {name}")))
            .unwrap();
        let found: f64 = line.rsplit(',').next().unwrap().parse().unwrap();
        assert!((found - value).abs() < 1e-9, "{line}");
    }
}

#[test]
fn what_is_smaller_than_the_paper_is_said_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let reasons = |trials: Option<usize>| {
        let plan = trials.map_or(StudyPlan::full(), |trials| StudyPlan::full().trials(trials));
        let data = DataFolder::new(Some(folder.path()));
        let cache = folder.path().into();
        let context = StudyContext {
            plan,
            data,
            seed: 1,
            threads: 1,
            cache,
        };
        page::reasons(
            &context,
            &ReproduceSettings {
                quick: false,
                trials,
                ..settings(folder.path())
            },
        )
        .join("\n")
    };
    let full = reasons(None);
    assert!(
        full.contains("timed 10 times a cell and not 100")
            && full.contains("3 runs of what trains a whole network"),
        "{full}"
    );
    let few = reasons(Some(2));
    assert_eq!(
        few,
        "2 trials a cell, as was asked for; the paper has 100 in table 1 and 50 in tables 4 and 5"
    );
}

#[test]
fn the_full_report_has_the_papers_cells() {
    let folder = tempfile::tempdir().unwrap();
    let context = StudyContext {
        plan: StudyPlan::full(),
        data: DataFolder::new(Some(folder.path())),
        seed: 1,
        threads: 1,
        cache: folder.path().into(),
    };
    let records = invented(&context);
    let of = |study: &str, cell: &str| {
        records
            .iter()
            .filter(|r| r.study == study && r.cell == cell)
            .count()
    };
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
        "adaptive",
        "figure1",
        "figure2",
    ] {
        assert!(outline.contains(part), "{part}");
    }
}

fn fails(change: impl FnOnce(&mut ReproduceSettings)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path());
    change(&mut settings);
    with_plan(&settings, StudyPlan::tiny(), &mut SilentWatch).unwrap_err()
}

#[test]
fn a_data_folder_that_lacks_a_file_is_named_with_what_it_is_for() {
    let empty = tempfile::tempdir().unwrap();
    let error = fails(|settings| settings.data = Some(empty.path().into()));
    let text = error.to_string();
    assert!(
        text.contains("womens-clothing.csv.gz is missing") && text.contains("table 1"),
        "{text}"
    );
    assert!(error.hint().unwrap().contains("--data"));
    let error = fails(|settings| {
        settings.data = Some(empty.path().into());
        settings.parts = vec![PaperPart::Figure1];
    });
    assert!(
        error.to_string().contains("bbc-text.csv") && error.to_string().contains("tables 2 and 3"),
        "{error}"
    );
    // What needs no file runs without.
    let folder = tempfile::tempdir().unwrap();
    let settings = ReproduceSettings {
        data: Some(empty.path().into()),
        parts: vec![PaperPart::L2],
        ..settings(folder.path())
    };
    assert!(with_plan(&settings, StudyPlan::tiny(), &mut SilentWatch).is_ok());
}

#[test]
fn too_few_rows_are_counted() {
    let data = tempfile::tempdir().unwrap();
    let fill = |times: usize| {
        for set in [
            "womens-clothing/womens-clothing.csv.gz",
            "amazon-musical/musical-instruments.csv.gz",
        ] {
            let path = data.path().join(set);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let rows = "5,a,b,good\n1,c,d,bad\n".repeat(times);
            fs::write(path, gzip(&format!("stars,title,summary,text\n{rows}"))).unwrap();
        }
    };
    fill(1);
    let error = fails(|settings| {
        settings.data = Some(data.path().into());
        settings.parts = vec![PaperPart::Membership];
    });
    let text = error.to_string();
    assert!(
        text.contains("has 2 rows") && text.contains("80 are needed"),
        "{text}"
    );
    assert!(
        !error.hint().unwrap().contains("--trials"),
        "fewer trials need as many rows"
    );
    fill(100);
    let error = fails(|settings| {
        settings.data = Some(data.path().into());
        settings.parts = vec![PaperPart::Table1];
    });
    let text = error.to_string();
    assert!(
        text.contains("different words; 40 are needed for d = 40"),
        "{text}"
    );
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
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
    }
    out.extend((!crc).to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

#[test]
fn settings_have_ranges_and_folders_owners() {
    assert!(matches!(
        fails(|s| s.trials = Some(0)),
        Error::Setting { name: "trials", .. }
    ));
    assert!(matches!(
        fails(|s| s.threads = 0),
        Error::Setting {
            name: "threads",
            ..
        }
    ));
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = fails(|s| s.out = file.path().join("below"));
    assert!(
        matches!(error, Error::File { .. }) && error.hint().unwrap().contains("--out"),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let first = ReproduceSettings {
        parts: vec![PaperPart::L2],
        ..settings(folder.path())
    };
    with_plan(&first, StudyPlan::tiny(), &mut SilentWatch).unwrap();
    let page = fs::read_to_string(folder.path().join("index.html")).unwrap();
    let error = with_plan(
        &ReproduceSettings {
            seed: 2,
            ..first.clone()
        },
        StudyPlan::tiny(),
        &mut SilentWatch,
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("it was made with seed 1"),
        "{error}"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("index.html")).unwrap(),
        page,
        "nothing was overwritten"
    );
}

#[test]
fn a_watcher_can_stop_a_run_and_it_goes_on_later() {
    struct Once(std::cell::Cell<usize>);
    impl RunWatch for Once {
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
    let settings = ReproduceSettings {
        parts: vec![PaperPart::L2],
        ..settings(folder.path())
    };
    let stopped = with_plan(&settings, StudyPlan::tiny(), &mut Once(0.into()));
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(
        with_plan(&settings, StudyPlan::tiny(), &mut SilentWatch)
            .unwrap()
            .trials,
        (9, 3)
    );
}
