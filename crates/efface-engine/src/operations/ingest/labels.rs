//! From the cell of a target to the targets of a row, and from all target cells to classes.

use std::collections::HashMap;

use efface::features::Cell;
use efface::{Classes, Hint, Setting};

use crate::codec::blueprint::{TargetGoal, class_key, finite, text};
use crate::error::{Error, Result};

/// More classes than this are taken for numbers that someone forgot to call numbers.
const MAX_CLASSES: usize = 1_000;

/// The class of each target value.
pub(super) struct LabelReader<'a> {
    goal: &'a TargetGoal,
    classes: HashMap<String, usize>,
}

impl<'a> LabelReader<'a> {
    pub(super) fn new(goal: &'a TargetGoal) -> Self {
        let classes = match goal {
            TargetGoal::Nothing | TargetGoal::Numbers => HashMap::new(),
            TargetGoal::Classes {
                positive: Some(values),
                ..
            } => values.iter().map(|v| (class_key(v), 1)).collect(),
            TargetGoal::Classes { names, .. } => names
                .names()
                .iter()
                .enumerate()
                .map(|(class, name)| (class_key(name), class))
                .collect(),
        };
        Self { goal, classes }
    }

    /// Whether a cell names a class that the model does not know. An empty cell names none.
    pub(super) fn is_unknown(&self, cell: &Cell) -> bool {
        match self.goal {
            TargetGoal::Classes { positive: None, .. } => {
                text(cell).is_some_and(|label| !self.classes.contains_key(&class_key(&label)))
            }
            _ => false,
        }
    }

    /// Appends the targets that a cell stands for.
    pub(super) fn append(
        &self,
        cell: &Cell,
        line: u64,
        column: &str,
        out: &mut Vec<f64>,
    ) -> Result<()> {
        match self.goal {
            TargetGoal::Nothing => out.push(0.0),
            TargetGoal::Numbers => out.push(finite(cell, line, column, Some(classify))?),
            TargetGoal::Classes {
                names, positive, ..
            } => {
                let class = match self.classes.get(&class_key(&label(cell, line, column)?)) {
                    Some(class) => *class,
                    None if positive.is_some() => 0,
                    None => {
                        return Err(Error::Cell {
                            line,
                            column: column.into(),
                            problem: "no row had this class when the model was fitted",
                            hint: Some(
                                "correct the class, or fit again with rows of all classes".into(),
                            ),
                        });
                    }
                };
                names.encode(class, out);
            }
        }
        Ok(())
    }
}

fn classify() -> Hint {
    Hint::new("if the values are classes, say so with {}").name(Setting::Classify)
}

/// The text of a class.
fn label(cell: &Cell, line: u64, column: &str) -> Result<String> {
    let fault = |problem| Error::Cell {
        line,
        column: column.into(),
        problem,
        hint: None,
    };
    match cell {
        Cell::Number(value) if !value.is_finite() => Err(fault("this is not a finite number")),
        _ => text(cell).ok_or_else(|| fault("there is no class; every row needs one")),
    }
}

/// Watches the targets of a fit.
#[derive(Clone)]
pub(super) enum TargetObserver {
    Numbers,
    Classes {
        /// By what tells a class: its name as first written.
        seen: HashMap<String, String>,
    },
    Positive {
        values: Vec<String>,
        keys: Vec<String>,
        /// Rows of the other and of the positive class.
        rows: [u64; 2],
    },
}

impl TargetObserver {
    pub(super) fn new(classify: bool, positive: &[String]) -> Self {
        if !positive.is_empty() {
            let keys = positive.iter().map(|value| class_key(value)).collect();
            return Self::Positive {
                values: positive.to_vec(),
                keys,
                rows: [0; 2],
            };
        }
        if classify {
            Self::Classes {
                seen: HashMap::new(),
            }
        } else {
            Self::Numbers
        }
    }

    pub(super) fn observe(&mut self, cell: &Cell, line: u64, column: &str) -> Result<()> {
        match self {
            Self::Numbers => {
                finite(cell, line, column, Some(classify))?;
            }
            Self::Classes { seen } => {
                let label = label(cell, line, column)?;
                seen.entry(class_key(&label))
                    .or_insert_with(|| label.trim().to_owned());
                if seen.len() > MAX_CLASSES {
                    return Err(Error::Classes {
                        what: format!("column `{column}` has more than {MAX_CLASSES} classes"),
                        hint: Some(
                            Hint::new("leave out {} to predict numbers, or group rare classes")
                                .name(Setting::Classify),
                        ),
                    });
                }
            }
            Self::Positive { keys, rows, .. } => {
                let positive = keys.contains(&class_key(&label(cell, line, column)?));
                rows[usize::from(positive)] += 1;
            }
        }
        Ok(())
    }

    /// One that has seen no row, for later rows than this one sees.
    pub(super) fn fresh(&self) -> Self {
        match self {
            Self::Numbers => Self::Numbers,
            Self::Classes { .. } => Self::Classes {
                seen: HashMap::new(),
            },
            Self::Positive { values, keys, .. } => Self::Positive {
                values: values.clone(),
                keys: keys.clone(),
                rows: [0; 2],
            },
        }
    }

    /// Takes in what a fresh one saw of later rows. False where there are too many classes.
    pub(super) fn merge(&mut self, later: Self) -> bool {
        match (self, later) {
            (Self::Classes { seen }, Self::Classes { seen: more }) => {
                for (key, name) in more {
                    seen.entry(key).or_insert(name);
                }
                seen.len() <= MAX_CLASSES
            }
            (Self::Positive { rows, .. }, Self::Positive { rows: more, .. }) => {
                rows.iter_mut()
                    .zip(more)
                    .for_each(|(rows, more)| *rows += more);
                true
            }
            _ => true,
        }
    }

    pub(super) fn finish(self, column: &str) -> Result<TargetGoal> {
        let goal = |names: Vec<String>, positive| {
            let rows = vec![0; names.len()];
            Ok(TargetGoal::Classes {
                names: Classes::new(names)?,
                rows,
                positive,
            })
        };
        match self {
            Self::Numbers => Ok(TargetGoal::Numbers),
            Self::Classes { seen } => {
                let mut names: Vec<String> = seen.into_values().collect();
                names.sort_by(|a, b| order(a).0.total_cmp(&order(b).0).then_with(|| a.cmp(b)));
                if names.len() < 2 {
                    return Err(Error::Classes {
                        what: format!(
                            "column `{column}` has only one class; at least two are needed"
                        ),
                        hint: None,
                    });
                }
                goal(names, None)
            }
            Self::Positive { values, rows, .. } => {
                let list = values.join(",");
                for (rows, which) in rows.into_iter().zip(["anything but ", ""]) {
                    if rows == 0 {
                        return Err(Error::Classes {
                            what: format!(
                                "no row has {which}{list} in column `{column}`; both classes need rows"
                            ),
                            hint: Some("check the values given as positive".into()),
                        });
                    }
                }
                goal(vec![format!("not {list}"), list], Some(values))
            }
        }
    }
}

/// Numbers come first, in their order; then text, all of which compares as one here.
fn order(name: &str) -> (f64,) {
    (name
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .unwrap_or(f64::INFINITY),)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(values: &[&str], positive: &[&str]) -> Result<TargetGoal> {
        let positive: Vec<String> = positive.iter().map(|v| v.to_string()).collect();
        let mut watch = TargetObserver::new(true, &positive);
        for value in values {
            watch.observe(&Cell::Text(value.to_string()), 1, "y")?;
        }
        watch.finish("y")
    }

    #[test]
    fn classes_are_sorted_numbers_first() {
        let TargetGoal::Classes { names, .. } = goal(&["b", "10", "9", "a", "9.0"], &[]).unwrap()
        else {
            unreachable!()
        };
        assert_eq!(names.names(), ["9", "10", "a", "b"]);
    }

    #[test]
    fn positive_values_are_one_class_against_the_rest() {
        let goal = goal(&["1", "4.0", "5"], &["4", "5"]).unwrap();
        let labels = LabelReader::new(&goal);
        let mut targets = Vec::new();
        for value in ["4.0", "5", "2", "unheard of"] {
            labels
                .append(&Cell::Text(value.into()), 1, "y", &mut targets)
                .unwrap();
        }
        assert_eq!(targets, [1.0, 1.0, -1.0, -1.0]);
        assert_eq!(
            super::tests::goal(&["1", "2"], &["4", "5"])
                .unwrap_err()
                .to_string(),
            "no row has 4,5 in column `y`; both classes need rows"
        );
    }
}
