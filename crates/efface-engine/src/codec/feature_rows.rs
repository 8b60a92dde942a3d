//! The rows of a model file as its model sees them. The file holds raw rows, whose features follow from all of them.

use std::borrow::Cow;

use efface::features::Encoder;
use efface::{RowId, RowRef, RowStore, RowView, Rows};
use efface_receipt::{Hash, sha256};

use super::blueprint::Blueprint;
use super::class_weights::RowWeights;
use crate::file::{OutgoingRow, RowLayout, RowShape, StoreRows, substance_of};

/// The rows of a file, with features in the place of what the file holds.
pub(crate) struct FeatureRows<'a> {
    raw: StoreRows<'a>,
    /// None where the file holds the features themselves.
    encoder: Option<Encoder>,
    /// None where all rows count for their own weight alone.
    weights: Option<RowWeights>,
}

impl<'a> FeatureRows<'a> {
    pub(crate) fn new(raw: StoreRows<'a>, encoder: Option<&Encoder>, blueprint: &Blueprint) -> Self {
        let encoder = encoder.filter(|encoder| !encoder.is_identity()).cloned();
        Self { raw, encoder, weights: blueprint.row_weights() }
    }
}

impl RowStore for FeatureRows<'_> {
    fn len(&self) -> usize {
        self.raw.len()
    }

    fn width(&self) -> usize {
        self.encoder.as_ref().map_or_else(|| self.raw.width(), Encoder::width)
    }

    fn outputs(&self) -> usize {
        self.raw.outputs()
    }

    fn is_sparse(&self) -> bool {
        self.encoder.as_ref().map_or_else(|| self.raw.is_sparse(), Encoder::is_sparse)
    }

    fn holds_word_ids(&self) -> bool {
        self.raw.holds_word_ids()
    }

    fn contains(&self, id: RowId) -> efface::Result<bool> {
        self.raw.contains(id)
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> efface::Result<()> {
        let factor = |row: &RowView<'_>| self.weights.as_ref().map_or(1.0, |weights| weights.of(row.targets));
        let Some(encoder) = &self.encoder else {
            return self
                .raw
                .visit(ids, &mut |at, row| see(at, RowView { weight: row.weight * factor(&row), ..row }));
        };
        let mut features = encoder.feature_row();
        self.raw.visit(ids, &mut |at, row| {
            let features = features.of(encoder, row.features);
            see(at, RowView { features, weight: row.weight * factor(&row), ..row });
        })
    }

    fn all(&self) -> efface::Result<Cow<'_, Rows>> {
        seen(self.raw.all()?, self.encoder.as_ref(), self.weights.as_ref())
    }
}

/// Raw rows as the model sees them.
pub(crate) fn features<'a>(
    raw: &'a Rows,
    encoder: Option<&Encoder>,
    blueprint: &Blueprint,
) -> efface::Result<Cow<'a, Rows>> {
    let encoder = encoder.filter(|encoder| !encoder.is_identity());
    seen(Cow::Borrowed(raw), encoder, blueprint.row_weights().as_ref())
}

fn seen<'a>(
    raw: Cow<'a, Rows>,
    encoder: Option<&Encoder>,
    weights: Option<&RowWeights>,
) -> efface::Result<Cow<'a, Rows>> {
    let rows = match encoder {
        Some(encoder) => Cow::Owned(encoder.feature_rows(&raw)?),
        None => raw,
    };
    match weights {
        Some(weights) => Ok(Cow::Owned(weights.weigh(rows.into_owned())?)),
        None => Ok(rows),
    }
}

/// The hash of what a row says, without its id and subject. Names count and not their places, so that a row which comes back
/// is known although the names that it alone held have places of their own again.
pub(crate) fn substance(encoder: Option<&Encoder>, shape: RowShape, row: &OutgoingRow<'_>) -> Hash {
    let Some(encoder) = encoder else { return substance_of(shape, row) };
    let (fixed, named) = encoder.content_of(&row.features.entries());
    let (columns, values): (Vec<u32>, Vec<f64>) = fixed.into_iter().unzip();
    let features = RowRef::Sparse64(&columns, &values);
    let shape = RowShape { layout: RowLayout::Sparse64, ..shape };
    let mut bytes = substance_of(shape, &OutgoingRow { features, ..*row }).0.to_vec();
    bytes.extend_from_slice(&named);
    sha256(&bytes)
}
