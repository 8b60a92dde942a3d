//! The tables and figures by name, and the study behind each.

use crate::error::{Error, Result};

/// A table or figure that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PaperPart {
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
pub(crate) enum PaperStudy {
    Times,
    ReviewInjection,
    NetworkTimes,
    HeadInjection,
    Injection,
    Distance,
    Adaptive,
    Membership,
}

impl PaperPart {
    /// All of them, in the order of the report.
    pub const ALL: [PaperPart; 10] = [
        PaperPart::Table1,
        PaperPart::Table2,
        PaperPart::Table3,
        PaperPart::Table4,
        PaperPart::Table5,
        PaperPart::L2,
        PaperPart::Figure1,
        PaperPart::Figure2,
        PaperPart::Adaptive,
        PaperPart::Membership,
    ];

    /// Its name in the command.
    pub fn name(self) -> &'static str {
        match self {
            PaperPart::Table1 => "table1",
            PaperPart::Table2 => "table2",
            PaperPart::Table3 => "table3",
            PaperPart::Table4 => "table4",
            PaperPart::Table5 => "table5",
            PaperPart::Figure1 => "figure1",
            PaperPart::Figure2 => "figure2",
            PaperPart::L2 => "l2",
            PaperPart::Adaptive => "adaptive",
            PaperPart::Membership => "membership",
        }
    }

    /// All names.
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|part| part.name()).collect()
    }

    /// The parts of some names; `all` is every part, and so is no name at all.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Vec<PaperPart>> {
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

    pub(crate) fn studies(self) -> &'static [PaperStudy] {
        match self {
            PaperPart::Table1 => &[PaperStudy::Times, PaperStudy::ReviewInjection],
            PaperPart::Table2 => &[PaperStudy::NetworkTimes],
            PaperPart::Table3 | PaperPart::Figure1 | PaperPart::Figure2 => {
                &[PaperStudy::HeadInjection]
            }
            PaperPart::Table4 | PaperPart::Table5 => &[PaperStudy::Injection],
            PaperPart::L2 => &[PaperStudy::Distance],
            PaperPart::Adaptive => &[PaperStudy::Adaptive],
            PaperPart::Membership => &[PaperStudy::Membership],
        }
    }
}

impl PaperStudy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            PaperStudy::Times => "times",
            PaperStudy::ReviewInjection => "review-injection",
            PaperStudy::NetworkTimes => "network-times",
            PaperStudy::HeadInjection => "head-injection",
            PaperStudy::Injection => "injection",
            PaperStudy::Distance => "distance",
            PaperStudy::Adaptive => "adaptive",
            PaperStudy::Membership => "membership",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        assert_eq!(
            PaperPart::parse(&PaperPart::names()).unwrap(),
            PaperPart::parse(&["all"]).unwrap()
        );
        assert_eq!(
            PaperPart::parse(&["figure2", "table1", "table1"]).unwrap(),
            [PaperPart::Table1, PaperPart::Figure2]
        );
        let error = PaperPart::parse(&["table6"]).unwrap_err();
        assert!(
            error.to_string().contains("table6") && error.hint().unwrap().contains("table5"),
            "{error}"
        );
    }
}
