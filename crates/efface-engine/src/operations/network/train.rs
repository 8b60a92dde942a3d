//! A training under the eyes of the caller: progress, checkpoints, and a wish to stop.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use efface::{Method, RowId, Rows};
use efface_nn::{
    Backbone, EpochReport, NetworkDevice, NetworkRecipe, StepReport, TrainedNetwork,
    TrainingCheckpoint, TrainingFlow, TunedNetwork,
};

use crate::error::{Error, Result};
use crate::file::outputs::{DraftFile, PRIVATE_MODE};
use crate::progress::Progress;

/// Trains, or goes on where a checkpoint was left. Also tells whether somebody stopped it.
pub(crate) fn train(
    recipe: &NetworkRecipe,
    rows: &Rows,
    checkpoint: Option<&Path>,
    device: Option<&dyn NetworkDevice>,
    progress: &dyn Progress,
) -> Result<(TrainedNetwork, bool)> {
    if progress.is_interrupted() {
        return Err(Error::Interrupted);
    }
    let state = checkpoint.map(resume).transpose()?.flatten();
    let resumed = state.is_some();
    let mut watcher = Watcher {
        progress,
        resumed: state.as_ref().map(|state| state.epoch),
        epochs: recipe.training.epochs,
        checkpoint,
        begun: false,
        failure: None,
        stopped: false,
        limit: None,
    };
    let trained = match (device, state) {
        (Some(device), state) => recipe.train_on_device(device, state, rows, &mut watcher),
        (None, Some(state)) => recipe.continue_from(state, rows, &mut watcher),
        (None, None) => recipe.train(rows, &mut watcher),
    };
    progress.finish();
    let failure = watcher.failure;
    let stopped = watcher.stopped;
    if let Some(failure) = failure {
        return Err(failure);
    }
    if let (Err(efface_nn::Error::Diverged { last_good, .. }), Some(path)) = (&trained, checkpoint)
    {
        write(path, last_good)?;
    }
    let trained = match (trained, checkpoint) {
        // The file is whole: it is the request that is another one than it was left by.
        (Err(efface_nn::Error::Damaged(what)), Some(path)) if resumed && !watcher.begun => {
            let what = format!("{}: {what}", path.display());
            return Err(Error::request(
                what,
                "repeat the fit that left it, remove the file, or name another",
            ));
        }
        (trained, _) => trained?,
    };
    if let (true, Some(path)) = (stopped, checkpoint) {
        write(path, &trained.checkpoint)?;
    }
    Ok((trained, stopped))
}

/// Trains a network from scratch to replace the stored one. A training that is stopped, or that is
/// expected to take longer than `at_most`, leaves the stored network as it was.
pub(crate) fn anew(
    recipe: &NetworkRecipe,
    rows: &Rows,
    at_most: Option<Duration>,
    progress: &dyn Progress,
) -> Result<TrainedNetwork> {
    if progress.is_interrupted() {
        return Err(Error::Interrupted);
    }
    let mut watcher = Watcher {
        progress,
        resumed: None,
        epochs: recipe.training.epochs,
        checkpoint: None,
        begun: false,
        failure: None,
        stopped: false,
        limit: at_most.map(TimeLimit::new),
    };
    let trained = recipe.train(rows, &mut watcher);
    progress.finish();
    if let Some(limit) = &watcher.limit
        && let Some(seconds) = limit.exceeded
    {
        return Err(Error::TooLong {
            seconds,
            allowed: limit.at_most.as_secs_f64(),
            methods: Vec::new(),
        });
    }
    if watcher.stopped {
        return Err(Error::Interrupted);
    }
    Ok(trained?)
}

/// Trains the stored network further, to forget rows. A training that is stopped leaves the stored
/// network as it was.
pub(crate) fn further(
    method: &Method,
    backbone: &Backbone,
    texts: &Rows,
    gone: &[RowId],
    progress: &dyn Progress,
) -> Result<TunedNetwork> {
    if progress.is_interrupted() {
        return Err(Error::Interrupted);
    }
    let mut watcher = Watcher {
        progress,
        resumed: None,
        epochs: efface_nn::further_epochs(method),
        checkpoint: None,
        begun: false,
        failure: None,
        stopped: false,
        limit: None,
    };
    let tuned = efface_nn::train_further(method, backbone, texts, gone, &mut watcher);
    progress.finish();
    if watcher.stopped {
        Err(Error::Interrupted)
    } else {
        Ok(tuned?)
    }
}

fn resume(path: &Path) -> Result<Option<TrainingCheckpoint>> {
    match std::fs::read(path) {
        Ok(bytes) => TrainingCheckpoint::from_bytes(&bytes)
            .map(Some)
            .map_err(|error| {
                let what = format!("{} is no checkpoint of a training: {error}", path.display());
                Error::request(what, "remove the file, or name another")
            }),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(Error::io(path, cause)),
    }
}

/// A whole checkpoint or the one before, whatever happens.
fn write(path: &Path, state: &TrainingCheckpoint) -> Result<()> {
    let io = |cause| Error::io(path, cause);
    let bytes = state.to_bytes()?;
    let mut draft = DraftFile::create(path).map_err(io)?;
    draft.write_all(&bytes).map_err(io)?;
    draft.publish(true, PRIVATE_MODE).map_err(io)
}

/// Steps of a training before its duration is extrapolated: the first ones also fill caches.
const STEPS_TO_EXTRAPOLATE: u64 = 5;

/// The most time that a training may take.
struct TimeLimit {
    started: Instant,
    at_most: Duration,
    /// The seconds that the whole training is expected to take, if that is longer.
    exceeded: Option<f64>,
}

impl TimeLimit {
    fn new(at_most: Duration) -> Self {
        Self {
            started: Instant::now(),
            at_most,
            exceeded: None,
        }
    }

    /// Returns true if the training has taken too long, or would if all steps took as long as
    /// those so far.
    fn is_exceeded(&mut self, done: u64, steps: u64) -> bool {
        let elapsed = self.started.elapsed().as_secs_f64();
        let expected = elapsed / done.max(1) as f64 * steps as f64;
        let allowed = self.at_most.as_secs_f64();
        if elapsed > allowed || (done >= STEPS_TO_EXTRAPOLATE && expected > allowed) {
            self.exceeded = Some(expected.max(elapsed));
        }
        self.exceeded.is_some()
    }
}

struct Watcher<'a> {
    progress: &'a dyn Progress,
    /// The epoch that a checkpoint was left after.
    resumed: Option<usize>,
    epochs: usize,
    checkpoint: Option<&'a Path>,
    begun: bool,
    failure: Option<Error>,
    stopped: bool,
    limit: Option<TimeLimit>,
}

impl efface_nn::TrainingProgress for Watcher<'_> {
    fn step(&mut self, report: &StepReport) -> TrainingFlow {
        if !std::mem::replace(&mut self.begun, true) {
            if let Some(epoch) = self.resumed {
                self.progress
                    .note(&format!("going on after epoch {epoch} of {}", self.epochs));
            }
            self.progress
                .start("training", Some((report.batches * self.epochs) as u64));
        }
        self.progress.at(report.step);
        let forgotten = report
            .forgotten
            .map(|loss| format!("; loss of the rows to forget {loss:.4}"));
        self.progress.tell(&format!(
            "epoch {}/{}, loss {:.4}, accuracy {:.1} %{}",
            report.epoch,
            self.epochs,
            report.loss,
            100.0 * report.accuracy,
            forgotten.unwrap_or_default()
        ));
        self.stopped = self.progress.is_interrupted();
        let steps = (report.batches * self.epochs) as u64;
        let is_too_long = self
            .limit
            .as_mut()
            .is_some_and(|limit| limit.is_exceeded(report.step, steps));
        if self.stopped || is_too_long {
            TrainingFlow::Stop
        } else {
            TrainingFlow::Continue
        }
    }

    fn epoch(&mut self, report: &EpochReport, checkpoint: &TrainingCheckpoint) -> TrainingFlow {
        let judged = report.validation.map(|(loss, hits)| {
            format!(
                "; validation loss {loss:.4}, accuracy {:.1} %",
                100.0 * hits
            )
        });
        self.progress.note(&format!(
            "epoch {}/{}: loss {:.4}, accuracy {:.1} %{}{}",
            report.epoch,
            self.epochs,
            report.loss,
            100.0 * report.accuracy,
            judged.unwrap_or_default(),
            if report.best { ", the best so far" } else { "" }
        ));
        if let Some(path) = self.checkpoint
            && let Err(error) = write(path, checkpoint)
        {
            self.failure = Some(error);
            return TrainingFlow::Stop;
        }
        TrainingFlow::Continue
    }
}
