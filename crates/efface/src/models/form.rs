//! The forms in which curvature is kept.

/// How the curvature of a ridge model is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Chosen by what a fit, a request from a stored model and its file cost together: `Iterative`
    /// above 1,024 columns where passes over the rows cost clearly less than a d×d matrix, and
    /// always when one would pass 2 GiB; else `Factor`.
    #[default]
    Auto,
    /// Cholesky factor of A.
    Factor,
    /// A⁻¹ itself.
    Inverse,
    /// XA⁻¹, one vector a row: the fastest forget, the most memory.
    Rows,
    /// No d×d matrix at all: conjugate gradients over the rows.
    Iterative,
}

/// The widest model for which `Form::Auto` keeps d×d matrices: 2 GiB each.
const WIDEST: usize = 16_384;

/// Up to this width everything takes less than a quarter of a second with a factor, which then
/// serves requests in memory in tenths of a millisecond: no passes over rows do.
const ALWAYS_FACTORED: usize = 1_024;

/// The factor is taken where it costs up to so many times what passes cost, because of those
/// requests.
const WORTH_OF_FACTOR: f64 = 1.6;

/// From this width on the factor is in the file.
const FACTOR_KEPT_FROM: usize = 4_096;

/// A table of rows, as far as it decides how curvature is best kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableShape {
    pub(crate) rows: f64,
    /// Parameters per output.
    pub(crate) width: usize,
    /// Numbers that a row holds on average, and whether it holds all of them.
    pub(crate) entries: f64,
    pub(crate) dense: bool,
    pub(crate) outputs: f64,
    /// Whether a penalty holds every direction, without which there are no passes over the rows.
    pub(crate) penalised: bool,
}

/// Seconds for a byte that a command reads or writes: 100 MB a second.
const BYTE: f64 = 1e-8;

impl TableShape {
    /// Seconds of one core for a fit and for a request that begins and ends with a file, with d×d
    /// matrices. The constants were measured by `cargo xtask bench forms`.
    fn factored(&self) -> f64 {
        /// A multiplication and addition of a matrix product, and of one scattered over a matrix.
        const PRODUCT: f64 = 6e-11;
        const SCATTERED: f64 = 1e-9;
        /// What all solves of a fit, and of a request, take for an entry of the matrix.
        const FIT_SOLVES: f64 = 4e-8;
        const REQUEST_SOLVES: f64 = 3e-8;
        let square = (self.width as f64).powi(2);
        let sums = if self.dense {
            self.rows * square / 2.0 * PRODUCT
        } else {
            self.rows * self.entries * self.entries / 2.0 * SCATTERED
        };
        let factor = square * self.width as f64 / 3.0 * PRODUCT;
        // A stored factor is not made anew, and doubles the file.
        let (request_factor, bytes) = if Form::keeps_factor(self.width) {
            (0.0, 8.0 * square)
        } else {
            (factor, 4.0 * square)
        };
        let fit = sums + factor + FIT_SOLVES * square;
        fit + request_factor + REQUEST_SOLVES * square + 2.0 * bytes * BYTE
    }

    /// The same with passes over the rows, all of which a request reads.
    fn iterated(&self) -> f64 {
        /// What the passes of a fit and of a request take for a number of the table where columns
        /// are independent and few.
        const DENSE: f64 = 2.5e-8;
        const SPARSE: f64 = 2e-7;
        /// The most iterations that a penalty leaves, beside those of a table with many more rows
        /// than columns.
        const MOST_ITERATIONS: f64 = 9.0;
        let numbers = self.rows * self.entries;
        let (number, bytes) = if self.dense {
            (DENSE, 8.0)
        } else {
            (SPARSE, 12.0)
        };
        // Conjugate gradients take as many iterations as the root of the condition of A, here that
        // of random columns.
        let share = (self.width as f64 / self.rows.max(1.0)).sqrt();
        let root_condition = if share < 1.0 {
            ((1.0 + share) / (1.0 - share)).min(MOST_ITERATIONS)
        } else {
            MOST_ITERATIONS
        };
        numbers * (self.outputs * number * (1.0 + 0.8 * root_condition) + bytes * BYTE)
    }
}

impl Form {
    /// Whether a stored model of this width holds its factor. Making one takes d³/3 operations; a
    /// stored one takes reading, hashing and writing d²/2 numbers with every request that is a
    /// command.
    pub(crate) fn keeps_factor(width: usize) -> bool {
        width >= FACTOR_KEPT_FROM
    }

    /// Its name, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Factor => "factor",
            Self::Inverse => "inverse",
            Self::Rows => "rows",
            Self::Iterative => "iterative",
        }
    }

    /// The form to use for a model of these rows.
    pub(crate) fn resolve(self, table: TableShape) -> Form {
        if self != Form::Auto {
            return self;
        }
        let passes_pay = table.width > ALWAYS_FACTORED
            && table.penalised
            && WORTH_OF_FACTOR * table.iterated() < table.factored();
        if table.width > WIDEST || passes_pay {
            Form::Iterative
        } else {
            Form::Factor
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(rows: f64, width: usize, entries: f64, penalised: bool) -> Form {
        let dense = entries == width as f64;
        Form::Auto.resolve(TableShape {
            rows,
            width,
            entries,
            dense,
            outputs: 1.0,
            penalised,
        })
    }

    #[test]
    fn passes_are_for_wide_tables_of_few_numbers() {
        assert_eq!(chosen(7_770.0, 8_315, 44.0, true), Form::Iterative);
        assert_eq!(chosen(10_000.0, 10_000, 60.0, true), Form::Iterative);
        assert_eq!(chosen(7_770.0, 8_315, 44.0, false), Form::Factor);
        assert_eq!(chosen(1e6, 100, 100.0, true), Form::Factor);
        assert_eq!(chosen(30_000.0, 3_000, 3_000.0, true), Form::Factor);
        assert_eq!(chosen(100_000.0, 3_000, 20.0, true), Form::Iterative);
        assert_eq!(chosen(20_000.0, 1_500, 30.0, true), Form::Factor);
        assert_eq!(chosen(500.0, 2_500, 2_500.0, true), Form::Iterative);
        assert_eq!(chosen(500.0, 2_500, 2_500.0, false), Form::Factor);
        assert_eq!(chosen(4_000.0, 2_000, 2_000.0, true), Form::Factor);
        // Small ones keep the factor, whatever a pass over few rows would take.
        assert_eq!(chosen(100.0, 1_000, 5.0, true), Form::Factor);
        assert_eq!(chosen(1e6, 5_000, 5_000.0, true), Form::Factor);
    }
}
