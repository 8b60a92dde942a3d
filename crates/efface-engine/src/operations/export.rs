//! The parameters for other programs. The copy is in the log before it leaves: one that is then not
//! written is listed all the same, one that is written is never missing.

use efface_receipt::{
    CommitmentLabel, CopyKind, CopyState, KnownCopy, RequestKind, RequestOutcome,
};

use super::change::OpenedChange;
use super::linear_onnx;
use super::network;
use super::open_model::OpenModel;
use super::parameters;
use super::report::{ExportedModel, Parameters};
use crate::codec::manifest::Manifest;
use crate::codec::network_info::NetworkInfo;
use crate::error::{Error, Result};
use crate::ledger::noise::{self, NormalStream};
use crate::ledger::{self, ReceiptDraft, copies, founding};

/// What an export is asked for.
pub(crate) struct ExportAsked<'a> {
    pub(crate) format: &'a str,
    /// Kept as a commitment.
    pub(crate) destination: Option<&'a str>,
    /// Whether it goes also where the policy says to wait.
    pub(crate) expose_forgotten: bool,
}

/// Exports the parameters in a format.
pub(crate) fn export(model: &OpenModel, asked: &ExportAsked<'_>) -> Result<ExportedModel> {
    let ExportAsked {
        format,
        destination,
        expose_forgotten,
    } = *asked;
    let change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    // A word that only forgotten rows held must not leave with the others.
    let mut change = change.scrub()?;
    let mut drafts: Vec<ReceiptDraft> = change.draft.take().into_iter().collect();
    let opened = &mut change.opened;
    let store = opened.store();
    let names = opened.names()?;
    let destination = destination.map(|name| names.commit(CommitmentLabel::RowId, name.as_bytes()));
    let manifest = &mut opened.manifest;
    let mut parameters = parameters::parameters_of(store, manifest, opened.encoder.as_ref())?;
    let now = manifest.ledger.newest;
    let more = manifest.policy.held(now);
    if more > 0 && !expose_forgotten {
        return Err(Error::Held { more });
    }
    if let Some(witnesses) = &manifest.policy.witnesses {
        let note = store.with(|connection| ledger::checkpoint(connection))?;
        let seen = witnesses.quorum().and_then(|quorum| quorum.verify(&note));
        seen.map_err(|fault| Error::Unwitnessed {
            problem: fault.to_string(),
        })?;
    }
    let state = manifest.state();
    let moved = manifest.policy.moved;
    let mut release = manifest
        .policy
        .export()
        .map_err(|allowed| Error::Moved { moved, allowed })?;
    if more > 0 {
        release.warnings.extend(
            manifest
                .policy
                .exposed()
                .filter(|_| release.warnings.is_empty()),
        );
    }
    let version = noise::version(&manifest.ledger.origin, &state);
    let sequence = manifest.ledger.size + drafts.len() as u64;
    let now_with = release.noise.unwrap_or(0.0);
    manifest
        .policy
        .account
        .charge(&version, sequence, &mut release)
        .map_err(|before| Error::OtherNoise { before, now_with })?;
    let warning = release.warnings.first().cloned();
    let deviation = release.noise.filter(|deviation| *deviation > 0.0);
    if let Some(deviation) = deviation {
        let seed = founding::noise_seed(store, &manifest.ledger, &model.access)?;
        blur(
            &mut parameters,
            deviation,
            &mut seed.normals(&version, deviation),
        );
    }
    let file = network_file(model, manifest, &parameters, format, deviation.is_some())?;
    manifest.policy.released(release.noise);
    let number = store.with(|connection| {
        copies::add(
            connection,
            &mut manifest.ledger,
            format,
            destination.as_ref(),
            &state.1,
            now,
        )
    })?;
    let mut draft = ReceiptDraft::new(
        RequestKind::Export,
        RequestOutcome::Done,
        opened.received_at,
    );
    draft.release = Some(release);
    drafts.push(draft);
    let mut transition = opened.unchanged();
    // Earlier exports have receipts of their own: listing them again with every export would let
    // the log grow with the square of their number.
    transition.copies = vec![KnownCopy {
        number,
        kind: CopyKind::Export,
        state: CopyState::Live,
        parameters: state.1,
        made_at: ledger::at(now),
        withdrawn_at: None,
    }];
    let receipt = change.sign(&*signer, &transition, drafts)?.commit_last()?;
    Ok(ExportedModel {
        parameters,
        file,
        number,
        warning,
        receipt,
    })
}

/// The whole file, where the format takes the encoder of a network along or is ONNX; None where it
/// holds the parameters alone.
fn network_file(
    model: &OpenModel,
    manifest: &Manifest,
    parameters: &Parameters,
    format: &str,
    blurred: bool,
) -> Result<Option<Vec<u8>>> {
    let Some(encoder) = model.text_encoder(manifest)? else {
        if format != "onnx" {
            return Ok(None);
        }
        return linear_onnx::export(parameters, &manifest.model.recipe).map(Some);
    };
    let file = network::export(&encoder, parameters, format)?;
    let trained = manifest
        .network
        .as_ref()
        .is_some_and(NetworkInfo::holds_rows);
    if file.is_some() && blurred && trained {
        let reason = format!(
            "{format} takes the encoder along, which was trained on rows and gets no noise; json and npz hold the head \
             alone, and a policy without noise publishes both as they are"
        );
        return Err(efface::Error::Unsupported {
            method: "export",
            reason,
        }
        .into());
    }
    Ok(file)
}

/// Adds noise to every number.
fn blur(parameters: &mut Parameters, deviation: f64, normals: &mut NormalStream) {
    let vectors = parameters.vectors.iter_mut().map(|(_, values)| values);
    let tables = parameters.tables.iter_mut().flat_map(|(_, lines)| lines);
    for value in vectors.chain(tables).flatten() {
        *value += deviation * normals.draw();
    }
}
