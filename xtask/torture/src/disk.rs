//! The raw disk: a file system in a file of its own is mounted, models in it learn and forget rows
//! with unique markers, and then every byte of the file system is searched, free blocks included.
//! Needs the right to mount; else it is skipped.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use efface_engine::{
    Engine, FitRequest, ForgetOptions, ForgetRequest, PolicyChange, RowSelection, Silent, fit,
};
use efface_io::Source;

use crate::{Result, sound, tell};

const WHAT: &str = "raw blocks of ext4 after a forget";
const MARKERS: usize = 600;
/// How every marker begins and ends, so that one search finds all of them.
const MARK: &str = "marker";

/// A mounted file system in a file, unmounted when it is dropped.
struct DiskImage {
    folder: tempfile::TempDir,
    mounted: bool,
}

impl DiskImage {
    /// None where file systems cannot be made or mounted.
    fn mount() -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let mut disk = Self {
            folder,
            mounted: false,
        };
        std::fs::create_dir(disk.root())?;
        std::fs::File::create(disk.image())?.set_len(256 << 20)?;
        let made = done(
            Command::new("mkfs.ext4")
                .args(["-q", "-F"])
                .arg(disk.image()),
        );
        disk.mounted = made
            && done(
                Command::new("mount")
                    .args(["-o", "loop"])
                    .arg(disk.image())
                    .arg(disk.root()),
            );
        Ok(Some(disk).filter(|disk| disk.mounted))
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Unmounts, which writes everything out, and counts how often a text occurs in the image.
    fn search(&mut self, text: &str) -> Result<usize> {
        if !done(Command::new("umount").arg(self.root())) {
            return Err("the image cannot be unmounted".into());
        }
        self.mounted = false;
        let found = count(&self.image(), text)?;
        self.mounted = done(
            Command::new("mount")
                .args(["-o", "loop"])
                .arg(self.image())
                .arg(self.root()),
        );
        if self.mounted {
            Ok(found)
        } else {
            Err("the image cannot be mounted again".into())
        }
    }
}

impl Drop for DiskImage {
    fn drop(&mut self) {
        if self.mounted {
            done(Command::new("umount").arg(self.root()));
        }
    }
}

fn done(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// How often a text occurs in a file, a piece of which is in memory at a time.
fn count(path: &Path, text: &str) -> Result<usize> {
    let mut file = std::fs::File::open(path)?;
    let mut piece = vec![0; 1 << 20];
    let mut found = 0;
    let mut kept = 0;
    loop {
        let read = file.read(&mut piece[kept..])?;
        if read == 0 {
            return Ok(found);
        }
        let filled = kept + read;
        found += piece[..filled]
            .windows(text.len())
            .filter(|window| *window == text.as_bytes())
            .count();
        // A text may begin in this piece and end in the next.
        kept = filled.min(text.len() - 1);
        piece.copy_within(filled - kept..filled, 0);
    }
}

/// Rows of markers and of others, with the marker in id, subject and text.
fn rows(markers: std::ops::Range<usize>) -> Result<Source> {
    let mut text = String::from("id,who,words,y\n");
    for at in markers {
        for kind in [MARK, "staying"] {
            let word = format!("{kind}{at:05}word common{} common{}", at % 7, at % 5);
            text.push_str(&format!(
                "{kind}{at:05}id,{kind}{at:05}who,{word},{}\n",
                at % 13
            ));
        }
    }
    Ok(Source::from_bytes("table.csv", text, None)?)
}

fn forget(engine: &mut Engine, markers: std::ops::Range<usize>, together: usize) -> Result {
    let asked: Vec<ForgetRequest> = markers
        .map(|at| {
            let value = format!("{MARK}{at:05}who");
            ForgetRequest::new(RowSelection::Subject {
                column: "who".into(),
                value,
            })
        })
        .collect();
    for some in asked.chunks(together) {
        for answer in engine.forget(some, &ForgetOptions::default()) {
            answer?;
        }
    }
    Ok(())
}

/// Fits a model of the first half of the markers, over another if there is one.
fn fit_half(path: &Path) -> Result<Engine> {
    let mut request = FitRequest::new(rows(0..MARKERS / 2)?);
    request.targets = vec!["y".into()];
    request.id = Some("id".into());
    request.subject = Some("who".into());
    request.text = vec!["words".into()];
    request.words = efface::features::WordSource::Learned(600);
    fit(&request, path, true, &Silent)?;
    Ok(Engine::open(path)?)
}

pub(crate) fn run() -> Result {
    let Some(mut disk) = DiskImage::mount()? else {
        tell(
            WHAT,
            "skipped: mkfs.ext4 is not here, or nothing can be mounted",
        );
        return Ok(());
    };
    let path = disk.root().join("model.efface");
    drop(fit_half(&path)?);
    // The second fit replaces the first, whose blocks hold the same rows; a settle gives places
    // back.
    let mut engine = fit_half(&path)?;
    engine.learn(&rows(MARKERS / 2..MARKERS)?, &Silent)?;
    drop(engine);
    let there = disk.search(MARK)?;

    let mut engine = Engine::open(&path)?;
    // One by one, in groups, and put off until a settle.
    forget(&mut engine, 0..50, 1)?;
    forget(&mut engine, 50..MARKERS / 2, 50)?;
    engine.settle()?;
    forget(&mut engine, MARKERS / 2..MARKERS - 100, 64)?;
    let policy = PolicyChange {
        settle_after: Some(1000),
        settle_within_seconds: Some(86_400),
        ..PolicyChange::default()
    };
    engine.set_policy(&policy)?;
    forget(&mut engine, MARKERS - 100..MARKERS, 10)?;
    engine.settle()?;
    sound(&path)?;
    drop(engine);
    let left = disk.search(MARK)?;
    let others = disk.search("staying")?;
    if left > 0 || others == 0 {
        return Err(
            format!("{left} markers are left on the disk of {there}; {others} others").into(),
        );
    }
    tell(
        WHAT,
        &format!("{MARKERS} rows; markers found on the whole disk: {there} before, {left} after"),
    );
    Ok(())
}
