//! What a card gives is what the processor gives; where there is none, the error says so. On a
//! machine without CUDA the tests of sums have nothing to test, and say that.

use std::sync::Arc;

use efface::{Dense, DeviceFactor, Fit, GramEngine, Ridge, Rows};
use efface_cuda::{BlockSum, CudaEngine, CudaError};

/// The engine, or None on a machine that has none.
fn engine() -> Option<CudaEngine> {
    match CudaEngine::open() {
        Ok(engine) => Some(engine),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

fn noise(count: usize) -> Vec<f64> {
    let mut state = 7u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn what_is_missing_is_named() {
    let Err(error) = CudaEngine::open() else {
        return;
    };
    // Whatever is missing, the reason is one of those that a user can act on, and never a failed
    // call.
    assert!(!matches!(error, CudaError::Call { .. }), "{error}");
    let told = error.to_string();
    assert!(
        ["driver", "library", "card"]
            .iter()
            .any(|word| told.contains(word)),
        "{told}"
    );
    let wrapped = efface::Error::from(error);
    assert!(
        wrapped
            .to_string()
            .ends_with("fit on the processor instead"),
        "{wrapped}"
    );
}

#[test]
fn streamed_blocks_are_the_sum_of_all_rows() {
    let Some(engine) = engine() else { return };
    let width = 37;
    for rows in [1, 63, 2048, 2049, 7000] {
        let x = noise(rows * width);
        let mut sum = BlockSum::<f64>::begin(engine.card(), width).unwrap();
        let block = sum.block();
        for part in x.chunks(block * width) {
            sum.buffer().unwrap()[..part.len()].copy_from_slice(part);
            sum.add(part.len() / width).unwrap();
        }
        let (found, terms) = sum.finish().unwrap();
        assert!(terms < 512, "{terms}");
        for j in 0..width {
            for i in j..width {
                let expected: f64 = x.chunks_exact(width).map(|row| row[i] * row[j]).sum();
                let allowed = 4.0 * f64::EPSILON * (terms + rows) as f64 * rows as f64;
                assert!(
                    (found[j * width + i] - expected).abs() <= allowed,
                    "{rows} rows, entry {i} {j}"
                );
            }
        }
    }
}

#[test]
fn a_fit_by_the_card_is_within_its_bound_of_a_fit_by_the_processor() {
    let Some(engine) = engine() else { return };
    let x: Vec<f64> = noise(5000 * 40)
        .iter()
        .enumerate()
        .map(|(at, x)| x + [0.0, 1e3][at % 2])
        .collect();
    let y = noise(5000);
    let rows = Rows::new(Dense::new(x, 40).unwrap(), y, 1).unwrap();
    let settings = Ridge::new(0.5).threads(2);
    let truth = settings.fit(&rows).unwrap();
    let engine = Arc::new(engine);
    let handed: Arc<dyn GramEngine> = engine.clone();
    let found = settings.fit(&rows.multiplied_by(&handed)).unwrap();
    assert_eq!(engine.sums(), 1);
    assert_eq!(engine.remark(), None);
    let apart = (found.parameters().0 - truth.parameters().0).norm_l2();
    let allowed = found.evidence_at_optimum().bound + truth.evidence_at_optimum().bound;
    assert!(apart <= allowed && allowed < 1e-8, "{apart:e} {allowed:e}");
}

#[test]
fn factors_are_those_of_the_matrix_and_a_matrix_without_one_is_found() {
    let Some(engine) = engine() else { return };
    let width = 2500;
    let mut matrix = noise(width * width);
    for j in 0..width {
        matrix[j * width + j] = 2.0 * width as f64;
    }
    let before = matrix.clone();
    let mut columns: Vec<&mut [f64]> = matrix.chunks_mut(width).collect();
    assert_eq!(engine.factor(&mut columns).unwrap(), DeviceFactor::Factored);
    for (i, j) in [(0, 0), (2499, 0), (2499, 2499), (1700, 800)] {
        let product: f64 = (0..=j)
            .map(|k| matrix[k * width + i] * matrix[k * width + j])
            .sum();
        assert!((product - before[j * width + i]).abs() < 1e-9, "{i} {j}");
    }
    let mut broken = before.clone();
    broken[1200 * width + 1200] = -1.0;
    let mut columns: Vec<&mut [f64]> = broken.chunks_mut(width).collect();
    assert_eq!(
        engine.factor(&mut columns).unwrap(),
        DeviceFactor::NotPositive(1200)
    );
    let mut small = [1.0];
    assert_eq!(
        engine.factor(&mut [&mut small[..]]).unwrap(),
        DeviceFactor::Refused
    );
}

#[test]
fn a_card_without_room_leaves_the_work_to_the_processor() {
    let Some(engine) = engine() else { return };
    assert!(engine.begin(3_000_000).unwrap().is_none());
    assert!(matches!(
        engine.remark(),
        Some(CudaError::NoRoom {
            width: 3_000_000,
            ..
        })
    ));
}
