//! The last step between columns and a model: what becomes of the features of all columns together.

use super::expansion::PreparedExpansion;
use super::monomials::Monomials;
use super::waves::RandomWaves;
use super::{Encoder, FeatureError, FeatureExpansion};

impl Encoder {
    /// The number of features of the columns themselves, erased ones included.
    pub fn column_width(&self) -> usize {
        self.offsets.last().map_or(0, |&width| width as usize)
    }

    /// Returns true if products of the features that a model sees follow from products of the
    /// features of the columns, see [`KeptSums`](super::KeptSums).
    pub fn follows_column_sums(&self) -> bool {
        self.steps.expansion.is_linear()
    }

    /// Makes what the steps ask for, from the features of the columns as they are now.
    pub(super) fn prepare_expansion(&self) -> Result<PreparedExpansion, FeatureError> {
        let width = self.column_width();
        Ok(match self.steps.expansion {
            FeatureExpansion::None => PreparedExpansion::None,
            FeatureExpansion::Polynomial {
                degree,
                interactions,
            } => PreparedExpansion::Polynomial(Monomials::new(width, degree, interactions)?),
            FeatureExpansion::Fourier {
                features,
                scale,
                seed,
            } => {
                let names = (0..width as u32).map(|feature| self.column_feature_name(feature));
                PreparedExpansion::Fourier(RandomWaves::new(names, features, scale, seed)?)
            }
            FeatureExpansion::Components { .. } => match &self.map.components {
                Some(found) if found.fits(width) => PreparedExpansion::Components(found.clone()),
                Some(_) => {
                    return Err(FeatureError::Damaged(
                        "its components are not those of its columns".into(),
                    ));
                }
                // They are not known before the rows were seen as a whole.
                None => PreparedExpansion::None,
            },
        })
    }

    /// The number of features that a model sees, erased ones included.
    pub fn width(&self) -> usize {
        self.expansion.width(self.column_width())
    }

    /// The names of all features, from those of the features of the columns.
    pub(super) fn expanded_names(&self, columns: Vec<(u32, String)>) -> Vec<(u32, String)> {
        let is_centred = matches!(
            self.steps.expansion,
            FeatureExpansion::Components { centred: true, .. }
        );
        self.expansion
            .names(columns, if is_centred { "pca" } else { "svd" })
    }

    /// What is made of the features of all columns, in words, and how many features that gives;
    /// None where they stay as they are.
    pub fn describe_expansion(&self) -> Option<(String, usize)> {
        let words = match self.steps.expansion {
            FeatureExpansion::None => return None,
            FeatureExpansion::Polynomial {
                degree,
                interactions: false,
            } => {
                format!("polynomial of degree {degree}")
            }
            FeatureExpansion::Polynomial { degree, .. } => {
                format!("interactions of degree {degree}")
            }
            FeatureExpansion::Fourier { .. } => "random Fourier features".into(),
            FeatureExpansion::Components { centred: true, .. } => "principal components".into(),
            FeatureExpansion::Components { .. } => "singular vectors".into(),
        };
        Some((words, self.width()))
    }
}
