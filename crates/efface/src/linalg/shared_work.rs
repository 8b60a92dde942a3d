//! Work that threads share.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use faer::{Mat, MatMut, MatRef, Par};

/// Does every piece of work once. Each thread takes the next piece that none has, so that pieces
/// may differ in size; large ones are to come first.
pub(crate) fn share_work<W: Send>(pieces: Vec<W>, par: Par, work: impl Fn(W) + Sync) {
    let threads = par.degree().clamp(1, pieces.len().max(1));
    if threads == 1 {
        return pieces.into_iter().for_each(work);
    }
    let queue = Mutex::new(pieces.into_iter());
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take_all = || {
        while let Some(piece) = take() {
            work(piece);
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(take_all)));
        take_all();
    });
}

/// What stretches of `0..count` give, in order: one stretch a thread, none shorter than `least`.
pub(crate) fn by_stretches<R: Send>(
    count: usize,
    least: usize,
    par: Par,
    work: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let share = count.div_ceil(par.degree().max(1)).max(least).max(1);
    if share >= count {
        return vec![work(0..count)];
    }
    let work = &work;
    std::thread::scope(|scope| {
        let starts = (0..count).step_by(share);
        let handles: Vec<_> = starts
            .map(|start| scope.spawn(move || work(start..(start + share).min(count))))
            .collect();
        handles
            .into_iter()
            .map(|handle| {
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// Columns of a matrix in groups of so many, each with the number of its first column.
pub(crate) fn column_groups(a: MatMut<'_, f64>, together: usize) -> Vec<(usize, MatMut<'_, f64>)> {
    let mut groups = Vec::new();
    let mut rest = a;
    let mut first = 0;
    while rest.ncols() > 0 {
        let count = together.min(rest.ncols());
        let (group, others) = rest.split_at_col_mut(count);
        groups.push((first, group));
        first += count;
        rest = others;
    }
    groups
}

/// Columns that a thread copies at a time.
const COPIED_TOGETHER: usize = 64;

/// Copies the lower triangle of `from` into `to`.
pub(crate) fn copy_lower(to: MatMut<'_, f64>, from: &Mat<f64>, par: Par) {
    share_work(
        column_groups(to, COPIED_TOGETHER),
        par,
        |(first, mut group)| {
            let own = first..first + group.ncols();
            for (k, j) in own.enumerate() {
                let mut below = group.as_mut().col_mut(k).subrows_mut(j, from.nrows() - j);
                below.copy_from(from.as_ref().col(j).subrows(j, from.nrows() - j));
            }
        },
    );
}

/// `to ← fromᵀ`, in tiles, so that neither side misses the cache all the time.
pub(crate) fn copy_transposed(mut to: MatMut<'_, f64>, from: MatRef<'_, f64>) {
    const TILE: usize = 32;
    for j0 in (0..from.ncols()).step_by(TILE) {
        for i0 in (0..from.nrows()).step_by(TILE) {
            let tile = from.submatrix(
                i0,
                j0,
                TILE.min(from.nrows() - i0),
                TILE.min(from.ncols() - j0),
            );
            to.as_mut()
                .submatrix_mut(j0, i0, tile.ncols(), tile.nrows())
                .copy_from(tile.transpose());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once_and_what_stretches_give_is_in_order() {
        for threads in [1, 2, 3, 8] {
            let par = crate::linalg::par(threads);
            let done = Mutex::new(vec![0; 100]);
            share_work((0..100).collect(), par, |piece: usize| {
                done.lock().unwrap()[piece] += 1
            });
            assert_eq!(done.into_inner().unwrap(), vec![1; 100]);
            for count in [0, 1, 7, 100] {
                let found: Vec<usize> =
                    by_stretches(count, 3, par, |range| range.collect::<Vec<_>>()).concat();
                assert_eq!(found, (0..count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn triangles_and_transposes_are_copied() {
        let from = Mat::from_fn(150, 150, |i, j| (i * 1000 + j) as f64);
        for threads in [1, 3] {
            let mut to = Mat::<f64>::zeros(150, 150);
            copy_lower(to.as_mut(), &from, crate::linalg::par(threads));
            let truth = Mat::from_fn(150, 150, |i, j| if i >= j { from[(i, j)] } else { 0.0 });
            assert_eq!(to, truth);
        }
        let mut turned = Mat::zeros(150, 70);
        copy_transposed(turned.as_mut(), from.as_ref().subrows(10, 70));
        assert_eq!(turned, from.as_ref().subrows(10, 70).transpose().to_owned());
    }
}
