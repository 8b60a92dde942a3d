//! A training under way, as bytes to resume from.

use serde::{Deserialize, Serialize};

use super::{FORMAT, TensorReader, TensorWriter, damaged};
use crate::error::Result;
use crate::train::{EpochReport, TrainSettings, TrainingCheckpoint};

/// The small half of a stored checkpoint.
#[derive(Serialize, Deserialize)]
struct CheckpointFile {
    format: u32,
    settings: TrainSettings,
    step: u64,
    epoch: usize,
    batch: usize,
    best_epoch: Option<usize>,
    /// As bits, lest a digit be lost in print.
    loss: u64,
    correct: usize,
    seen: usize,
    total: usize,
    source: String,
}

/// An epoch as whole numbers: the bits of its figures, so that a resumed training compares with the
/// very same ones.
fn write_epoch(report: &EpochReport) -> [u64; 7] {
    let (loss, accuracy) = report.validation.unwrap_or_default();
    [
        report.epoch as u64,
        report.loss.to_bits(),
        report.accuracy.to_bits(),
        report.validation.is_some() as u64,
        loss.to_bits(),
        accuracy.to_bits(),
        report.best as u64,
    ]
}

fn read_epoch(numbers: &[u64; 7]) -> EpochReport {
    let [
        epoch,
        loss,
        accuracy,
        judged,
        validation_loss,
        validation_accuracy,
        best,
    ] = *numbers;
    EpochReport {
        epoch: epoch as usize,
        loss: f64::from_bits(loss),
        accuracy: f64::from_bits(accuracy),
        validation: (judged == 1).then(|| {
            (
                f64::from_bits(validation_loss),
                f64::from_bits(validation_accuracy),
            )
        }),
        best: best == 1,
    }
}

impl TrainingCheckpoint {
    /// The checkpoint as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = TensorWriter::default();
        let total = self.parameters.len();
        for (name, values) in [
            ("parameters", &self.parameters),
            ("means", &self.means),
            ("squares", &self.squares),
        ] {
            writer.single(name, vec![total], values);
        }
        if let Some((_, best)) = &self.best {
            writer.single("best", vec![total], best);
        }
        let history: Vec<u64> = self.history.iter().flat_map(write_epoch).collect();
        writer.counts("history", &history);
        writer.finish(&CheckpointFile {
            format: FORMAT,
            settings: self.settings,
            step: self.step,
            epoch: self.epoch,
            batch: self.batch,
            best_epoch: self.best_epoch(),
            loss: self.loss.to_bits(),
            correct: self.correct,
            seen: self.seen,
            total,
            source: self.source.clone(),
        })
    }

    /// The checkpoint of some bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (reader, file) = TensorReader::open::<CheckpointFile>(bytes)?;
        if file.format != FORMAT {
            return damaged(format!("format {} where {FORMAT} is read", file.format));
        }
        let array = |name: &str| reader.single(name, &[file.total]);
        let history = reader.counts("history")?;
        let (history, rest) = history.as_chunks::<7>();
        if !rest.is_empty() {
            return damaged("its history was cut");
        }
        let best = match file.best_epoch {
            Some(epoch) => Some((epoch, array("best")?)),
            None => None,
        };
        Ok(Self {
            settings: file.settings,
            step: file.step,
            epoch: file.epoch,
            batch: file.batch,
            history: history.iter().map(read_epoch).collect(),
            parameters: array("parameters")?,
            means: array("means")?,
            squares: array("squares")?,
            best,
            loss: f64::from_bits(file.loss),
            correct: file.correct,
            seen: file.seen,
            source: file.source,
        })
    }
}
