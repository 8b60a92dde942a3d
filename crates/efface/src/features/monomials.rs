//! Products of features. Their order is that of scikit-learn's `PolynomialFeatures`: by degree, and
//! within a degree by the first factor, then the second, and so on.

use std::collections::HashMap;

use super::FeatureError;

/// The products of up to `degree` of `width` features.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Monomials {
    width: usize,
    degree: u32,
    interactions: bool,
    /// The place of the first product of each degree from 1 on, and at the end the number of all
    /// products.
    starts: Vec<u32>,
}

impl Monomials {
    pub(super) fn new(width: usize, degree: u32, interactions: bool) -> Result<Self, FeatureError> {
        let mut monomials = Self {
            width,
            degree,
            interactions,
            starts: vec![0],
        };
        let mut all = 0u64;
        for power in 1..=degree {
            all = all.saturating_add(monomials.count(0, power));
            match u32::try_from(all) {
                Ok(next) if next < u32::MAX => monomials.starts.push(next),
                _ => return Err(FeatureError::TooWide { width: all }),
            }
        }
        Ok(monomials)
    }

    /// The number of products.
    pub(super) fn len(&self) -> usize {
        self.starts.last().map_or(0, |all| *all as usize)
    }

    /// The products of `power` factors that begin with the feature `first` or a later one.
    fn count(&self, first: usize, power: u32) -> u64 {
        let features = (self.width - first) as u64;
        let power = u64::from(power);
        // So many choices of `power` out of n, with n raised where a feature may be chosen again.
        let from = if self.interactions {
            features
        } else {
            features + power.saturating_sub(1)
        };
        if from < power {
            return 0;
        }
        // Every partial product is itself a binomial coefficient, so that the division leaves no
        // rest.
        let steps = (1..=power).try_fold(1u64, |chosen, step| {
            Some(chosen.checked_mul(from - power + step)? / step)
        });
        steps.unwrap_or(u64::MAX)
    }

    /// Replaces the features of a row, which are sorted and without zeros, by their products.
    pub(super) fn expand(&self, row: &mut Vec<(u32, f64)>) {
        let factors = std::mem::take(row);
        for power in 1..=self.degree {
            let start = u64::from(self.starts[power as usize - 1]);
            self.products(&factors, power, start, 0, 1.0, row);
        }
        row.sort_unstable_by_key(|(place, _)| *place);
    }

    /// Appends the products of `power` more factors. Features before `least` are no factors any
    /// more; `place` is that of the first product which is left, and `product` that of the factors
    /// which are chosen.
    fn products(
        &self,
        factors: &[(u32, f64)],
        power: u32,
        place: u64,
        least: usize,
        product: f64,
        out: &mut Vec<(u32, f64)>,
    ) {
        if power == 0 {
            // A product of small numbers may be 0 although no factor is.
            if product != 0.0 {
                out.push((place as u32, product));
            }
            return;
        }
        let before = self.count(least, power);
        for (at, &(feature, value)) in factors.iter().enumerate() {
            let feature = feature as usize;
            // Products whose next factor is an earlier feature come first.
            let place = place + before - self.count(feature, power);
            let next = usize::from(self.interactions);
            self.products(
                &factors[at + next..],
                power - 1,
                place,
                feature + next,
                product * value,
                out,
            );
        }
    }

    /// The names of the products of features with these names. Factors stand in the order of the
    /// list, which is that of the table and of the alphabet, whatever places their names were
    /// given.
    pub(super) fn names(&self, features: &[(u32, String)]) -> Vec<(u32, String)> {
        let mut named = Vec::new();
        let mut chosen = Vec::new();
        for power in 1..=self.degree {
            self.names_of(features, power, &mut chosen, &mut named);
        }
        named
    }

    fn names_of<'a>(
        &self,
        features: &'a [(u32, String)],
        power: u32,
        chosen: &mut Vec<&'a (u32, String)>,
        named: &mut Vec<(u32, String)>,
    ) {
        if power == 0 {
            named.push((self.place(chosen), written(chosen)));
            return;
        }
        for (at, feature) in features.iter().enumerate() {
            chosen.push(feature);
            self.names_of(
                &features[at + usize::from(self.interactions)..],
                power - 1,
                chosen,
                named,
            );
            chosen.pop();
        }
    }

    /// The place of the product of these features.
    fn place(&self, chosen: &[&(u32, String)]) -> u32 {
        let mut features: Vec<usize> = chosen
            .iter()
            .map(|(feature, _)| *feature as usize)
            .collect();
        features.sort_unstable();
        let mut place = u64::from(self.starts[features.len() - 1]);
        let mut least = 0;
        for (power, feature) in (1..=features.len() as u32).rev().zip(features) {
            place += self.count(least, power) - self.count(feature, power);
            least = feature + usize::from(self.interactions);
        }
        place as u32
    }
}

/// `size age` for a product, `size^2` for a square.
fn written(chosen: &[&(u32, String)]) -> String {
    let mut powers: HashMap<u32, usize> = HashMap::new();
    chosen
        .iter()
        .for_each(|(feature, _)| *powers.entry(*feature).or_default() += 1);
    let mut words = Vec::new();
    for (feature, name) in chosen {
        match powers.remove(feature) {
            Some(1) => words.push(name.clone()),
            Some(power) => words.push(format!("{name}^{power}")),
            None => {}
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(width: usize, degree: u32, interactions: bool) -> Vec<String> {
        let features: Vec<(u32, String)> = (0..width as u32)
            .zip("abcd".chars().map(String::from))
            .collect();
        let mut names = Monomials::new(width, degree, interactions)
            .unwrap()
            .names(&features);
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// Oracle: scikit-learn 1.9.1, `PolynomialFeatures(degree,
    /// include_bias=False).get_feature_names_out`.
    #[test]
    fn products_stand_in_the_order_of_scikit_learn() {
        assert_eq!(
            names(3, 2, false),
            ["a", "b", "c", "a^2", "a b", "a c", "b^2", "b c", "c^2"]
        );
        assert_eq!(
            names(4, 3, true).join(","),
            "a,b,c,d,a b,a c,a d,b c,b d,c d,a b c,a b d,a c d,b c d"
        );
        assert_eq!(
            names(2, 3, false),
            [
                "a", "b", "a^2", "a b", "b^2", "a^3", "a^2 b", "a b^2", "b^3"
            ]
        );
    }

    #[test]
    fn values_are_at_the_places_of_their_names() {
        for interactions in [false, true] {
            let values = [("a", 2.0), ("b", 3.0), ("c", 0.0), ("d", 7.0)];
            let mut row = vec![(0, 2.0), (1, 3.0), (3, 7.0)];
            let monomials = Monomials::new(4, 3, interactions).unwrap();
            monomials.expand(&mut row);
            let features: Vec<(u32, String)> = (0..)
                .zip(values.iter().map(|(name, _)| (*name).into()))
                .collect();
            let mut expected = Vec::new();
            for (place, name) in monomials.names(&features) {
                let mut product = 1.0;
                for word in name.split(' ') {
                    let (factor, power) = word.split_once('^').unwrap_or((word, "1"));
                    let value = values.iter().find(|(name, _)| *name == factor).unwrap().1;
                    product *= f64::powi(value, power.parse().unwrap());
                }
                if product != 0.0 {
                    expected.push((place, product));
                }
            }
            expected.sort_unstable_by_key(|(place, _)| *place);
            assert_eq!(row, expected);
        }
    }

    #[test]
    fn too_many_products_are_refused() {
        assert!(matches!(
            Monomials::new(100_000, 2, false),
            Err(FeatureError::TooWide { .. })
        ));
        assert!(matches!(
            Monomials::new(usize::MAX >> 20, 4, false),
            Err(FeatureError::TooWide { .. })
        ));
        assert_eq!(Monomials::new(2, 4, true).unwrap().len(), 3);
    }
}
