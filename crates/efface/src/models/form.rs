//! The forms in which curvature is kept.

/// How the curvature of a ridge model is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Chosen by size: `Iterative` when a d×d matrix would pass 2 GiB, else `Factor`.
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

    /// The form to use for a model of `width` parameters per output.
    pub(crate) fn resolve(self, width: usize) -> Form {
        match self {
            Form::Auto if width > WIDEST => Form::Iterative,
            Form::Auto => Form::Factor,
            chosen => chosen,
        }
    }
}
