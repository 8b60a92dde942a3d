//! Double-double arithmetic (about 31 digits) and the ridge minimum in it, written apart from the
//! library's own, so that the oracle's rounding and the library's cannot agree by accident.

use efface::Rows;

/// An unevaluated sum of two doubles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pair(f64, f64);

impl Pair {
    pub(crate) fn new(value: f64) -> Self {
        Self(value, 0.0)
    }
    fn sum(a: f64, b: f64) -> Self {
        let s = a + b;
        let t = s - a;
        Self(s, (a - (s - t)) + (b - t))
    }
    pub(crate) fn add(self, other: Self) -> Self {
        let s = Self::sum(self.0, other.0);
        Self::sum(s.0, s.1 + self.1 + other.1)
    }
    pub(crate) fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
    pub(crate) fn mul(self, other: Self) -> Self {
        let p = self.0 * other.0;
        let e = self.0.mul_add(other.0, -p);
        Self::sum(p, e + self.0 * other.1 + self.1 * other.0)
    }
    pub(crate) fn div(self, other: Self) -> Self {
        let q = Self::new(self.0 / other.0);
        let r = self.add(q.mul(other).neg());
        q.add(Self::new(r.0 / other.0))
    }
}

/// Rows in coordinates of the oracle's own: centred and scaled by powers of two, entries as pairs.
/// Nothing is lost by it.
struct Centred {
    rows: Vec<Vec<Pair>>,
    weights: Vec<f64>,
    targets: Vec<Vec<f64>>,
    origin: Vec<f64>,
    scale: Vec<f64>,
}

impl Centred {
    fn of(rows: &Rows, width: usize) -> Self {
        let mut origin = vec![0.0; width];
        let mut scale = vec![0.0f64; width];
        let count = rows.iter().count() as f64;
        for row in rows.iter() {
            row.features.each(|j, x| origin[j] += x / count);
        }
        let mut entry = vec![0.0; width];
        for row in rows.iter() {
            entry.fill(0.0);
            row.features.each(|j, x| entry[j] = x);
            for j in 0..width {
                scale[j] = scale[j].max((entry[j] - origin[j]).abs());
            }
        }
        for scale in &mut scale {
            *scale = if *scale > 0.0 {
                scale.log2().round().exp2()
            } else {
                1.0
            };
        }
        let written = |row: efface::RowView<'_>| {
            let mut entry = vec![0.0; width];
            row.features.each(|j, x| entry[j] = x);
            let mut line: Vec<Pair> = (0..width)
                .map(|j| {
                    let centred = Pair::sum(entry[j], -origin[j]);
                    Pair(centred.0 / scale[j], centred.1 / scale[j])
                })
                .collect();
            line.push(Pair::new(1.0));
            line
        };
        Self {
            rows: rows.iter().map(written).collect(),
            weights: rows.iter().map(|row| row.weight).collect(),
            targets: rows.iter().map(|row| row.targets.to_vec()).collect(),
            origin,
            scale,
        }
    }

    fn penalty(&self, lambda: f64, j: usize) -> Pair {
        match self.scale.get(j) {
            Some(scale) => Pair::new(lambda)
                .div(Pair::new(*scale))
                .div(Pair::new(*scale)),
            None => Pair::new(0.0),
        }
    }

    /// Back to the caller's coordinates, the constant last.
    fn given_back(&self, answer: &[Pair]) -> Vec<f64> {
        let mut constant = answer[self.scale.len()];
        let mut given = Vec::with_capacity(answer.len());
        for ((inner, scale), origin) in answer.iter().zip(&self.scale).zip(&self.origin) {
            let coefficient = inner.div(Pair::new(*scale));
            constant = constant.add(coefficient.mul(Pair::new(*origin)).neg());
            given.push(coefficient.0 + coefficient.1);
        }
        given.push(constant.0 + constant.1);
        given
    }
}

/// The minimum of a ridge loss with an unpenalised constant: per output the coefficients, the
/// constant last. Small problems are eliminated in pairs, O(nd² + d³); large ones are refined with
/// residuals in pairs, O(nd) a round. None where that does not converge.
pub(crate) fn ridge_minimum(rows: &Rows, width: usize, lambda: f64) -> Option<Vec<Vec<f64>>> {
    let centred = Centred::of(rows, width);
    let work = centred.rows.len() * width * width;
    let outputs = centred.targets.first().map_or(1, Vec::len);
    (0..outputs)
        .map(|output| {
            let answer = if work <= 4_000_000 {
                eliminated(&centred, lambda, output)
            } else {
                refined(&centred, lambda, output)?
            };
            Some(centred.given_back(&answer))
        })
        .collect()
}

fn eliminated(problem: &Centred, lambda: f64, output: usize) -> Vec<Pair> {
    let p = problem.scale.len() + 1;
    let mut system = vec![vec![Pair::new(0.0); p + 1]; p];
    for ((x, weight), targets) in problem
        .rows
        .iter()
        .zip(&problem.weights)
        .zip(&problem.targets)
    {
        for (i, line) in system.iter_mut().enumerate() {
            let weighted = x[i].mul(Pair::new(*weight));
            for (cell, xj) in line.iter_mut().zip(x) {
                *cell = cell.add(weighted.mul(*xj));
            }
            line[p] = line[p].add(weighted.mul(Pair::new(targets[output])));
        }
    }
    for (i, line) in system.iter_mut().enumerate() {
        line[i] = line[i].add(problem.penalty(lambda, i));
    }
    for column in 0..p {
        let size = |line: usize| system[line][column].0.abs();
        let best = (column..p)
            .max_by(|a, b| size(*a).total_cmp(&size(*b)))
            .unwrap_or(column);
        system.swap(column, best);
        for line in column + 1..p {
            let factor = system[line][column].div(system[column][column]);
            let pivot = system[column].clone();
            for (cell, above) in system[line].iter_mut().zip(pivot).skip(column) {
                *cell = cell.add(factor.mul(above).neg());
            }
        }
    }
    let mut answer = vec![Pair::new(0.0); p];
    for line in (0..p).rev() {
        let mut rest = system[line][p];
        for j in line + 1..p {
            rest = rest.add(system[line][j].mul(answer[j]).neg());
        }
        answer[line] = rest.div(system[line][line]);
    }
    answer
}

fn refined(problem: &Centred, lambda: f64, output: usize) -> Option<Vec<Pair>> {
    use faer::linalg::solvers::Solve;
    let p = problem.scale.len() + 1;
    let n = problem.rows.len();
    let x = faer::Mat::from_fn(n, p, |i, j| {
        problem.rows[i][j].0 * problem.weights[i].sqrt()
    });
    let mut gram = x.transpose() * &x;
    for j in 0..p {
        gram[(j, j)] += problem.penalty(lambda, j).0;
    }
    let factor = gram.llt(faer::Side::Lower).ok()?;
    let mut answer = vec![Pair::new(0.0); p];
    let mut last = f64::INFINITY;
    for _ in 0..60 {
        let mut pull: Vec<Pair> = (0..p)
            .map(|j| problem.penalty(lambda, j).mul(answer[j]))
            .collect();
        for ((x, weight), targets) in problem
            .rows
            .iter()
            .zip(&problem.weights)
            .zip(&problem.targets)
        {
            let mut residual = Pair::new(-targets[output]);
            for (x, a) in x.iter().zip(&answer) {
                residual = residual.add(x.mul(*a));
            }
            let residual = residual.mul(Pair::new(*weight));
            for (pull, x) in pull.iter_mut().zip(x) {
                *pull = pull.add(residual.mul(*x));
            }
        }
        let right = faer::Mat::from_fn(p, 1, |j, _| pull[j].0);
        let step = factor.solve(&right);
        let mut moved = 0.0f64;
        let mut size = 0.0f64;
        for j in 0..p {
            answer[j] = answer[j].add(Pair::new(-step[(j, 0)]));
            moved += step[(j, 0)].powi(2);
            size += answer[j].0.powi(2);
        }
        let moved = (moved / size.max(f64::MIN_POSITIVE)).sqrt();
        if moved < 1e-20 {
            return Some(answer);
        }
        if moved > 0.5 * last && moved < 1e-18 {
            return Some(answer);
        }
        if !moved.is_finite() || (moved > 0.9 * last && last < f64::INFINITY) {
            return None;
        }
        last = moved;
    }
    None
}
