//! Random tables for the generator of option combinations: rows that are numbers, levels, texts
//! and classes, with the shapes that forgetting finds hard (outliers, twins, rare levels, gaps).

use crate::Dice;

/// The kind of target that a model family predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A real number.
    Number,
    /// One of so many classes.
    Class(u64),
    /// A count: 0, 1, 2, …
    Count,
    /// No target at all, for clusters.
    None,
}

/// The columns of a table beside id, person, weight and target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Number of numeric columns.
    pub(crate) numbers: usize,
    /// The numeric columns hold counts, which multinomial naive Bayes needs.
    pub(crate) is_count: bool,
    /// Some numeric cells are empty.
    pub(crate) has_gaps: bool,
    /// A column of levels.
    pub(crate) has_level: bool,
    /// A column of texts.
    pub(crate) has_text: bool,
    /// The target column.
    pub(crate) target: Target,
}

/// One row. Every cell is text, as in the file.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) person: String,
    pub(crate) level: String,
    pub(crate) class: String,
    cells: Vec<String>,
}

/// Draws rows of one shape.
pub(crate) struct RowSource {
    shape: Shape,
    next_id: usize,
}

const WORDS: [&str; 12] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "juniper",
    "kelp", "larch",
];

impl RowSource {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, next_id: 0 }
    }

    /// The header of the file.
    pub(crate) fn header(&self) -> String {
        let mut names = vec!["id".to_owned(), "person".into(), "weight".into()];
        names.extend((0..self.shape.numbers).map(|column| format!("n{column}")));
        if self.shape.has_level {
            names.push("level".into());
        }
        if self.shape.has_text {
            names.push("text".into());
        }
        if self.shape.target != Target::None {
            names.push("y".into());
        }
        names.join(",")
    }

    /// Draws a row with an id that no other row has. One row in forty is an outlier, one in
    /// twelve has a level that few rows share.
    pub(crate) fn draw(&mut self, dice: &mut Dice) -> Row {
        let shape = self.shape;
        let id = format!("r{}", self.next_id);
        self.next_id += 1;
        let person = format!("p{}", dice.below(40));
        let size = if dice.below(40) == 0 { 50.0 } else { 1.0 };
        let common = dice.number();
        let numbers: Vec<f64> = (0..shape.numbers)
            .map(|column| match (shape.is_count, column % 3) {
                (true, _) => dice.below(6) as f64,
                // Correlated columns, a column far from zero, and a column of few values.
                (false, 0) => size * (common + 0.3 * dice.number()),
                (false, 1) => 100.0 + 20.0 * dice.number() - 5.0 * common,
                (false, _) => dice.below(4) as f64,
            })
            .collect();
        let level = match dice.below(12) {
            0 => format!("rare{}", dice.below(6)),
            other => ["red", "green", "blue"][(other % 3) as usize].to_owned(),
        };
        let words: Vec<&str> = (0..2 + dice.below(5))
            .map(|_| WORDS[(dice.below(12) * dice.below(12) / 12) as usize])
            .collect();
        let score = common + if level == "red" { 0.7 } else { -0.2 } + 0.4 * dice.number();
        let class = match shape.target {
            Target::Class(classes) => {
                let noise = dice.below(4) == 0;
                let by_score = ((score + 1.6) / 3.2 * classes as f64).max(0.0) as u64;
                let class = if noise { dice.below(classes) } else { by_score };
                ["alpha", "beta", "gamma", "delta"][class.min(classes - 1) as usize].to_owned()
            }
            Target::Number => format!("{:.4}", 3.0 * score + numbers.first().unwrap_or(&0.0)),
            Target::Count => format!("{}", ((1.2 * score).exp() as u64).min(30)),
            Target::None => String::new(),
        };
        let mut cells = vec![format!("{}", 1 + dice.below(3))];
        for value in numbers {
            let is_empty = shape.has_gaps && dice.below(9) == 0;
            cells.push(if is_empty {
                String::new()
            } else {
                format!("{value:.3}")
            });
        }
        if shape.has_level {
            cells.push(level.clone());
        }
        if shape.has_text {
            cells.push(words.join(" "));
        }
        if shape.target != Target::None {
            cells.push(class.clone());
        }
        Row {
            id,
            person,
            level,
            class,
            cells,
        }
    }

    /// The content of a row that is drawn anew, under the id and the person of the old one.
    pub(crate) fn amended(&mut self, row: &Row, dice: &mut Dice) -> Row {
        let next_id = self.next_id;
        let drawn = self.draw(dice);
        self.next_id = next_id;
        Row {
            id: row.id.clone(),
            person: row.person.clone(),
            ..drawn
        }
    }

    /// A row with a new id and the content of another.
    pub(crate) fn twin(&mut self, row: &Row) -> Row {
        let id = format!("r{}", self.next_id);
        self.next_id += 1;
        Row { id, ..row.clone() }
    }

    /// The file of such rows.
    pub(crate) fn csv<'r>(&self, rows: impl IntoIterator<Item = &'r Row>) -> String {
        let mut text = self.header() + "\n";
        for row in rows {
            text.push_str(&format!(
                "{},{},{}\n",
                row.id,
                row.person,
                row.cells.join(",")
            ));
        }
        text
    }
}
