//! Records of 32 bytes in order, however many there are: what does not fit into memory lies in a
//! file beside the model, in runs that are in order each, and is overwritten when it is done with.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::outputs::LockedName;

/// What is sorted.
pub(crate) type Record = [u8; 32];

/// Records in memory at most: 32 MiB.
const MOST: usize = 1 << 20;

/// Records of a run that are read at a time: 64 KiB.
const BLOCK: usize = 1 << 11;

/// Takes records in any order.
pub(crate) struct RecordSorter {
    beside: PathBuf,
    most: usize,
    records: Vec<Record>,
    spilled: Option<SpilledRuns>,
}

/// Runs in a file that has a temporary name.
struct SpilledRuns {
    name: LockedName,
    /// How many records each run has.
    lengths: Vec<usize>,
}

impl Drop for SpilledRuns {
    fn drop(&mut self) {
        self.name.discard();
    }
}

impl RecordSorter {
    /// Spills to a file beside this path.
    pub(crate) fn new(beside: &Path) -> Self {
        Self {
            beside: beside.to_owned(),
            most: MOST,
            records: Vec::new(),
            spilled: None,
        }
    }

    pub(crate) fn push(&mut self, record: Record) -> io::Result<()> {
        self.extend(&[record])
    }

    pub(crate) fn extend(&mut self, mut records: &[Record]) -> io::Result<()> {
        while !records.is_empty() {
            if self.records.len() >= self.most {
                self.spill()?;
            }
            let (now, later) = records.split_at(records.len().min(self.most - self.records.len()));
            self.records.extend_from_slice(now);
            records = later;
        }
        Ok(())
    }

    /// How many records it took.
    pub(crate) fn len(&self) -> usize {
        let spilled = self
            .spilled
            .as_ref()
            .map_or(0, |runs| runs.lengths.iter().sum());
        spilled + self.records.len()
    }

    /// Puts the records that are in memory in order.
    pub(crate) fn arrange(&mut self) {
        self.records.sort_unstable_by_key(|record| {
            let (halves, _) = record.as_chunks();
            [
                u128::from_be_bytes(halves[0]),
                u128::from_be_bytes(halves[1]),
            ]
        });
    }

    fn spill(&mut self) -> io::Result<()> {
        self.arrange();
        let runs = match &mut self.spilled {
            Some(runs) => runs,
            none => {
                let name = LockedName::beside(&self.beside)?;
                none.insert(SpilledRuns {
                    name,
                    lengths: Vec::new(),
                })
            }
        };
        runs.name.file.write_all(self.records.as_flattened())?;
        runs.lengths.push(self.records.len());
        self.records.clear();
        Ok(())
    }

    /// All records in order.
    pub(crate) fn sorted(mut self) -> io::Result<SortedRecords> {
        self.arrange();
        let mut runs = Vec::new();
        let mut start = 0;
        for length in self.spilled.iter().flat_map(|spilled| &spilled.lengths) {
            runs.push(Run {
                start,
                left: *length,
                block: Vec::new(),
                at: 0,
            });
            start += *length as u64 * 32;
        }
        runs.push(Run {
            start,
            left: 0,
            block: std::mem::take(&mut self.records),
            at: 0,
        });
        let mut sorted = SortedRecords {
            runs,
            next: BinaryHeap::new(),
            spilled: self.spilled.take(),
        };
        for (at, run) in sorted.runs.iter_mut().enumerate() {
            let first = run.next(sorted.spilled.as_ref())?;
            sorted
                .next
                .extend(first.map(|record| Reverse((record, at))));
        }
        Ok(sorted)
    }
}

/// A part of the records, in order.
struct Run {
    /// Where its next block begins in the file.
    start: u64,
    /// Records that are still in the file.
    left: usize,
    block: Vec<Record>,
    at: usize,
}

impl Run {
    fn next(&mut self, spilled: Option<&SpilledRuns>) -> io::Result<Option<Record>> {
        if self.at == self.block.len()
            && let Some(mut file) = spilled
                .filter(|_| self.left > 0)
                .map(|spilled| &spilled.name.file)
        {
            let count = self.left.min(BLOCK);
            self.block.resize(count, [0; 32]);
            file.seek(SeekFrom::Start(self.start))?;
            file.read_exact(self.block.as_flattened_mut())?;
            self.start += count as u64 * 32;
            self.left -= count;
            self.at = 0;
        }
        let record = self.block.get(self.at).copied();
        self.at += usize::from(record.is_some());
        Ok(record)
    }
}

/// Gives records in order.
pub(crate) struct SortedRecords {
    runs: Vec<Run>,
    /// The first record of every run that has one.
    next: BinaryHeap<Reverse<(Record, usize)>>,
    spilled: Option<SpilledRuns>,
}

impl Iterator for SortedRecords {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut top = self.next.peek_mut()?;
        let Reverse((record, run)) = *top;
        match self.runs[run].next(self.spilled.as_ref()) {
            Ok(Some(next)) => top.0.0 = next,
            Ok(None) => drop(PeekMut::pop(top)),
            Err(cause) => return Some(Err(cause)),
        }
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_in_order_from_memory_and_from_runs_and_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        for (most, count) in [(1000, 300_u64), (100, 300), (7, 10_000), (10_000, 0)] {
            let mut sorter = RecordSorter {
                most,
                ..RecordSorter::new(&folder.path().join("model"))
            };
            let record = |number: u64| efface_receipt::sha256(&number.to_be_bytes()).0;
            (0..count).for_each(|number| sorter.push(record(number)).unwrap());
            assert_eq!(sorter.len() as u64, count);
            let files = std::fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(files, usize::from(count > most as u64));
            let sorted: Vec<Record> = sorter.sorted().unwrap().map(Result::unwrap).collect();
            let mut whole: Vec<Record> = (0..count).map(record).collect();
            whole.sort_unstable();
            assert_eq!(sorted, whole);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
