//! The classifier face of a regression model: labels become targets, scores become labels.
//!
//! Two classes are one output, −1 for the first and +1 for the second, decided at 0. More classes
//! are one output each, 1 for the row's own class and 0 for the others, decided by the largest
//! score; a tie goes to the earlier class.

use crate::error::{Error, Result};

/// The names of the classes, in the order of the outputs.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Classes {
    names: Vec<String>,
}

impl Classes {
    /// At least two names, each once.
    pub fn new(names: Vec<String>) -> Result<Self> {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        sorted.dedup();
        if names.len() < 2 || sorted.len() != names.len() {
            return Err(Error::Parameter {
                name: "classes",
                value: format!("{} ({} distinct)", names.len(), sorted.len()),
                range: "two or more, each once",
            });
        }
        Ok(Self { names })
    }

    /// The names, in the order of [`Classes::new`].
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many targets a row has: 1 for two classes, else one per class.
    pub fn outputs(&self) -> usize {
        if self.names.len() == 2 {
            1
        } else {
            self.names.len()
        }
    }

    /// Appends the targets of a row of the class numbered `class`.
    pub fn encode(&self, class: usize, targets: &mut Vec<f64>) {
        if self.names.len() == 2 {
            targets.push(if class == 1 { 1.0 } else { -1.0 });
        } else {
            targets.extend((0..self.names.len()).map(|c| (c == class) as u8 as f64));
        }
    }

    /// The class number that the scores of one row stand for.
    pub fn decide(&self, scores: &[f64]) -> usize {
        if let [score] = scores {
            return (*score > 0.0) as usize;
        }
        let mut best = 0;
        for (class, score) in scores.iter().enumerate() {
            if *score > scores[best] {
                best = class;
            }
        }
        best
    }
}

impl TryFrom<Vec<String>> for Classes {
    type Error = Error;
    fn try_from(names: Vec<String>) -> Result<Self> {
        Self::new(names)
    }
}

impl From<Classes> for Vec<String> {
    fn from(classes: Classes) -> Self {
        classes.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encode_then_decide_returns_the_class() {
        for names in [vec!["no", "yes"], vec!["a", "b", "c"]] {
            let classes = Classes::new(names.iter().map(|s| s.to_string()).collect()).unwrap();
            for class in 0..names.len() {
                let mut targets = Vec::new();
                classes.encode(class, &mut targets);
                assert_eq!(targets.len(), classes.outputs());
                assert_eq!(classes.decide(&targets), class);
            }
        }
        assert!(Classes::new(vec!["one".into()]).is_err());
        assert!(Classes::new(vec!["a".into(), "a".into()]).is_err());
    }
}
