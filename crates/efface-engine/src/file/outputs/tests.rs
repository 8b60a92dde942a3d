//! What may be written and what may not, drafts, and what is swept.

use std::fs::File;
use std::io::Write;

use super::*;

/// A folder with one of everything that lies around.
fn folder() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let path = move |name: &str| root.join(name);
    let mut model = b"SQLite format 3\0".to_vec();
    model.resize(68, 0);
    model.extend(b"eFFa");
    std::fs::write(path("model"), &model).unwrap();
    model[68] = b'x';
    std::fs::write(path("database"), &model).unwrap();
    std::fs::write(path("journal"), b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7rest").unwrap();
    std::fs::write(path("key"), b"\nPRIVATE+KEY+efface/a+00000000+xx\n").unwrap();
    std::fs::write(path("seed"), b"NOISE+SEED+efface/a+00\n").unwrap();
    std::fs::write(path("plain"), b"x,y\n1,2\n").unwrap();
    (folder, path)
}

#[test]
fn files_are_told_by_what_is_in_them() {
    let (_folder, path) = folder();
    for (name, nature) in [
        ("model", FileNature::Model),
        ("journal", FileNature::Model),
        ("database", FileNature::Plain),
        ("key", FileNature::Key),
        ("seed", FileNature::Key),
        ("plain", FileNature::Plain),
        ("absent", FileNature::Absent),
        ("", FileNature::Special("a folder")),
    ] {
        assert_eq!(FileNature::of(&path(name)).unwrap(), nature, "{name}");
    }
}

#[test]
fn an_output_replaces_a_plain_file_at_most() {
    let (_folder, path) = folder();
    let judged =
        |name: &str, overwrite| check_outputs(&[PlannedOutput::file(&path(name))], &[], overwrite);
    for name in ["model", "journal", "key", "seed", ""] {
        assert!(
            matches!(judged(name, true), Err(Error::Protected { .. })),
            "{name}"
        );
    }
    assert!(matches!(judged("plain", false), Err(Error::Exists { .. })));
    assert!(judged("plain", true).is_ok() && judged("absent", false).is_ok());
    assert!(matches!(
        judged("nowhere/file", false),
        Err(Error::Io { .. })
    ));
}

#[test]
fn a_model_replaces_a_model_and_keeps_its_place_for_the_key() {
    let (_folder, path) = folder();
    let judged =
        |name: &str, overwrite| check_outputs(&[PlannedOutput::model(&path(name))], &[], overwrite);
    assert!(matches!(judged("model", false), Err(Error::Exists { .. })));
    assert!(judged("model", true).is_ok());
    assert!(matches!(judged("key", true), Err(Error::Protected { .. })));
    std::fs::write(path("new.key"), b"a diary").unwrap();
    let error = judged("new", true).unwrap_err().to_string();
    assert!(error.contains("new.key is no key file"), "{error}");
    std::fs::rename(path("key"), path("new.key")).unwrap();
    assert!(
        judged("new", false).is_ok(),
        "a key that was left there is added to"
    );
}

#[test]
fn one_file_is_not_written_twice_and_not_read_and_written() {
    let (_folder, path) = folder();
    let same = |outputs: &[PlannedOutput<'_>], inputs: &[&Path]| {
        matches!(
            check_outputs(outputs, inputs, true),
            Err(Error::SameFile { .. })
        )
    };
    let file = PlannedOutput::file;
    let plain = path("plain");
    let other = path("other");
    let roundabout = path("")
        .join("../")
        .join(path("").file_name().unwrap())
        .join("other");
    assert!(same(&[file(&other), file(&other)], &[]));
    assert!(same(&[file(&other), file(&roundabout)], &[]));
    assert!(same(&[file(&plain)], &[&plain]));
    assert!(same(
        &[
            PlannedOutput::model(&path("m")),
            PlannedOutput::resumed(&path("m.key"))
        ],
        &[]
    ));
    std::fs::hard_link(&plain, &other).unwrap();
    assert!(same(&[file(&plain), file(&other)], &[]) && same(&[file(&other)], &[&plain]));
    assert!(!same(&[file(&plain)], &[&path("absent")]));
}

#[cfg(unix)]
#[test]
fn links_are_judged_and_written_by_what_they_point_at() {
    use std::os::unix::fs::symlink;
    let (_folder, path) = folder();
    for target in ["model", "key", "plain", "new"] {
        symlink(target, path(&format!("to-{target}"))).unwrap();
    }
    symlink("circle", path("circle")).unwrap();
    let judged = |name: &str| check_outputs(&[PlannedOutput::file(&path(name))], &[], true);
    assert!(matches!(judged("to-model"), Err(Error::Protected { .. })));
    assert!(matches!(judged("to-key"), Err(Error::Protected { .. })));
    assert!(matches!(judged("circle"), Err(Error::Io { .. })));
    assert!(judged("to-plain").is_ok() && judged("to-new").is_ok());
    for name in ["to-plain", "to-new"] {
        let mut draft = DraftFile::create(&path(name)).unwrap();
        draft.write_all(b"written").unwrap();
        draft.publish(true, 0o640).unwrap();
        let target = path(&name[3..]);
        assert!(
            path(name).is_symlink() && std::fs::read(&target).unwrap() == b"written",
            "{name}"
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&target).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o640);
    }
    let through = check_outputs(
        &[PlannedOutput::file(&path("to-new"))],
        &[&path("new")],
        true,
    );
    assert!(matches!(through, Err(Error::SameFile { .. })));
}

#[test]
fn a_draft_has_its_name_only_when_it_is_whole() {
    let (folder, path) = folder();
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    let before = names();
    let begin = |name: &str| {
        let mut draft = DraftFile::create(&path(name)).unwrap();
        draft.write_all(b"half").unwrap();
        draft
    };
    drop(begin("new"));
    assert_eq!((names(), path("new").exists()), (before, false));
    begin("new").publish(false, PRIVATE_MODE).unwrap();
    assert_eq!(
        (names(), std::fs::read(path("new")).unwrap()),
        (before + 1, b"half".to_vec())
    );
    let taken = begin("plain").publish(false, PRIVATE_MODE).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(path("plain")).unwrap(), b"x,y\n1,2\n");
    assert_eq!(names(), before + 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_replaced_is_overwritten_unless_it_has_another_name() {
    use std::io::Read;
    let (folder, path) = folder();
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    let before = names();
    for copied in [false, true] {
        std::fs::write(path("plain"), b"rows of people").unwrap();
        std::fs::write(path("new"), b"new").unwrap();
        if copied {
            std::fs::hard_link(path("plain"), path("copy")).unwrap();
        }
        let mut seen = File::open(path("plain")).unwrap();
        let replaced = ReplacedFile::keep(&path("plain")).unwrap();
        std::fs::rename(path("new"), path("plain")).unwrap();
        replaced.discard();
        let mut bytes = Vec::new();
        seen.read_to_end(&mut bytes).unwrap();
        let expected: &[u8] = if copied { b"rows of people" } else { &[0; 14] };
        assert_eq!(bytes, expected);
        assert_eq!(names(), before + usize::from(copied));
    }
    // A rename that fails leaves the file as it is.
    drop(ReplacedFile::keep(&path("plain")).unwrap());
    assert_eq!(
        (std::fs::read(path("plain")).unwrap(), names()),
        (b"new".to_vec(), before + 1)
    );
    assert!(ReplacedFile::keep(&path("absent")).is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn leftovers_are_overwritten_and_removed_and_nothing_else_is() {
    use std::io::{Read, Seek};
    let (folder, path) = folder();
    let left = path(".model.0123456789abcdef.efface-tmp");
    let journal = path(".model.0123456789abcdef.efface-tmp-journal");
    let orphan = path(".other.00.efface-tmp-journal");
    for leftover in [&left, &journal, &orphan] {
        std::fs::write(leftover, b"rows of people").unwrap();
    }
    let mut seen = File::open(&left).unwrap();
    let alive = LockedName::beside(&path("model")).unwrap();
    std::fs::hard_link(path("plain"), path(".a.01.efface-tmp")).unwrap();
    std::os::unix::fs::symlink("plain", path(".b.02.efface-tmp")).unwrap();
    std::fs::create_dir(path(".c.03.efface-tmp")).unwrap();
    std::fs::write(path("d.efface-tmp"), b"not hidden, not ours").unwrap();
    sweep(folder.path());
    assert!(!left.exists() && !journal.exists() && !orphan.exists());
    let mut bytes = Vec::new();
    seen.rewind().unwrap();
    seen.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, [0; 14], "what was on disk");
    assert!(alive.path.exists(), "its process lives");
    assert_eq!(
        std::fs::read(path("plain")).unwrap(),
        b"x,y\n1,2\n",
        "a second name and a link overwrite nothing"
    );
    assert!(path(".c.03.efface-tmp").exists() && path("d.efface-tmp").exists());
    let path = alive.path.clone();
    drop(alive);
    sweep(folder.path());
    assert!(!path.exists());
}
