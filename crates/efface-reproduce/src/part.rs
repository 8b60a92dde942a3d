//! The tables and figures by name, and the study behind each.

use crate::error::{Error, Result};

/// A table or figure that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Deletion time against retraining time.
    Table1,
    /// Times of a network.
    Table2,
    /// Feature injection in a network's head.
    Table3,
    /// Feature injection on sparse rows: what is left.
    Table4,
    /// Feature injection on sparse rows: the weight before.
    Table5,
    /// Table 3 against the number of deletions.
    Figure1,
    /// Table 3 against the width.
    Figure2,
    /// The distance to retraining on outliers, of Izzo et al.
    L2,
    /// Sums on an adaptive learner, of which the paper speaks without a table.
    Adaptive,
    /// Membership inference, which the paper does not have.
    Membership,
}

/// What has to be measured. Several parts may show the same study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Study {
    Times,
    ReviewInjection,
    NetworkTimes,
    HeadInjection,
    Injection,
    Distance,
    Adaptive,
    Membership,
}

impl Part {
    /// All of them, in the order of the report.
    pub const ALL: [Part; 10] = [
        Part::Table1,
        Part::Table2,
        Part::Table3,
        Part::Table4,
        Part::Table5,
        Part::L2,
        Part::Figure1,
        Part::Figure2,
        Part::Adaptive,
        Part::Membership,
    ];

    /// Its name in the command.
    pub fn name(self) -> &'static str {
        match self {
            Part::Table1 => "table1",
            Part::Table2 => "table2",
            Part::Table3 => "table3",
            Part::Table4 => "table4",
            Part::Table5 => "table5",
            Part::Figure1 => "figure1",
            Part::Figure2 => "figure2",
            Part::L2 => "l2",
            Part::Adaptive => "adaptive",
            Part::Membership => "membership",
        }
    }

    /// All names.
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|part| part.name()).collect()
    }

    /// The parts of some names; `all` is every part, and so is no name at all.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for name in names {
            match name.as_ref() {
                "all" => parts.extend(Self::ALL),
                name => {
                    let known = Self::ALL.into_iter().find(|part| part.name() == name);
                    parts.push(known.ok_or_else(|| Error::UnknownPart(name.into()))?);
                }
            }
        }
        if parts.is_empty() {
            parts.extend(Self::ALL);
        }
        parts.sort();
        parts.dedup();
        Ok(parts)
    }

    pub(crate) fn studies(self) -> &'static [Study] {
        match self {
            Part::Table1 => &[Study::Times, Study::ReviewInjection],
            Part::Table2 => &[Study::NetworkTimes],
            Part::Table3 | Part::Figure1 | Part::Figure2 => &[Study::HeadInjection],
            Part::Table4 | Part::Table5 => &[Study::Injection],
            Part::L2 => &[Study::Distance],
            Part::Adaptive => &[Study::Adaptive],
            Part::Membership => &[Study::Membership],
        }
    }
}

impl Study {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Study::Times => "times",
            Study::ReviewInjection => "review-injection",
            Study::NetworkTimes => "network-times",
            Study::HeadInjection => "head-injection",
            Study::Injection => "injection",
            Study::Distance => "distance",
            Study::Adaptive => "adaptive",
            Study::Membership => "membership",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        assert_eq!(Part::parse(&Part::names()).unwrap(), Part::parse(&["all"]).unwrap());
        assert_eq!(Part::parse(&["figure2", "table1", "table1"]).unwrap(), [Part::Table1, Part::Figure2]);
        let error = Part::parse(&["table6"]).unwrap_err();
        assert!(error.to_string().contains("table6") && error.hint().unwrap().contains("table5"), "{error}");
    }
}
