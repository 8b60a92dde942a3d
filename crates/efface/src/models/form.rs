//! The forms in which curvature is kept.

/// How the curvature of a ridge model is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Chosen by what a fit, a request from a stored model and its file cost together: `Iterative` from 4,096 columns on where
    /// passes over the rows cost less than half of a d×d matrix, and always when one would pass 2 GiB; else `Factor`.
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

/// Up to this width a factor is made in a second, and then serves requests in milliseconds: no passes over rows do.
const ALWAYS_FACTORED: usize = 4_096;

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

impl TableShape {
    /// Seconds of one core for a fit, a request that begins and ends with a file, and moving that file to a disk and back,
    /// with d×d matrices.
    fn factored(&self) -> f64 {
        /// A multiplication and addition of a matrix product, of one scattered over a matrix, and a byte of a file.
        const PRODUCT: f64 = 3e-11;
        const SCATTERED: f64 = 1e-9;
        const BYTE: f64 = 1e-8;
        let width = self.width as f64;
        let sums = if self.dense {
            self.rows * width * width / 2.0 * PRODUCT
        } else {
            self.rows * self.entries * self.entries / 2.0 * SCATTERED
        };
        let factor = width.powi(3) / 3.0 * PRODUCT;
        sums + 2.0 * factor + 2.0 * 4.0 * width * width * BYTE
    }

    /// The same with passes over the rows.
    fn iterated(&self) -> f64 {
        /// Conjugate gradients of a fit and of a request together, and what a number costs each of them.
        const PASSES: f64 = 300.0;
        const DENSE: f64 = 5e-10;
        const SPARSE: f64 = 2e-9;
        let number = if self.dense { DENSE } else { SPARSE };
        PASSES * self.outputs * self.rows * self.entries * number
    }
}

impl Form {
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
        let passes_pay =
            table.width > ALWAYS_FACTORED && table.penalised && 2.0 * table.iterated() < table.factored();
        if table.width > WIDEST || passes_pay { Form::Iterative } else { Form::Factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(rows: f64, width: usize, entries: f64, penalised: bool) -> Form {
        let dense = entries == width as f64;
        Form::Auto.resolve(TableShape { rows, width, entries, dense, outputs: 1.0, penalised })
    }

    #[test]
    fn passes_are_for_wide_tables_of_few_numbers() {
        assert_eq!(chosen(7_770.0, 8_315, 44.0, true), Form::Iterative);
        assert_eq!(chosen(10_000.0, 10_000, 60.0, true), Form::Iterative);
        assert_eq!(chosen(7_770.0, 8_315, 44.0, false), Form::Factor);
        assert_eq!(chosen(1e6, 100, 100.0, true), Form::Factor);
        assert_eq!(chosen(30_000.0, 3_000, 3_000.0, true), Form::Factor);
        assert_eq!(chosen(100_000.0, 3_000, 20.0, true), Form::Factor);
        assert_eq!(chosen(1e6, 5_000, 5_000.0, true), Form::Factor);
    }
}
