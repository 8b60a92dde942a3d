//! What makes the features that a model sees of those of all columns.

use super::directions::FeatureComponents;
use super::monomials::Monomials;
use super::waves::RandomWaves;

/// What makes the new features of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum PreparedExpansion {
    #[default]
    None,
    Polynomial(Monomials),
    Fourier(RandomWaves),
    Components(FeatureComponents),
}

impl PreparedExpansion {
    /// The number of features that are made of so many.
    pub(super) fn width(&self, columns: usize) -> usize {
        match self {
            Self::None => columns,
            Self::Polynomial(monomials) => monomials.len(),
            Self::Fourier(waves) => waves.len(),
            Self::Components(components) => components.len(),
        }
    }

    /// Whether almost no feature that is made is 0.
    pub(super) fn is_dense(&self) -> bool {
        matches!(self, Self::Fourier(_) | Self::Components(_))
    }

    /// Replaces the features of the columns by those that are made of them.
    pub(super) fn expand(&self, row: &mut Vec<(u32, f64)>) {
        match self {
            Self::None => {}
            Self::Polynomial(monomials) => monomials.expand(row),
            Self::Fourier(waves) => waves.expand(row),
            Self::Components(components) => components.expand(row),
        }
    }

    /// The names of the features that are made of those of the columns, with their places; those of
    /// erased names left out. Components are called by the word.
    pub(super) fn names(&self, columns: Vec<(u32, String)>, component: &str) -> Vec<(u32, String)> {
        let numbered = |word: &str, count: usize| {
            (0..count as u32)
                .map(|feature| (feature, format!("{word}{}", feature + 1)))
                .collect()
        };
        match self {
            Self::None => columns,
            Self::Polynomial(monomials) => monomials.names(&columns),
            Self::Fourier(waves) => numbered("fourier", waves.len()),
            Self::Components(components) => numbered(component, components.len()),
        }
    }
}
