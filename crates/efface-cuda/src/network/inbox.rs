//! What a minibatch brings along, in one copy to the card: ids, places, masks, aims.

use std::collections::BTreeMap;

use efface_nn::{DeviceRun, EncoderPlan, TextBatch};

/// Numbers of 4 bytes, one list behind the other.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) bits: Vec<u32>,
    pub(super) ids: usize,
    /// The place and the step of every column.
    pub(super) places: usize,
    pub(super) steps: usize,
    /// Where every step begins, and how long every text is.
    pub(super) starts: usize,
    pub(super) lengths: usize,
}

/// What a run that learns brings along besides.
#[derive(Debug, Default)]
pub(super) struct LearningInbox {
    pub(super) classes: usize,
    /// Share, weight of the label and weight of the teacher of every text.
    pub(super) weights: usize,
    pub(super) taught: usize,
    pub(super) words: Option<usize>,
    pub(super) layers: Vec<usize>,
    pub(super) head: Option<usize>,
    pub(super) word_list: WordList,
}

/// The words of a minibatch, each with its columns.
#[derive(Debug, Default)]
pub(super) struct WordList {
    pub(super) count: usize,
    pub(super) words: usize,
    /// Where the columns of every word end.
    pub(super) ends: usize,
    pub(super) columns: usize,
}

impl Inbox {
    pub(super) fn new(batch: &TextBatch) -> Self {
        let packed = batch.packed();
        let mut inbox = Self::default();
        inbox.ids = inbox.put(batch.ids().iter().copied());
        let columns =
            (0..packed.steps()).flat_map(|t| (0..packed.active(t)).map(move |place| (t, place)));
        inbox.places = inbox.put(columns.clone().map(|(_, place)| place as u32));
        inbox.steps = inbox.put(columns.map(|(t, _)| t as u32));
        inbox.starts = inbox.put((0..packed.steps()).map(|t| packed.step(t).start as u32));
        inbox.lengths = inbox.put((0..packed.samples()).map(|place| packed.length(place) as u32));
        inbox
    }

    pub(super) fn put_run(
        &mut self,
        run: &DeviceRun<'_>,
        trains_words: bool,
        classes: usize,
    ) -> LearningInbox {
        let aims = run.aims;
        let mask = |mask: &efface_nn::DropoutMask| {
            mask.factors.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        LearningInbox {
            classes: self.put(aims.iter().map(|aim| aim.class as u32)),
            weights: self.put(
                aims.iter()
                    .flat_map(|aim| [aim.share, aim.label, aim.teacher].map(f32::to_bits)),
            ),
            taught: self.put(aims.iter().flat_map(|aim| {
                (0..classes).map(|class| aim.taught.get(class).copied().unwrap_or(0.0).to_bits())
            })),
            words: run.masks.words.as_ref().map(|words| self.put(mask(words))),
            layers: run
                .masks
                .layers
                .iter()
                .map(|layer| self.put(mask(layer)))
                .collect(),
            head: run.masks.head.as_ref().map(|head| self.put(mask(head))),
            word_list: if trains_words {
                self.put_words(run.batch.ids())
            } else {
                WordList::default()
            },
        }
    }

    fn put_words(&mut self, ids: &[u32]) -> WordList {
        let mut columns: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (column, id) in ids.iter().enumerate() {
            columns.entry(*id).or_default().push(column as u32);
        }
        let ends = columns.values().scan(0, |end, own| {
            *end += own.len() as u32;
            Some(*end)
        });
        WordList {
            count: columns.len(),
            words: self.put(columns.keys().copied()),
            ends: self.put(ends),
            columns: self.put(columns.values().flatten().copied()),
        }
    }

    fn put(&mut self, numbers: impl IntoIterator<Item = u32>) -> usize {
        let at = self.bits.len();
        self.bits.extend(numbers);
        at
    }

    /// The most numbers of a minibatch of so many texts and tokens.
    pub(super) fn most(plan: &EncoderPlan, (samples, tokens): (usize, usize)) -> usize {
        let masked =
            plan.word_width + plan.settings.lanes() * plan.layers.len() + plan.settings.features();
        7 * tokens + samples * (masked + plan.head.output + 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_every_word_are_listed() {
        let mut inbox = Inbox::default();
        let list = inbox.put_words(&[7, 3, 7, 9, 3, 7]);
        assert_eq!(list.count, 3);
        assert_eq!(inbox.bits[list.words..list.words + 3], [3, 7, 9]);
        assert_eq!(inbox.bits[list.ends..list.ends + 3], [2, 5, 6]);
        assert_eq!(
            inbox.bits[list.columns..list.columns + 6],
            [1, 4, 0, 2, 5, 3]
        );
    }
}
