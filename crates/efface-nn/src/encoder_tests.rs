//! Gradients of whole encoders against differences, and texts in other company.

use super::*;
use crate::embedding::Embedding;
use crate::plan::{EncoderSettings, Pooling};

fn embedding() -> Embedding {
    Embedding::random((0..20).map(|at| format!("w{at}")).collect(), 5, 3).unwrap()
}

fn texts() -> Vec<Vec<u32>> {
    [6, 1, 4, 4, 3]
        .iter()
        .enumerate()
        .map(|(i, &n)| (0..n).map(|t| (1 + (i * 7 + t * 5) % 21) as u32).collect())
        .collect()
}

fn shapes() -> Vec<EncoderSettings> {
    let stack = EncoderSettings::stacked(4, 3).dropout(0.0);
    let both = EncoderSettings::bilstm(3).dropout(0.0);
    vec![
        both,
        both.pooling(Pooling::Last),
        both.pooling(Pooling::Mean).width(6),
        EncoderSettings {
            squash: Squash::Relu,
            ..both.width(7)
        },
        stack.pooling(Pooling::Mean),
        EncoderSettings {
            bidirectional: true,
            ..stack
        }
        .pooling(Pooling::Last)
        .width(5),
        EncoderSettings {
            residual: false,
            ..stack
        },
        EncoderSettings {
            layer_norm: false,
            ..stack
        },
    ]
}

#[test]
fn gradients_equal_differences() {
    let embedding = embedding();
    let texts = texts();
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let expected = [(0, 0.2), (1, 0.1), (2, 0.3), (1, 0.2), (0, 0.2)];
    let aims = expected
        .map(|(class, share)| TextAim::learn(class, share))
        .to_vec();
    let lesson = BatchShare {
        texts,
        aims,
        seed: 1,
    };
    for (case, settings) in shapes().into_iter().enumerate() {
        let plan = EncoderPlan::new(settings, &embedding, 3).unwrap();
        let mut parameters = plan.draw(&embedding, 9);
        let mut pool = BufferPool::default();
        let mut loss = |parameters: &[f32]| {
            let weights = EncoderWeights {
                plan: &plan,
                parameters,
                frozen: embedding.table(),
            };
            weights
                .learn(&lesson, &mut vec![0.0; plan.total()], &mut pool)
                .loss
        };
        let mut gradient = vec![0.0; plan.total()];
        let weights = EncoderWeights {
            plan: &plan,
            parameters: &parameters,
            frozen: embedding.table(),
        };
        weights.learn(&lesson, &mut gradient, &mut BufferPool::default());
        let largest = gradient
            .iter()
            .fold(0.0f32, |most, value| most.max(value.abs()));
        let step = 5e-4f32;
        let tolerance = 1e-3 * largest + 2e-4;
        let here = loss(&parameters);
        // Some of every array, so that none is left out.
        for slot in plan.slots() {
            for at in slot.range.clone().step_by(slot.range.len().div_ceil(7)) {
                let kept = parameters[at];
                parameters[at] = kept + step;
                let above = loss(&parameters);
                parameters[at] = kept - step;
                let below = loss(&parameters);
                parameters[at] = kept;
                // The slopes to either side differ by the curvature, or at the kink of a maximum or
                // of a relu by more; the gradient lies between them.
                let slope = |rise: f64| (rise / f64::from(step)) as f32;
                let left = slope(here - below);
                let right = slope(above - here);
                let low = left.min(right) - tolerance;
                let high = left.max(right) + tolerance;
                let found = gradient[at];
                assert!(
                    (low..=high).contains(&found),
                    "case {case}, {} {at}: {found}; {left}, {right}",
                    slot.name
                );
            }
        }
    }
}

#[test]
fn company_does_not_change_a_text() {
    let embedding = embedding();
    let texts = texts();
    for settings in shapes() {
        let plan = EncoderPlan::new(settings, &embedding, 3).unwrap();
        let parameters = plan.draw(&embedding, 4);
        let weights = EncoderWeights {
            plan: &plan,
            parameters: &parameters,
            frozen: embedding.table(),
        };
        let all: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let together = weights.features(&all, &mut BufferPool::default());
        let d = settings.features();
        for (at, text) in all.iter().enumerate() {
            let alone = weights.features(&[text], &mut BufferPool::default());
            for (a, b) in alone.iter().zip(&together[at * d..(at + 1) * d]) {
                assert!((a - b).abs() < 1e-6, "{a} alone, {b} in company");
            }
        }
    }
}

/// share · (label · cross-entropy + teacher · KL(teacher‖student)), written out.
fn objective(logits: &[f64], aim: &TextAim<'_>) -> f64 {
    let total = logits.iter().map(|value| value.exp()).sum::<f64>().ln();
    let loss = total - logits[aim.class];
    let divergence =
        |(q, value): (&f32, &f64)| f64::from(*q) * (f64::from(*q).ln() - (value - total));
    let far: f64 = aim.taught.iter().zip(logits).map(divergence).sum();
    f64::from(aim.share) * (f64::from(aim.label) * loss + f64::from(aim.teacher) * far)
}

#[test]
fn slopes_of_signed_losses_and_of_a_teacher_equal_differences() {
    let logits = [0.3f32, -1.1, 0.8, 0.1];
    let taught = [0.1f32, 0.2, 0.4, 0.3];
    for (label, teacher) in [(1.0, 0.0), (-0.05, 0.0), (0.0, -1.0), (0.7, 0.5)] {
        let aim = TextAim {
            class: 2,
            share: 0.25,
            label,
            teacher,
            taught: &taught,
        };
        let mut slopes = logits;
        let score = ShareScore::of(&[aim], &cross_entropy(&mut slopes, &[aim]));
        let wide = logits.map(f64::from);
        for c in 0..4 {
            let at = |step: f64| {
                let mut moved = wide;
                moved[c] += step;
                objective(&moved, &aim)
            };
            let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (f64::from(slopes[c]) - expected).abs() < 1e-6,
                "{label} {teacher}: {} {expected}",
                slopes[c]
            );
        }
        // What is to be forgotten is told apart from what is learned.
        let loss = 0.25 * (wide.iter().map(|value| value.exp()).sum::<f64>().ln() - wide[2]);
        let is_forgotten = label < 0.0 || teacher < 0.0;
        let told = if is_forgotten {
            score.forgotten
        } else {
            score.loss
        };
        assert!(
            (told - loss).abs() < 1e-7 && score.forgotten + score.loss == told,
            "{score:?}"
        );
    }
}
