//! `efface reproduce` from outside: what it refuses, and how it says so. Whole runs are tested in
//! its library.

mod common;

use common::Folder;

#[test]
fn an_unknown_table_is_answered_with_the_list() {
    let told = Folder::new().run("reproduce table6 --out report");
    assert_eq!(told.code, 2);
    assert!(
        told.err
            .contains("error: `table6` is no table or figure of the paper"),
        "{}",
        told.err
    );
    assert!(
        told.err.contains("hint: the parts are table1, table2") && told.err.contains("and all"),
        "{}",
        told.err
    );
}

#[test]
fn a_missing_file_is_named_with_its_use() {
    let folder = Folder::new();
    let told = folder.run("reproduce table3 --quick --data nowhere --out report");
    assert_eq!(told.code, 3);
    assert!(
        told.err
            .contains("bbc-text.csv is missing; it is read for the networks of tables 2 and 3"),
        "{}",
        told.err
    );
    assert!(
        told.err.contains("hint: ") && told.err.contains("--data"),
        "{}",
        told.err
    );
}

#[test]
fn a_folder_of_other_files_is_not_touched() {
    let folder = Folder::with_houses();
    let told = folder.run("reproduce l2 --quick --out .");
    assert_eq!(told.code, 5);
    assert!(
        told.err.contains("is not empty") && told.err.contains("--force"),
        "{}",
        told.err
    );
}

#[test]
fn no_trials_are_no_run() {
    let told = Folder::new().run("reproduce l2 --trials 0 --out report");
    assert_eq!(told.code, 2);
    assert!(
        told.err.contains("trials is 0; 1 to 100000 is accepted"),
        "{}",
        told.err
    );
}
