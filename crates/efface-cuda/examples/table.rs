//! The table of docs/scale.md, "A graphics card": `cargo run --release -p efface-cuda --example
//! table -- ROWS WIDTH THREADS`.
//!
//! Sums of rows that are on the card, of rows that are in the processor's memory, factors, and
//! whole fits, each beside what the processor takes. Ends with a failure where card and processor
//! disagree by more than their bounds allow.

use std::sync::Arc;
use std::time::Instant;

use efface::{Dense, DeviceFactor, Fit, GramEngine, Ridge, RidgeModel, Rows};
use efface_cuda::{BlockSum, Card, CardNumber, CudaEngine};
use faer::linalg::solvers::Llt;
use faer::{Mat, Side};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Times that a product is repeated; the middle one is told.
const REPEATED: usize = 7;

fn main() -> Outcome<()> {
    let mut sizes = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let mut next = |usual| sizes.next().unwrap_or(Ok(usual));
    let rows = next(200_000)?;
    let width = next(3_000)?;
    let threads = next(16)?;
    let started = Instant::now();
    let engine = CudaEngine::open()?;
    println!(
        "{}, {} ms to open it",
        engine.card().name(),
        started.elapsed().as_millis()
    );
    println!("{rows} rows of {width} numbers, {threads} threads");

    let x = numbers(rows * width, threads);
    let y: Vec<f64> = x
        .chunks_exact(width)
        .map(|row| row[0] - row[width / 2] + 0.1 * row[width - 1])
        .collect();
    sums("f64", engine.card(), &x, width, threads)?;
    let singles: Vec<f32> = x.iter().map(|x| *x as f32).collect();
    sums("f32", engine.card(), &singles, width, threads)?;
    drop(singles);
    for width in [1_000, 2_000, 3_000, 6_000, 10_000] {
        factors(&engine, width)?;
    }
    fits(engine, Rows::new(Dense::new(x, width)?, y, 1)?, threads)
}

/// Numbers between −1 and 1 that depend on their place alone.
fn numbers(count: usize, threads: usize) -> Vec<f64> {
    let mut all = vec![0.0; count];
    let share = count.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (at, part) in all.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                let mut state = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                for number in part {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    *number = (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
                }
            });
        }
    });
    all
}

/// XᵀX of rows on the card, in blocks of several sizes, and of rows in the processor's memory.
fn sums<T: CardNumber + Into<f64>>(
    what: &str,
    card: &Card,
    x: &[T],
    width: usize,
    threads: usize,
) -> Outcome<()> {
    let started = Instant::now();
    let matrix = card.upload(x, width)?;
    println!(
        "{what}: {:.0} ms to copy the rows in one piece",
        milliseconds(started)
    );
    for block in [x.len() / width, 8192, 4096, 2048, 1024] {
        let mut times = Vec::new();
        for _ in 0..REPEATED {
            times.push(card.gram(&matrix, block)?.1);
        }
        println!(
            "{what}: rows on the card, blocks of {block}: {:.1} ms",
            middle(times)
        );
    }
    let (resident, _) = card.gram(&matrix, 2048)?;
    drop(matrix);
    let mut times = Vec::new();
    let mut streamed = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        let mut sum = BlockSum::<T>::begin(card, width)?;
        let begun = milliseconds(started);
        let block = sum.block();
        for part in x.chunks(block * width) {
            let buffer = &mut sum.buffer()?[..part.len()];
            let share = (part.len() / threads).max(1 << 14);
            std::thread::scope(|scope| {
                for (to, from) in buffer.chunks_mut(share).zip(part.chunks(share)) {
                    scope.spawn(|| to.copy_from_slice(from));
                }
            });
            sum.add(part.len() / width)?;
        }
        streamed = sum.finish()?.0;
        times.push(milliseconds(started));
        println!("{what}: {begun:.0} ms of it before the first row");
    }
    println!(
        "{what}: rows in memory, copies and all: {:.0} ms",
        middle(times)
    );
    let lower = (0..width).flat_map(|j| (j..width).map(move |i| j * width + i));
    let apart = lower
        .map(|at| (resident[at].into() - streamed[at].into()).abs())
        .fold(0.0, f64::max);
    println!(
        "{what}: the two sums differ by {apart:.1e} at most, of {:.1e}",
        resident[0].into()
    );
    // By hand, for one entry, in doubles.
    let by_hand: f64 = x
        .chunks_exact(width)
        .map(|row| row[0].into() * row[1].into())
        .sum();
    println!(
        "{what}: an entry differs by {:.1e} from its sum in doubles",
        (by_hand - resident[1].into()).abs()
    );
    Ok(())
}

/// Cholesky factors on the card, with the copies there and back, and by the processor.
fn factors(engine: &CudaEngine, width: usize) -> Outcome<()> {
    let noise = numbers(width * width, 1);
    let matrix = Mat::from_fn(width, width, |i, j| {
        noise[i.min(j) * width + i.max(j)] + if i == j { 2.0 * width as f64 } else { 0.0 }
    });
    let started = Instant::now();
    let processor = Llt::new(matrix.as_ref(), Side::Lower).map_err(|error| format!("{error:?}"))?;
    let by_processor = milliseconds(started);
    let flat: Vec<f64> = (0..width)
        .flat_map(|j| matrix.col_as_slice(j).iter().copied())
        .collect();
    let mut on_card = engine.card().upload(&flat, width)?;
    let (_, alone) = engine.card().factor(&mut on_card)?;
    let mut flat = flat;
    let started = Instant::now();
    let mut columns: Vec<&mut [f64]> = flat.chunks_mut(width).collect();
    let done = engine.factor(&mut columns)?;
    let with_copies = milliseconds(started);
    let lower = processor.L();
    let apart = (0..width)
        .map(|j| (lower[(width - 1, j)] - flat[j * width + width - 1]).abs())
        .fold(0.0, f64::max);
    let copies = if done == DeviceFactor::Factored {
        format!("{with_copies:.0} ms")
    } else {
        "refused".into()
    };
    println!(
        "factor of {width}: card {alone:.1} ms, copies and all {copies}, processor {by_processor:.0} ms"
    );
    if done == DeviceFactor::Factored && apart > 1e-9 {
        return Err(format!("the factors differ by {apart:e}").into());
    }
    Ok(())
}

/// Whole fits, the rows being in memory.
fn fits(engine: CudaEngine, rows: Rows, threads: usize) -> Outcome<()> {
    let recipe = Ridge::new(1.0).threads(threads);
    let engine: Arc<dyn GramEngine> = Arc::new(engine);
    let rows = rows.multiplied_by(&engine);
    let mut by_card = None;
    for _ in 0..3 {
        let started = Instant::now();
        let model = recipe.fit(&rows)?;
        tell("card", milliseconds(started), &model);
        by_card = Some(model);
    }
    let Some(by_card) = by_card else {
        return Ok(());
    };
    let rows = rows.multiplied_by(&(Arc::new(NoEngine) as Arc<dyn GramEngine>));
    let started = Instant::now();
    let by_processor = recipe.fit(&rows)?;
    tell("processor", milliseconds(started), &by_processor);
    let (a, p) = by_card.parameters();
    let (b, q) = by_processor.parameters();
    let apart = ((a - b).squared_norm_l2() + (p[0] - q[0]).powi(2)).sqrt();
    let allowed = by_card.evidence_at_optimum().bound + by_processor.evidence_at_optimum().bound;
    println!("the two models differ by {apart:.1e}, and their bounds allow {allowed:.1e}");
    if apart > allowed {
        Err("the bounds do not hold".into())
    } else {
        Ok(())
    }
}

fn tell(who: &str, milliseconds: f64, model: &RidgeModel) {
    let bound = model.evidence_at_optimum().relative_bound;
    println!("fit by the {who}: {milliseconds:.0} ms, within {bound:.1e} of the optimum");
}

/// Leaves all work to the processor.
#[derive(Debug)]
struct NoEngine;

impl GramEngine for NoEngine {
    fn begin(&self, _: usize) -> efface::Result<Option<Box<dyn efface::GramSum>>> {
        Ok(None)
    }

    fn factor(&self, _: &mut [&mut [f64]]) -> efface::Result<DeviceFactor> {
        Ok(DeviceFactor::Refused)
    }
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
