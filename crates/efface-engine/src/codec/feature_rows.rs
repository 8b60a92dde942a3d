//! The rows of a model file as its model sees them. The file holds raw rows, whose features follow
//! from all of them.

use std::borrow::Cow;

use efface::features::Encoder;
use efface::{ChangedRows, RowId, RowRef, RowStore, RowView, Rows, Stop};
use efface_receipt::{Hash, sha256};

use super::blueprint::Blueprint;
use super::class_weights::RowWeights;
use crate::file::{OutgoingRow, RowLayout, RowShape, StoreRows, substance_of};

/// The rows of a file, with features in the place of what the file holds.
pub(crate) struct FeatureRows<R> {
    raw: R,
    /// None where the file holds the features themselves.
    encoder: Option<Encoder>,
    /// None where all rows count for their own weight alone.
    weights: Option<RowWeights>,
    is_beyond_memory: bool,
}

impl<R: RowStore> FeatureRows<R> {
    fn of(raw: R, encoder: Option<&Encoder>, blueprint: &Blueprint) -> Self {
        let encoder = encoder.filter(|encoder| !encoder.is_identity()).cloned();
        let is_beyond_memory = raw.is_beyond_memory();
        Self {
            raw,
            encoder,
            weights: blueprint.row_weights(),
            is_beyond_memory,
        }
    }
}

impl<'a> FeatureRows<StoreRows<'a>> {
    pub(crate) fn new(
        raw: StoreRows<'a>,
        encoder: Option<&Encoder>,
        blueprint: &Blueprint,
    ) -> Self {
        let mut rows = Self::of(raw, encoder, blueprint);
        // Levels of many columns may take more as features than they do in the file.
        rows.is_beyond_memory |= rows.raw.is_too_much(rows.width(), rows.is_sparse());
        rows
    }
}

impl<'a> FeatureRows<ChangedRows<'a>> {
    /// The rows of a store after a change, where they are read by passes.
    pub(crate) fn changed(
        raw: ChangedRows<'a>,
        encoder: Option<&Encoder>,
        blueprint: &Blueprint,
    ) -> Self {
        Self {
            is_beyond_memory: true,
            ..Self::of(raw, encoder, blueprint)
        }
    }
}

impl<R: RowStore> RowStore for FeatureRows<R> {
    fn len(&self) -> usize {
        self.raw.len()
    }

    fn width(&self) -> usize {
        self.encoder
            .as_ref()
            .map_or_else(|| self.raw.width(), Encoder::width)
    }

    fn outputs(&self) -> usize {
        self.raw.outputs()
    }

    fn is_sparse(&self) -> bool {
        self.encoder
            .as_ref()
            .map_or_else(|| self.raw.is_sparse(), Encoder::is_sparse)
    }

    fn holds_word_ids(&self) -> bool {
        self.raw.holds_word_ids()
    }

    fn contains(&self, id: RowId) -> efface::Result<bool> {
        self.raw.contains(id)
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> efface::Result<()> {
        let factor = |row: &RowView<'_>| {
            self.weights
                .as_ref()
                .map_or(1.0, |weights| weights.of(row.targets))
        };
        let Some(encoder) = &self.encoder else {
            return self.raw.visit(ids, &mut |at, row| {
                see(
                    at,
                    RowView {
                        weight: row.weight * factor(&row),
                        ..row
                    },
                )
            });
        };
        let mut features = encoder.feature_row();
        self.raw.visit(ids, &mut |at, row| {
            let features = features.of(encoder, row.features);
            see(
                at,
                RowView {
                    features,
                    weight: row.weight * factor(&row),
                    ..row
                },
            );
        })
    }

    fn is_beyond_memory(&self) -> bool {
        self.is_beyond_memory
    }

    fn each_block(&self, see: &mut dyn FnMut(&Rows) -> efface::Result<()>) -> efface::Result<()> {
        self.raw.each_block(&mut |block| {
            see(&*seen(
                Cow::Borrowed(block),
                self.encoder.as_ref(),
                self.weights.as_ref(),
            )?)
        })
    }

    fn stop(&self) -> Option<&Stop> {
        self.raw.stop()
    }

    fn all(&self) -> efface::Result<Cow<'_, Rows>> {
        if self.is_beyond_memory {
            return Err(efface::Error::BeyondMemory { rows: self.len() });
        }
        seen(
            self.raw.all()?,
            self.encoder.as_ref(),
            self.weights.as_ref(),
        )
    }
}

/// Raw rows as the model sees them.
pub(crate) fn features<'a>(
    raw: &'a Rows,
    encoder: Option<&Encoder>,
    blueprint: &Blueprint,
) -> efface::Result<Cow<'a, Rows>> {
    let encoder = encoder.filter(|encoder| !encoder.is_identity());
    seen(
        Cow::Borrowed(raw),
        encoder,
        blueprint.row_weights().as_ref(),
    )
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

/// The hash of what a row says, without its id and subject. Names count and not their places, so
/// that a row which comes back is known although the names that it alone held have places of their
/// own again.
pub(crate) fn substance(encoder: Option<&Encoder>, shape: RowShape, row: &OutgoingRow<'_>) -> Hash {
    let Some(encoder) = encoder else {
        return substance_of(shape, row);
    };
    let (fixed, named) = encoder.content_of(&row.features.entries());
    let (columns, values): (Vec<u32>, Vec<f64>) = fixed.into_iter().unzip();
    let features = RowRef::Sparse64(&columns, &values);
    let shape = RowShape {
        layout: RowLayout::Sparse64,
        ..shape
    };
    let mut bytes = substance_of(shape, &OutgoingRow { features, ..*row })
        .0
        .to_vec();
    bytes.extend_from_slice(&named);
    sha256(&bytes)
}
