//! Folders, patterns, standard input, and files of which the rows do not fit into the memory that
//! is allowed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::Folder;

/// Rows of two numbers and a target.
fn rows(from: usize, to: usize) -> String {
    (from..to)
        .map(|row| {
            format!(
                "r{row},{},{},{}\n",
                row % 17,
                row * 7 % 101,
                row % 17 + row * 7 % 101
            )
        })
        .collect()
}

const HEADER: &str = "id,a,b,y\n";

fn with_parts() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("rows")).unwrap();
    for part in 0..3 {
        folder.write(
            &format!("rows/part-{part}.csv"),
            format!("{HEADER}{}", rows(part * 500, part * 500 + 500)),
        );
    }
    folder.write("rows/_SUCCESS", "");
    folder.write("all.csv", format!("{HEADER}{}", rows(0, 1500)));
    folder
}

fn parameters(folder: &Folder, model: &str) -> Vec<String> {
    let table = folder.done(&format!("predict {model} all.csv"));
    let rounded = |line: &str| {
        line.rsplit(',')
            .next()
            .map(|text| format!("{:.6}", text.parse::<f64>().unwrap()))
    };
    table.lines().skip(1).filter_map(rounded).collect()
}

#[test]
fn folders_and_patterns_are_one_table() {
    let folder = with_parts();
    folder.done("fit all.csv --target y --id id");
    folder.done("fit rows --target y --id id");
    folder.done("fit rows/part-?.csv --target y --id id -o pattern.efface");
    folder.done("fit rows/ --target y --id id --memory 20K -o batches.efface");
    let expected = parameters(&folder, "all.efface");
    assert_eq!(expected.len(), 1500);
    for model in ["rows.efface", "pattern.efface", "batches.efface"] {
        assert_eq!(parameters(&folder, model), expected, "{model}");
        assert_eq!(
            folder.json(&format!("inspect {model} --json"))["rows"].as_u64(),
            Some(1500)
        );
    }
    folder.fails(
        "fit rows/*.parquet --target y -o m.efface",
        7,
        &["no file matches this pattern"],
    );
    folder.fails(
        "fit rows/part-*.csv --target y --id id",
        2,
        &["have no name for the model", "hint: add -o"],
    );
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.fails(
        "fit empty --target y -o m.efface",
        7,
        &["no file in this folder"],
    );
}

#[test]
fn one_file_that_is_other_than_the_rest_is_named_and_leaves_nothing() {
    let folder = with_parts();
    let line = "fit rows --target y --id id --memory 20K -o m.efface";
    folder.write("rows/part-9.csv", "id,a,c,y\nz,1,2,3\n");
    folder.fails(line, 3, &["part-9.csv", "lacks \"b\"", "\"c\""]);
    folder.write("rows/part-9.csv", "id,a,b,y\nz,1,2,many\n");
    folder.fails(line, 3, &["part-9.csv: line 2", "`y`"]);
    folder.write("rows/part-9.csv", "id,a,b,y\nr7,1,2,3\n");
    folder.fails(line, 3, &["row r7 occurs twice"]);
    // A column whose first page does not hold what its header says.
    let damaged = include_bytes!("../../efface-io/tests/data/short_dictionary.parquet");
    folder.write("rows/damaged.parquet", damaged);
    folder.fails(
        "fit rows/damaged.parquet --target id -o m.efface",
        3,
        &["damaged.parquet", "Parquet data breaks"],
    );
    let left: Vec<String> = std::fs::read_dir(folder.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["rows", "all.csv"].contains(&name.as_str()))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn standard_input_is_read_in_batches_and_in_every_format() {
    let folder = with_parts();
    let text = std::fs::read_to_string(folder.path("all.csv")).unwrap();
    folder.done("fit all.csv --target y --id id");
    for (model, memory) in [("a", "1G"), ("b", "20K")] {
        let line =
            format!("fit - --format csv --target y --id id --memory {memory} -o {model}.efface");
        assert_eq!(folder.run_with_input(&line, &text).code, 0);
        assert_eq!(
            parameters(&folder, &format!("{model}.efface")),
            parameters(&folder, "all.efface")
        );
    }
    // Levels are known when all rows were seen, and a held-out share is read on its own.
    let levels: String = "kind,y\n".to_owned() + &"red,1\nblue,2\nred,1.5\n".repeat(40);
    assert_eq!(
        folder
            .run_with_input(
                "fit - --format csv --target y --holdout 0.2 -o c.efface",
                &levels
            )
            .code,
        0
    );
    let json = "{\"a\": 1, \"y\": 2}\n{\"y\": 3, \"a\": 5}\n".repeat(30);
    assert_eq!(
        folder
            .run_with_input("fit - --format jsonl --target y --cv 3 -o d.efface", &json)
            .code,
        0
    );
    assert_eq!(
        folder
            .run_with_input(
                "fit - --format svmlight -o e.efface",
                "1 1:2\n2 2:5\n3 1:1\n"
            )
            .code,
        0
    );
    let ended = folder.run_with_input("fit - --format csv --target y -o f.efface", "");
    common::check_failure("fit -", &ended, 3, &["standard input: is empty"]);
}

/// A limit on the size of files stands in for a full disk: both make a write fail.
#[cfg(unix)]
#[test]
fn no_room_for_the_model_is_told_and_leaves_nothing() {
    let folder = with_parts();
    for memory in ["1G", "20K"] {
        let command = folder.command(&[
            "fit", "all.csv", "--target", "y", "--id", "id", "--memory", memory, "-o", "m.efface",
        ]);
        let program = command.get_program().to_str().unwrap().to_owned();
        let args: Vec<String> = command
            .get_args()
            .map(|arg| arg.to_str().unwrap().to_owned())
            .collect();
        let line = format!(
            "trap '' XFSZ; ulimit -f 100; exec {program} {}",
            args.join(" ")
        );
        let ended = std::process::Command::new("sh")
            .args(["-c", &line])
            .current_dir(folder.path("."))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(7), "{told}");
        assert!(told.contains("m.efface"), "{told}");
        let left = std::fs::read_dir(folder.path(".")).unwrap().count();
        assert_eq!(left, 2, "rows and all.csv: {told}");
    }
}

/// The most memory that a fit took, in kB.
#[cfg(target_os = "linux")]
fn most_memory(folder: &Folder, args: &[&str]) -> u64 {
    let program = env!("CARGO_BIN_EXE_efface");
    let mut child = std::process::Command::new(program)
        .args(args)
        .current_dir(folder.path("."))
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let told = std::fs::read_to_string(&status).unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = line
            .and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
            .unwrap_or(most);
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(ended.success() || ended.code() == Some(8), "{ended}");
            return most;
        }
        std::thread::yield_now();
    }
}

/// Rows that are read by passes take no more memory where there are more of them.
#[cfg(target_os = "linux")]
#[test]
fn fits_by_passes_take_the_same_memory_for_more_rows() {
    let folder = Folder::new();
    let columns = 100;
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    for (name, count) in [("few.csv", 16_000), ("many.csv", 48_000)] {
        let mut text = format!("{},class\n", names.join(","));
        let mut state = 5_u64;
        for _ in 0..count {
            let mut sum = 0;
            for _ in 0..columns {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let number = (state >> 33) % 100;
                sum += number;
                text.push_str(&format!("{number},"));
            }
            text.push_str(if sum % 200 < 120 { "a\n" } else { "b\n" });
        }
        folder.write(name, text);
    }
    for model in [
        &["logistic", "--target", "class"][..],
        &["kmeans", "--ignore", "class", "--clusters", "3"],
    ] {
        let most = |data: &str| {
            let mut args = vec![
                "fit",
                data,
                "-o",
                "m.efface",
                "--force",
                "--discard-log",
                "--quiet",
            ];
            args.extend(["--memory", "2M", "--model"]);
            args.extend(model);
            most_memory(&folder, &args)
        };
        let few = most("few.csv");
        let many = most("many.csv");
        // Thirty-two thousand rows more are 25,600 kB of numbers, and three times that in a fit in
        // memory.
        assert!(
            many < few + 9_000,
            "{model:?}: {few} kB for a third of the rows, {many} kB for all"
        );
    }
}
