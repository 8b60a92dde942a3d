//! Sums over the rows, kept beside a model for which all rows change when one leaves: the
//! components of its columns turn, or its classes get other weights. They are an array of the file
//! that changes alone read.

use efface::features::{Encoder, KeptSums};
use efface::{Form, Model, RidgeModel, RowId, RowStore, RowView, Rows};

use super::blueprint::Blueprint;
use super::manifest::Manifest;
use crate::file::{FileFault, ModelConnection, damaged, parts};

/// The array.
pub(crate) const ARRAY: &str = "sums";

/// The most bytes that sums may take: those of 4,096 features, or of fewer by class.
const MOST_BYTES: usize = 160 << 20;

/// The most products that are summed of rows that are mostly zeros, which a fit itself does
/// without: half a minute of one processor.
const MOST_PRODUCTS: f64 = 5e10;

/// The sums of all rows, where a change can follow from them; None where it reads rows.
pub(crate) fn of_rows(
    rows: &Rows,
    encoder: Option<&Encoder>,
    blueprint: &Blueprint,
    model: &Model,
) -> Option<KeptSums> {
    let encoder = encoder?;
    let by_class = blueprint.class_weights.is_some() && follows_sums(model);
    let has_components = encoder.has_components();
    if rows.is_empty() || !(has_components || blueprint.is_balanced() && by_class) {
        return None;
    }
    if !encoder.follows_column_sums() {
        return None;
    }
    let width = encoder.column_width();
    let outputs = blueprint.outputs();
    let products = rows.len() as f64 * (width as f64).powi(2);
    if encoder.has_sparse_columns() && products > MOST_PRODUCTS {
        return None;
    }
    let fits = |groups: &usize| KeptSums::size(width, outputs, *groups) <= MOST_BYTES;
    let groups = blueprint.class_count().filter(|_| by_class).filter(fits);
    let groups = groups.or(Some(1).filter(|_| has_components).filter(fits))?;
    // Components count every row once.
    let is_weighted = blueprint.weight.is_some() && !has_components;
    let mut sums = KeptSums::new(encoder, outputs, groups, is_weighted).ok()?;
    // Numbers that cannot be summed leave a model without sums, whose changes read rows.
    put(&mut sums, encoder, blueprint, false, |see| {
        rows.iter().for_each(see)
    })
    .ok()?;
    Some(sums)
}

/// Whether a model follows from the sums of its rows.
pub(crate) fn follows_sums(model: &Model) -> bool {
    model
        .get::<RidgeModel>()
        .is_some_and(|ridge| matches!(ridge.form(), Form::Factor | Form::Inverse))
}

/// The sums after a change; None where they cannot follow it.
pub(crate) fn changed(
    mut sums: KeptSums,
    encoder: &Encoder,
    blueprint: &Blueprint,
    (rows, gone): (&dyn RowStore, &[RowId]),
    new: Option<&Rows>,
) -> Option<KeptSums> {
    let arrivals =
        |see: &mut dyn FnMut(RowView<'_>)| new.iter().flat_map(|new| new.iter()).for_each(see);
    put(&mut sums, encoder, blueprint, false, arrivals).ok()?;
    let mut visited = Ok(());
    put(&mut sums, encoder, blueprint, true, |see| {
        visited = rows.visit(gone, &mut |_, row| see(row))
    })
    .ok()?;
    visited.ok().map(|()| sums)
}

fn put(
    sums: &mut KeptSums,
    encoder: &Encoder,
    blueprint: &Blueprint,
    leave: bool,
    each: impl FnOnce(&mut dyn FnMut(RowView<'_>)),
) -> efface::Result<()> {
    let classes = blueprint.classes().filter(|_| sums.groups() > 1);
    let mut change = sums.change(encoder, leave)?;
    let mut result = Ok(());
    each(&mut |row| {
        if result.is_ok() {
            let group = classes.map_or(0, |classes| classes.decide(row.targets));
            result = change.row(&row, group);
        }
    });
    result?;
    change.finish()
}

/// The stored sums; None where there are none.
pub(crate) fn load(
    connection: &ModelConnection,
    manifest: &Manifest,
) -> std::result::Result<Option<KeptSums>, FileFault> {
    if !manifest.parts.iter().any(|part| part.name() == ARRAY) {
        return Ok(None);
    }
    match KeptSums::from_bytes(&parts::bytes(connection, &manifest.parts, ARRAY)?) {
        Ok(sums) => Ok(Some(sums)),
        Err(error) => damaged(error.to_string()),
    }
}
