//! How rows of a file become rows of the model: which column is what, and what the target means.
//! The encoder, which holds words, is kept beside it.

use efface::features::{Cell, Encoder};
use efface::{Classes, Hint, Setting};
use serde::{Deserialize, Serialize};

use super::class_weights::{AppliedClassWeights, ClassWeight, RowWeights, balanced};
use crate::error::{Error, Result};
use crate::file::{RowLayout, RowShape};

/// The target column of a file that has no columns.
pub(crate) const LABEL: &str = "label";

/// The longest text that an encoder may read.
pub(crate) const MOST_TOKENS: usize = 1 << 20;

/// Everything but the encoder that must be known to read another file for the same model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Blueprint {
    pub(crate) targets: Vec<String>,
    pub(crate) id: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) weight: Option<String>,
    /// Columns whose dates are read as days since 1970.
    pub(crate) dates: Vec<String>,
    pub(crate) goal: TargetGoal,
    /// What rows count for by their class; None where all count alike.
    pub(crate) class_weights: Option<AppliedClassWeights>,
    /// How rows are kept.
    pub(crate) layout: RowLayout,
    /// Places that a row has as it is kept. What the model sees of it may be less, or more.
    pub(crate) stored_width: usize,
    /// Features that the model has, erased ones included.
    pub(crate) width: usize,
    /// For svmlight, the index of the first feature: 0 or 1.
    pub(crate) first_index: Option<u32>,
    /// For a network, the texts that its encoder reads.
    pub(crate) texts: Option<TextColumns>,
}

/// What an encoder reads of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextColumns {
    /// The columns, read one after the other.
    pub(crate) columns: Vec<String>,
    /// Words or tokens of a text; what follows is not read.
    pub(crate) max_tokens: usize,
}

/// What the target values mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TargetGoal {
    /// There is nothing to predict: every row has the target 0, which no model looks at.
    Nothing,
    Numbers,
    Classes {
        names: Classes,
        /// Rows of each class.
        rows: Vec<u64>,
        /// When these values are the second class and all others the first.
        positive: Option<Vec<String>>,
    },
}

/// How rows that this encoder makes are kept.
pub(crate) fn layout_of(encoder: &Encoder) -> RowLayout {
    if encoder.has_dense_raw_rows() {
        RowLayout::Dense64
    } else if encoder.has_counted_raw_rows() {
        RowLayout::Sparse32
    } else {
        RowLayout::Sparse64
    }
}

impl Blueprint {
    /// What a row of the file looks like.
    pub(crate) fn shape(&self) -> RowShape {
        let words = self.texts.as_ref().map_or(0, |texts| texts.max_tokens);
        RowShape {
            layout: self.layout,
            width: self.stored_width,
            outputs: self.outputs(),
            words,
        }
    }

    /// Takes over how wide raw rows and features are, once names have come or features were made
    /// anew.
    pub(crate) fn follow(&mut self, encoder: &Encoder) {
        self.stored_width = encoder.raw_width();
        self.width = encoder.width();
    }

    pub(crate) fn outputs(&self) -> usize {
        match &self.goal {
            TargetGoal::Nothing => 1,
            TargetGoal::Numbers => self.targets.len(),
            TargetGoal::Classes { names, .. } => names.outputs(),
        }
    }

    /// The targets of a regression; the second of two classes; every one of more.
    pub(crate) fn output_names(&self) -> Vec<String> {
        match &self.goal {
            TargetGoal::Nothing => Vec::new(),
            TargetGoal::Numbers => self.targets.clone(),
            TargetGoal::Classes { names, .. } if names.outputs() == 1 => {
                names.names()[1..].to_vec()
            }
            TargetGoal::Classes { names, .. } => names.names().to_vec(),
        }
    }

    pub(crate) fn classes(&self) -> Option<&Classes> {
        match &self.goal {
            TargetGoal::Nothing | TargetGoal::Numbers => None,
            TargetGoal::Classes { names, .. } => Some(names),
        }
    }

    pub(crate) fn class_count(&self) -> Option<usize> {
        self.classes().map(|classes| classes.names().len())
    }

    /// Notes that a row with these targets has come or gone.
    pub(crate) fn count(&mut self, targets: &[f64], come: bool) {
        if let TargetGoal::Classes { names, rows, .. } = &mut self.goal
            && let Some(rows) = rows.get_mut(names.decide(targets))
        {
            *rows = if come {
                *rows + 1
            } else {
                rows.saturating_sub(1)
            };
        }
    }

    /// Classes that no row has any more.
    pub(crate) fn empty_classes(&self) -> usize {
        match &self.goal {
            TargetGoal::Nothing | TargetGoal::Numbers => 0,
            TargetGoal::Classes { rows, .. } => rows.iter().filter(|rows| **rows == 0).count(),
        }
    }

    /// Whether a stored blueprint fits together; `None` when it does.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.targets.is_empty() != (self.goal == TargetGoal::Nothing) {
            return Some("its target columns and what they mean do not go together");
        }
        let is_from_texts = matches!(
            self.layout,
            RowLayout::Dense32 | RowLayout::Encoded | RowLayout::WordIds
        );
        match &self.texts {
            None if is_from_texts => {
                return Some("its rows were encoded, and nothing says from what");
            }
            Some(texts)
                if texts.columns.is_empty() || !(1..=MOST_TOKENS).contains(&texts.max_tokens) =>
            {
                return Some("what its encoder reads makes no sense");
            }
            Some(_) if self.classes().is_none() || self.first_index.is_some() => {
                return Some("a network has classes and columns");
            }
            _ => {}
        }
        let classes = self.class_count().unwrap_or(0);
        if let Some(applied) = &self.class_weights
            && (applied.weights.len() != classes
                || !applied.weights.iter().all(|weight| *weight > 0.0))
        {
            return Some("its classes and their weights do not go together");
        }
        match &self.goal {
            TargetGoal::Classes { names, rows, .. } if names.names().len() != rows.len() => {
                Some("classes and their counts differ in number")
            }
            TargetGoal::Classes {
                positive: Some(_),
                names,
                ..
            } if names.names().len() != 2 => Some("a positive class wants two classes"),
            _ => None,
        }
    }
}

impl Blueprint {
    /// Takes over the weights that a fit was asked for, once the rows are counted.
    pub(crate) fn weigh_classes(&mut self, asked: Option<&ClassWeight>) -> Result<()> {
        let Some(asked) = asked else { return Ok(()) };
        let TargetGoal::Classes { names, rows, .. } = &self.goal else {
            return Err(Error::request(
                "weights of classes are for a target that has classes, and this one has numbers",
                "leave them out, or read the target as classes",
            ));
        };
        let listed = match asked {
            ClassWeight::Balanced => {
                self.class_weights = Some(AppliedClassWeights {
                    balanced: true,
                    weights: balanced(rows),
                });
                return Ok(());
            }
            ClassWeight::Listed(listed) => listed,
        };
        let mut weights = vec![1.0; names.names().len()];
        for (class, weight) in listed {
            let key = class_key(class);
            let Some(at) = names.names().iter().position(|name| class_key(name) == key) else {
                let what = format!(
                    "there is no class `{class}` to weigh; there are {}",
                    names.names().join(", ")
                );
                return Err(Error::request(what, "name classes that the target has"));
            };
            if !(weight.is_finite() && *weight > 0.0) {
                let value = weight.to_string();
                let range = "above 0 and finite";
                return Err(efface::Error::Parameter {
                    name: "class weight",
                    value,
                    range,
                }
                .into());
            }
            weights[at] = *weight;
        }
        self.class_weights = Some(AppliedClassWeights {
            balanced: false,
            weights,
        });
        Ok(())
    }

    /// What rows count for by their classes; None where all count alike.
    pub(crate) fn row_weights(&self) -> Option<RowWeights> {
        let applied = self.class_weights.as_ref()?;
        Some(RowWeights::new(self.classes()?, &applied.weights))
    }

    /// Whether the weights of classes follow from the rows.
    pub(crate) fn is_balanced(&self) -> bool {
        self.class_weights
            .as_ref()
            .is_some_and(|applied| applied.balanced)
    }

    /// Works balanced weights out again for the rows that are counted now; whether they are others.
    pub(crate) fn balance(&mut self) -> bool {
        let TargetGoal::Classes { rows, .. } = &self.goal else {
            return false;
        };
        let Some(applied) = self
            .class_weights
            .as_mut()
            .filter(|applied| applied.balanced)
        else {
            return false;
        };
        let weights = balanced(rows);
        std::mem::replace(&mut applied.weights, weights) != applied.weights
    }
}

/// The number in a cell, if it is one.
pub(crate) fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Missing => None,
        Cell::Number(value) => Some(*value),
        Cell::Text(text) => text.trim().parse().ok(),
    }
}

/// The text of an id, a subject or a class; None when there is none.
pub(crate) fn text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Missing => None,
        Cell::Text(text) if text.trim().is_empty() => None,
        // Blanks around a name are an accident of the file, and nobody would find the row by them.
        Cell::Text(text) => Some(text.trim().to_owned()),
        // Whole numbers come out without a point, -0 without its sign.
        Cell::Number(value) => Some((value + 0.0).to_string()),
    }
}

/// What tells a class: equal numbers are one class however they are written, other text is itself.
pub(crate) fn class_key(text: &str) -> String {
    let text = text.trim();
    // Longer runs of digits are names that only look like numbers, and would be rounded onto each
    // other.
    if text.len() <= 15
        && let Ok(value) = text.parse::<f64>()
        && value.is_finite()
    {
        return (value + 0.0).to_string();
    }
    text.to_owned()
}

/// Whether a cell is a number but for a comma in the place of its point.
pub(crate) fn has_decimal_comma(cell: &Cell) -> bool {
    match cell {
        Cell::Text(text) => {
            text.contains(',') && text.trim().replacen(',', ".", 1).parse::<f64>().is_ok()
        }
        Cell::Missing | Cell::Number(_) => false,
    }
}

/// The finite number that a target or weight must be.
pub(crate) fn finite(
    cell: &Cell,
    line: u64,
    column: &str,
    hint: Option<fn() -> Hint>,
) -> Result<f64> {
    let fault = |problem, hint| Error::Cell {
        line,
        column: column.into(),
        problem,
        hint,
    };
    if matches!(cell, Cell::Missing) {
        return Err(fault("there is no value; every row needs one", None));
    }
    let value = number(cell).ok_or_else(|| {
        let comma =
            || Hint::new("add {} where 3,14 is meant as a number").name(Setting::DecimalComma);
        let hint = if has_decimal_comma(cell) {
            Some(comma())
        } else {
            hint.map(|hint| hint())
        };
        fault("this is not a number", hint)
    })?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(fault("this is not a finite number", None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_classes_read_the_same_from_every_format() {
        assert_eq!(text(&Cell::Number(17.0)).as_deref(), Some("17"));
        assert_eq!(text(&Cell::Number(-0.0)).as_deref(), Some("0"));
        assert_eq!(text(&Cell::Number(1.5)).as_deref(), Some("1.5"));
        assert_eq!(text(&Cell::Text("  ".into())), None);
        assert_eq!(class_key("4.0"), class_key(" 4"));
        assert_ne!(
            class_key("12345678901234567"),
            class_key("12345678901234568")
        );
        assert_eq!(class_key("nan"), "nan");
    }
}
