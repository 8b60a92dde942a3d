//! What people see, word for word.

mod common;

use common::Folder;

#[test]
fn help() {
    insta::assert_snapshot!(Folder::new().done("--help"));
}

#[test]
fn help_of_fit() {
    insta::assert_snapshot!(Folder::new().done("fit --help"));
}

#[test]
fn help_of_forget() {
    insta::assert_snapshot!(Folder::new().done("forget --help"));
}

#[test]
fn an_error_with_a_hint() {
    insta::assert_snapshot!(
        Folder::with_houses()
            .run("forget houses.efface --subject person=ann")
            .err
    );
}

#[test]
fn inspect() {
    let folder = Folder::with_houses();
    folder.done("forget houses.efface --subject owner=ann");
    let page = folder.done("inspect houses.efface");
    let changing = ["distance", "public key", "file", "created", "changed"];
    let line = |line: &str| match changing.iter().find(|name| line.starts_with(**name)) {
        Some(name) => format!("{name} […]"),
        None => line.to_owned(),
    };
    insta::assert_snapshot!(page.lines().map(line).collect::<Vec<_>>().join("\n"));
}
