//! A classifier as plain arrays, as it is stored.

use std::sync::Arc;

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::curvature::{CurvatureScales, HessianCurvature, StandingHessian};
use super::pass::RowSurvey;
use super::{Basis, BoundLedger, ClassifierSettings, Link, LogisticModel, RowFacts};
use crate::error::{Error, Result};
use crate::evidence::BoundSource;
use crate::family::Family;
use crate::linalg::{Cholesky, mirror_lower, par};
use crate::state::ModelState;

/// The small half of a classifier's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogisticHead {
    /// The recipe.
    pub settings: ClassifierSettings,
    /// Rows the model stands for.
    pub rows: usize,
    /// Scores per row.
    pub outputs: usize,
    /// Features per row.
    pub features: usize,
    /// How often the curvature was made anew.
    pub refactorisations: usize,
    row_set: u64,
    noise_rows: u64,
    facts: Option<RowFacts>,
    scales: Option<CurvatureScales>,
    unknown: f64,
    unknown_local: Option<f64>,
    measured: bool,
    moved: f64,
    swung: f64,
    drift: f64,
    warp: f64,
    /// Weights that an approximate method left in columns that no row has.
    #[serde(default)]
    remnant: f64,
    #[serde(default)]
    profile: Option<f64>,
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

impl LogisticModel {
    /// The state, with nothing waiting: call [`settle`](crate::Amend::settle) first. Its arrays are
    /// `theta`, `veil`, `origin`, `inverse_scale`, with several classes `gauge`, and where the
    /// curvature is kept `hessian` and, where bounds need it, `gram` (lower triangles, column after
    /// column); counts `class_rows` and `support`. Without `hessian` the model can predict, and
    /// forgets by passes over its rows.
    pub fn to_state(&self) -> Result<ModelState> {
        if crate::Amend::waiting(self) > 0 {
            return Err(Error::Unsupported {
                method: "storing",
                reason: "changed rows wait to be folded in; settle first".into(),
            });
        }
        let (origin, inverse_scale) = self.basis.parts();
        // What is known of the gradient may be a combination of rows that are gone: only its size
        // is written down.
        let mut ledger = self.ledger.clone();
        ledger.forget_direction();
        let head = LogisticHead {
            settings: self.settings,
            rows: self.rows,
            outputs: self.outputs(),
            features: self.features(),
            refactorisations: self.refactorisations,
            row_set: self.row_set,
            noise_rows: self.noise_rows,
            facts: Some(RowFacts {
                inverse_norm: finite(self.facts.inverse_norm).unwrap_or(f64::MAX),
                ..self.facts
            }),
            scales: self.standing.as_ref().map(|standing| standing.base.scales),
            unknown: ledger.unknown,
            unknown_local: finite(ledger.unknown_local),
            measured: ledger.source == BoundSource::Measured,
            moved: ledger.moved,
            swung: ledger.swung,
            drift: ledger.drift,
            warp: ledger.warp.min(f64::MAX),
            remnant: ledger.remnant,
            profile: finite(ledger.profile),
        };
        let family = match self.settings.link {
            Link::Logistic => Family::Logistic,
            Link::Softmax => Family::Softmax,
        };
        let mut state = ModelState::new(family, &head)?;
        state.put_numbers("theta", columns(&self.theta));
        state.put_numbers("origin", origin);
        state.put_numbers("inverse_scale", inverse_scale);
        if !self.extra.gauge.is_empty() {
            state.put_numbers("gauge", self.extra.gauge.clone());
        }
        if let Some(veil) = &self.veil {
            state.put_numbers("veil", columns(veil));
        }
        state.put_counts("class_rows", self.class_rows.clone());
        if let Some(StandingHessian { base, .. }) = &self.standing {
            state.put_numbers("hessian", lower(&base.hessian));
            if base.survey.gram.nrows() > 0 {
                state.put_numbers("gram", lower(&base.survey.gram));
            }
            state.put_counts("support", base.survey.support.clone());
        }
        Ok(state)
    }

    /// The model of a state; everything in it is checked before it is believed.
    pub fn from_state(mut state: ModelState) -> Result<Self> {
        let head: LogisticHead = state.head()?;
        let damaged = |what: &str| Error::Damaged(format!("its {what} makes no sense"));
        head.settings.check().map_err(|_| damaged("recipe"))?;
        let features = head.features;
        let outputs = head.outputs;
        // The sizes that a head claims are multiplied below: they must be those of its parameters.
        let width = features.checked_add(usize::from(head.settings.logistic.intercept));
        let size = width
            .and_then(|width| width.checked_mul(outputs))
            .filter(|_| outputs > 0);
        let theta = state.take_numbers("theta").unwrap_or_default();
        if size != Some(theta.len()) || theta.is_empty() {
            return Err(damaged("theta"));
        }
        let classes = head.settings.link.classes(outputs);
        let origin = state
            .take_numbers("origin")
            .ok_or_else(|| damaged("origin"))?;
        let inverse_scale = state
            .take_numbers("inverse_scale")
            .ok_or_else(|| damaged("scale"))?;
        let basis = Basis::from_parts(
            features,
            head.settings.logistic.intercept,
            origin,
            inverse_scale,
        )
        .ok_or_else(|| damaged("basis"))?;
        let width = basis.width();
        let table = |values: Vec<f64>| {
            let sound = values.len() == width * outputs && values.iter().all(|v| v.is_finite());
            sound.then(|| Mat::from_fn(width, outputs, |j, c| values[c * width + j]))
        };
        let theta = table(theta).ok_or_else(|| damaged("theta"))?;
        let veil = state.take_numbers("veil").and_then(table);
        if veil.is_none() == super::private::descends(&head.settings) {
            return Err(damaged("veil"));
        }
        let class_rows = state
            .take_counts("class_rows")
            .filter(|rows| rows.len() == classes);
        let class_rows = class_rows.ok_or_else(|| damaged("classes"))?;
        let gauge = state.take_numbers("gauge").unwrap_or_default();
        let gauged = if head.settings.link == Link::Softmax {
            width
        } else {
            0
        };
        if gauge.len() != gauged || gauge.iter().any(|gauge| !gauge.is_normal() || *gauge < 0.0) {
            return Err(damaged("gauge"));
        }
        let extra = head.settings.extra(&basis, gauge, outputs, head.noise_rows);
        let profile = head.profile.unwrap_or(f64::INFINITY);
        let sound = [
            head.unknown,
            head.moved,
            head.swung,
            head.drift,
            head.warp,
            head.remnant,
        ]
        .iter()
        .all(|v| v.is_finite() && *v >= 0.0)
            && profile >= 0.0;
        let facts = head
            .facts
            .filter(RowFacts::is_sound)
            .ok_or_else(|| damaged("facts"))?;
        if !sound {
            return Err(damaged("ledger"));
        }
        let hessian = state.take_numbers("hessian");
        let gram = state.take_numbers("gram");
        let support = state.take_counts("support");
        let standing = match (hessian, support, head.scales) {
            (Some(hessian), Some(support), Some(scales)) => {
                let total = width * outputs;
                let hessian = from_lower(&hessian, total).ok_or_else(|| damaged("Hessian"))?;
                let gram = match gram {
                    Some(gram) => {
                        let mut gram =
                            from_lower(&gram, width).ok_or_else(|| damaged("Gram matrix"))?;
                        mirror_lower(gram.as_mut());
                        gram
                    }
                    None if outputs == 1 && scales.reach.is_finite() => Mat::zeros(0, 0),
                    None => return Err(damaged("Gram matrix")),
                };
                if support.len() != width || !scales.is_sound() {
                    return Err(damaged("support"));
                }
                let threads = par(head.settings.logistic.threads);
                let factor =
                    Cholesky::factor(&hessian, |at| extra.penalty[at % width] == 0.0, threads)
                        .map_err(|_| damaged("Hessian"))?;
                let survey = RowSurvey {
                    gram,
                    support,
                    class_rows: class_rows.clone(),
                    reach: facts.reach,
                    weight: facts.weight,
                    trace: facts.trace,
                };
                let base = HessianCurvature {
                    hessian,
                    factor,
                    inverse: None,
                    survey,
                    scales,
                };
                Some(StandingHessian::new(base))
            }
            _ => None,
        };
        let mut ledger = BoundLedger {
            leftover: Mat::zeros(width, outputs),
            leftover_local: 0.0,
            unknown: head.unknown,
            unknown_local: head.unknown_local.unwrap_or(f64::INFINITY),
            source: if head.measured {
                BoundSource::Measured
            } else {
                BoundSource::Carried
            },
            moved: head.moved,
            swung: head.swung,
            anchor: None,
            drift: head.drift,
            warp: head.warp,
            remnant: head.remnant,
            profile,
        };
        if standing.is_some() {
            ledger.anchor_at(&theta);
        }
        Ok(Self {
            settings: head.settings,
            basis: Arc::new(basis),
            extra: Arc::new(extra),
            theta,
            veil,
            rows: head.rows,
            class_rows,
            standing,
            facts,
            ledger,
            refactorisations: head.refactorisations,
            steps: 0,
            unseen: Arc::default(),
            path: None,
            aids: Default::default(),
            row_set: head.row_set,
            noise_rows: head.noise_rows,
        })
    }
}

impl RowFacts {
    fn is_sound(&self) -> bool {
        let Self {
            reach,
            weight,
            trace,
            scale,
            inverse_norm,
            ..
        } = *self;
        [reach, weight, trace, scale]
            .iter()
            .all(|v| v.is_finite() && *v >= 0.0)
            && inverse_norm > 0.0
    }
}

impl CurvatureScales {
    fn is_sound(&self) -> bool {
        let Self {
            inverse_norm,
            measured,
            pull,
            gram_norm,
            size,
            reach,
            ..
        } = *self;
        [inverse_norm, measured, pull, gram_norm, size]
            .iter()
            .all(|v| v.is_finite() && *v >= 0.0)
            && reach >= 0.0
    }
}

fn columns(a: &Mat<f64>) -> Vec<f64> {
    (0..a.ncols())
        .flat_map(|c| a.col_as_slice(c).iter().copied())
        .collect()
}

fn lower(a: &Mat<f64>) -> Vec<f64> {
    (0..a.ncols())
        .flat_map(|j| a.col_as_slice(j)[j..].iter().copied())
        .collect()
}

fn from_lower(values: &[f64], width: usize) -> Option<Mat<f64>> {
    if values.len() != width * (width + 1) / 2 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut a = Mat::zeros(width, width);
    let mut rest = values;
    for j in 0..width {
        let (column, others) = rest.split_at(width - j);
        a.col_as_slice_mut(j)[j..].copy_from_slice(column);
        rest = others;
    }
    Some(a)
}
