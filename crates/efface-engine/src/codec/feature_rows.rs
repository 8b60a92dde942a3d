//! The rows of a model file as its model sees them. The file holds raw rows, whose features follow from all of them.

use std::borrow::Cow;

use efface::features::Encoder;
use efface::{RowId, RowRef, RowStore, RowView, Rows};
use efface_receipt::{Hash, sha256};

use crate::file::{OutgoingRow, RowLayout, RowShape, StoreRows, substance_of};

/// The rows of a file, with features in the place of what the file holds.
pub(crate) struct FeatureRows<'a> {
    raw: StoreRows<'a>,
    /// None where the file holds the features themselves.
    encoder: Option<Encoder>,
}

impl<'a> FeatureRows<'a> {
    pub(crate) fn new(raw: StoreRows<'a>, encoder: Option<&Encoder>) -> Self {
        Self { raw, encoder: encoder.filter(|encoder| !encoder.is_identity()).cloned() }
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
        let Some(encoder) = &self.encoder else { return self.raw.visit(ids, see) };
        let mut features = encoder.feature_row();
        self.raw.visit(ids, &mut |at, row| {
            let features = features.of(encoder, row.features);
            see(at, RowView { features, ..row });
        })
    }

    fn all(&self) -> efface::Result<Cow<'_, Rows>> {
        let raw = self.raw.all()?;
        match &self.encoder {
            Some(encoder) => Ok(Cow::Owned(encoder.feature_rows(&raw)?)),
            None => Ok(raw),
        }
    }
}

/// Raw rows as features.
pub(crate) fn features<'a>(raw: &'a Rows, encoder: Option<&Encoder>) -> efface::Result<Cow<'a, Rows>> {
    match encoder.filter(|encoder| !encoder.is_identity()) {
        Some(encoder) => Ok(Cow::Owned(encoder.feature_rows(raw)?)),
        None => Ok(Cow::Borrowed(raw)),
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
