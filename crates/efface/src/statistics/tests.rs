//! Sums against fits of the rows themselves, in any order and split.

use super::*;
use crate::rows::{Dense, Rows};
use crate::synthetic::LinearProblem;
use crate::traits::Fit;
use crate::{Ridge, RidgeModel};

const WIDTH: usize = 7;

/// A table with its target as the last column; the second column lies a million spreads from zero,
/// the third is constant.
fn table(rows: usize) -> Vec<f64> {
    let problem = LinearProblem {
        rows,
        width: WIDTH,
        seed: 11,
    }
    .generate();
    let mut table = Vec::new();
    for (x, y) in problem.x.chunks_exact(WIDTH).zip(&problem.y) {
        let mut x = x.to_vec();
        x[1] += 1e6;
        x[2] = 0.1;
        table.extend(x);
        table.push(3.0 + y);
    }
    table
}

fn columns(table: &[f64]) -> Vec<ColumnView<'_>> {
    (0..=WIDTH)
        .map(|column| ColumnView::of_table(table, WIDTH + 1, column).unwrap())
        .collect()
}

fn spec() -> StatisticsSpec {
    StatisticsSpec::new((0..WIDTH).map(|j| format!("x{j}")), ["y"]).unwrap()
}

fn exact_spec(table: &[f64]) -> StatisticsSpec {
    let mut reach = ColumnReach::new(WIDTH + 1);
    reach.update(&columns(table)).unwrap();
    spec().exact(reach.grids()).unwrap()
}

fn of(spec: &StatisticsSpec, table: &[f64]) -> LinearStatistics {
    let mut statistics = LinearStatistics::new(spec.clone());
    statistics.update(&columns(table), None).unwrap();
    statistics
}

fn fitted(table: &[f64], settings: &Ridge) -> RidgeModel {
    let x = table
        .chunks_exact(WIDTH + 1)
        .flat_map(|row| row[..WIDTH].to_vec())
        .collect();
    let y = table
        .chunks_exact(WIDTH + 1)
        .map(|row| row[WIDTH])
        .collect();
    settings
        .fit(&Rows::new(Dense::new(x, WIDTH).unwrap(), y, 1).unwrap())
        .unwrap()
}

/// How far apart two models are, relative to the size of the second.
fn apart(a: &RidgeModel, b: &RidgeModel) -> f64 {
    let (a, p) = a.parameters();
    let (b, q) = b.parameters();
    ((&a - &b).squared_norm_l2() + (p[0] - q[0]).powi(2)).sqrt()
        / (b.squared_norm_l2() + q[0] * q[0]).sqrt()
}

#[test]
fn a_model_of_sums_is_the_model_of_the_rows() {
    let table = table(3000);
    for settings in [Ridge::new(0.5), Ridge::new(2.0).intercept(false)] {
        let truth = fitted(&table, &settings);
        for spec in [spec(), exact_spec(&table)] {
            let model = settings.fit_statistics(&of(&spec, &table)).unwrap();
            let distance = apart(&model, &truth);
            let bound = model.evidence_at_optimum().relative_bound;
            assert!(
                distance <= bound.max(1e-12),
                "{distance:e} {bound:e} {}",
                spec.is_exact()
            );
            assert!(
                bound < 1e-9 && distance < 1e-12,
                "{distance:e} {bound:e} {}",
                spec.is_exact()
            );
        }
    }
}

#[test]
fn exact_sums_do_not_depend_on_how_rows_were_shared_out() {
    let table = table(2500);
    let spec = exact_spec(&table);
    let whole = of(&spec, &table).to_bytes();
    let width = WIDTH + 1;
    let mut reversed = LinearStatistics::new(spec.clone()).threads(3);
    for row in table.chunks_exact(width).rev() {
        reversed.update(&columns(row), None).unwrap();
    }
    assert_eq!(reversed.to_bytes(), whole);
    let mut merged = of(&spec, &table[700 * width..]);
    merged.merge(&of(&spec, &table[..100 * width])).unwrap();
    merged
        .merge(&of(&spec, &table[100 * width..700 * width]))
        .unwrap();
    assert_eq!(merged.to_bytes(), whole);
    let mut threaded = LinearStatistics::new(spec.clone()).threads(2);
    let many: Vec<f64> = table
        .iter()
        .copied()
        .cycle()
        .take(4 * table.len())
        .collect();
    threaded.update(&columns(&many), None).unwrap();
    assert_eq!(threaded.to_bytes(), of(&spec, &many).to_bytes());
    // What was added and taken out again leaves no trace.
    threaded
        .remove(&columns(&many[table.len()..]), None)
        .unwrap();
    assert_eq!(threaded.to_bytes(), whole);
}

#[test]
fn rounded_sums_hardly_depend_on_it() {
    let table = table(6000);
    let settings = Ridge::new(0.5);
    let width = WIDTH + 1;
    let whole = settings.fit_statistics(&of(&spec(), &table)).unwrap();
    let mut merged = of(&spec(), &table[3500 * width..]);
    merged.merge(&of(&spec(), &table[..width])).unwrap();
    merged
        .merge(&of(&spec(), &table[width..3500 * width]))
        .unwrap();
    assert!(apart(&settings.fit_statistics(&merged).unwrap(), &whole) < 1e-12);
    let mut threaded = LinearStatistics::new(spec()).threads(4);
    threaded.update(&columns(&table), None).unwrap();
    assert!(apart(&settings.fit_statistics(&threaded).unwrap(), &whole) < 1e-12);
    threaded
        .remove(&columns(&table[2000 * width..]), None)
        .unwrap();
    let left = fitted(&table[..2000 * width], &settings);
    assert!(apart(&settings.fit_statistics(&threaded).unwrap(), &left) < 1e-11);
}

/// Rows that dwarf the others cost the sums digits, which do not come back when they leave: the
/// bound must know.
#[test]
fn the_bound_holds_when_giants_have_left() {
    let width = WIDTH + 1;
    for (giant, lambda) in [(3.0, 2.0), (30.0, 2.0), (1e3, 2.0), (1e5, 2.0), (1e7, 1e-3)] {
        let mut table = table(600);
        for row in table.chunks_exact_mut(width).take(3) {
            row.iter_mut().for_each(|x| *x *= giant);
        }
        let settings = Ridge::new(lambda);
        let mut rounded = of(&spec(), &table[..400 * width]);
        rounded.merge(&of(&spec(), &table[400 * width..])).unwrap();
        let mut exact = of(&exact_spec(&table), &table);
        let left = fitted(&table[200 * width..], &settings);
        for statistics in [&mut rounded, &mut exact] {
            statistics
                .remove(&columns(&table[..200 * width]), None)
                .unwrap();
            let is_exact = statistics.spec().is_exact();
            let model = match settings.fit_statistics(statistics) {
                Ok(model) => model,
                // The second column is then a billion: beside such squares, rounding leaves nothing
                // of the others, and there is no model rather than a wrong one.
                Err(Error::Singular { .. }) if giant >= 1e3 && !is_exact => continue,
                Err(error) => panic!("{giant}, exact {is_exact}: {error}"),
            };
            let bound = model.evidence_at_optimum().relative_bound;
            // The grid is as wide as the giants, and rounds the others.
            let grid = if is_exact { 1e-6 * giant } else { 0.0 };
            let distance = apart(&model, &left);
            assert!(
                distance <= bound + grid + 1e-12,
                "{giant} {distance:e} {bound:e}"
            );
        }
    }
}

/// The origin was a number of the first rows, and sizes were sums of squares: to all digits, both
/// would tell a row that left.
#[test]
fn what_is_kept_of_a_row_that_left_has_hardly_any_digits() {
    let width = WIDTH + 1;
    let table = table(200);
    let mut statistics = LinearStatistics::new(spec());
    for row in table.chunks_exact(width) {
        statistics.update(&columns(row), None).unwrap();
    }
    let before = statistics.to_bytes();
    let holds = |bytes: &[u8], x: f64| bytes.windows(8).any(|window| window == x.to_le_bytes());
    // The third column is the same in all rows, and stays known.
    let own = |row: &[f64]| [&row[..2], &row[3..]].concat();
    assert!(
        own(&table[..width]).iter().all(|x| holds(&before, *x)),
        "the first row is the origin"
    );
    for gone in table.chunks_exact(width).take(3) {
        statistics.remove(&columns(gone), None).unwrap();
        let after = statistics.to_bytes();
        assert!(!own(gone).iter().any(|x| holds(&after, *x)));
    }
    let SumsBody::Rounded(sums) = &statistics.body else {
        panic!("rounded sums")
    };
    // Of 52 digits, no more than tell how many spreads a column lies from zero.
    for (column, origin) in sums
        .origin
        .iter()
        .enumerate()
        .filter(|(column, _)| *column != 2)
    {
        assert!(
            *origin == 0.0 || origin.to_bits().trailing_zeros() >= 30,
            "{column}: {origin}"
        );
    }
    assert!(
        sums.settled
            .size
            .iter()
            .all(|size| size.to_bits().trailing_zeros() >= 52)
    );
    assert!(sums.fresh.size.iter().all(|size| *size == 0.0));
    let settings = Ridge::new(0.5);
    let model = settings.fit_statistics(&statistics).unwrap();
    let distance = apart(&model, &fitted(&table[3 * width..], &settings));
    assert!(
        distance <= model.evidence_at_optimum().relative_bound,
        "{distance:e}"
    );
    statistics
        .remove(&columns(&table[3 * width..]), None)
        .unwrap();
    assert_eq!(statistics, LinearStatistics::new(spec()));
}

/// What changes have rounded by adds up slowly, however often rows come and go.
#[test]
fn a_bound_lasts_for_thousands_of_changes() {
    let width = WIDTH + 1;
    let table = table(3000);
    let settings = Ridge::new(0.5);
    let mut statistics = of(&spec(), &table);
    let first = settings
        .fit_statistics(&statistics)
        .unwrap()
        .evidence_at_optimum()
        .relative_bound;
    for row in table.chunks_exact(width).take(2000) {
        statistics.remove(&columns(row), None).unwrap();
    }
    let model = settings.fit_statistics(&statistics).unwrap();
    let bound = model.evidence_at_optimum().relative_bound;
    let distance = apart(&model, &fitted(&table[2000 * width..], &settings));
    assert!(
        distance <= bound && bound < 1000.0 * first,
        "{distance:e} {bound:e} {first:e}"
    );
}

#[test]
fn weights_count_rows_more_than_once() {
    let table = table(400);
    let weights: Vec<f64> = (0..400).map(|i| f64::from(i % 3)).collect();
    let mut weighted = LinearStatistics::new(spec());
    weighted
        .update(&columns(&table), Some(ColumnView::dense(&weights)))
        .unwrap();
    let repeated: Vec<f64> = (table.chunks_exact(WIDTH + 1).zip(&weights))
        .flat_map(|(row, weight)| row.repeat(*weight as usize))
        .collect();
    let settings = Ridge::new(1.0);
    let model = settings.fit_statistics(&weighted).unwrap();
    assert!(apart(&model, &fitted(&repeated, &settings)) < 1e-11);
}

#[test]
fn bytes_are_read_back_and_every_change_of_them_is_survived() {
    let table = table(300);
    for spec in [spec(), exact_spec(&table)] {
        for statistics in [of(&spec, &table), LinearStatistics::new(spec.clone())] {
            let bytes = statistics.to_bytes();
            assert_eq!(LinearStatistics::from_bytes(&bytes).unwrap(), statistics);
            for cut in 0..bytes.len() {
                assert!(LinearStatistics::from_bytes(&bytes[..cut]).is_err());
            }
            for at in 0..bytes.len().min(200) {
                let mut other = bytes.clone();
                other[at] ^= 0x81;
                let _ = LinearStatistics::from_bytes(&other);
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let table = table(50);
    let exact = exact_spec(&table);
    let mut statistics = of(&exact, &table);
    let before = statistics.clone();
    let mut wild = table.clone();
    wild[3 * (WIDTH + 1)] = 1e9;
    let message = statistics
        .update(&columns(&wild), None)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("column \"x0\"") && message.contains("pass over all rows"),
        "{message}"
    );
    wild[3 * (WIDTH + 1)] = f64::NAN;
    let message = statistics
        .update(&columns(&wild), None)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("row 53, column \"x0\" is NaN"),
        "{message}"
    );
    assert!(statistics.update(&columns(&table)[1..], None).is_err());
    assert!(
        statistics
            .merge(&of(&spec(), &table))
            .unwrap_err()
            .to_string()
            .contains("rounded beside exact")
    );
    let other = StatisticsSpec::new((0..WIDTH).map(|j| format!("z{j}")), ["y"]).unwrap();
    assert!(
        statistics
            .merge(&LinearStatistics::new(other))
            .unwrap_err()
            .to_string()
            .contains("other columns")
    );
    let weights = vec![1.0; 50];
    assert!(
        statistics
            .update(&columns(&table), Some(ColumnView::dense(&weights)))
            .is_err()
    );
    let more: Vec<f64> = table.repeat(2);
    assert!(statistics.remove(&columns(&more), None).is_err());
    assert_eq!(statistics, before);
    let mut rounded = of(&spec(), &table);
    wild[3 * (WIDTH + 1)] = 1e200;
    assert!(matches!(
        rounded.update(&columns(&wild), None),
        Err(Error::Overflow)
    ));
    assert_eq!(rounded, of(&spec(), &table));
    assert!(StatisticsSpec::new(["a", "a"], ["y"]).is_err());
    assert!(StatisticsSpec::new(["a"], ["a"]).is_err());
    assert!(spec().exact(vec![ColumnGrid::within(1.0); 3]).is_err());
    assert!(
        spec()
            .exact(vec![ColumnGrid::within(f64::NAN); WIDTH + 1])
            .is_err()
    );
    assert!(
        Ridge::new(1.0)
            .fit_statistics(&LinearStatistics::new(spec()))
            .is_err()
    );
    let rows_form = Ridge::new(1.0).form(crate::Form::Rows);
    assert!(rows_form.fit_statistics(&before).is_err());
}
