//! What to do about an error. A hint often names settings, and every door to efface has names of
//! its own for them: the command has flags, Python has arguments, Rust has fields. A hint therefore
//! holds the settings as values, and the door puts its own words in their places
//! ([`Hint::worded`]).

use std::borrow::Cow;
use std::fmt;

/// A setting that a hint can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// How the shards' answers become one.
    Aggregate,
    /// Pass over rows that the model does not hold.
    AllowMissing,
    /// The time that training a network anew may take.
    AtMost,
    /// Columns with one feature per value.
    Categorical,
    /// The file that keeps the state of a training.
    Checkpoint,
    /// Take the target's values for classes.
    Classify,
    /// Set the weights of columns that no retained row has to 0.
    ClearDeadColumns,
    /// Numbers of a file are written with a comma.
    DecimalComma,
    /// The folder of a pretrained encoder.
    Encoder,
    /// Publish parameters from which forgotten rows can be computed.
    ExposeForgotten,
    /// The rows that an audit forgets, by id.
    Forget,
    /// The column that names a row.
    Id,
    /// Columns to leave out.
    Ignore,
    /// What gaps in numeric columns are filled with.
    Impute,
    /// The rate of a training.
    LearningRate,
    /// Measure the bound with a pass over the rows.
    Measure,
    /// How rows are forgotten.
    Method,
    /// Words of a file that stand for nothing.
    Missing,
    /// The family of models.
    Model,
    /// Columns of numbers.
    Numeric,
    /// The noise on exports, a part of the release policy.
    PolicyNoise,
    /// The distance that the noise on exports hides, a part of the release policy.
    PolicySensitivity,
    /// The values that make one of two classes.
    Positive,
    /// The caller's name for a request.
    Request,
    /// How many rows an audit draws.
    Sample,
    /// Shards and slices.
    Shards,
    /// Steps of an approximate method.
    Steps,
    /// The column that names the person behind a row, or one of its values.
    Subject,
    /// The column to predict.
    Target,
    /// Columns of text.
    Text,
    /// The distance to retraining that counts as equal.
    Tolerance,
}

impl Setting {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 31] = [
        Self::Aggregate,
        Self::AllowMissing,
        Self::AtMost,
        Self::Categorical,
        Self::Checkpoint,
        Self::Classify,
        Self::ClearDeadColumns,
        Self::DecimalComma,
        Self::Encoder,
        Self::ExposeForgotten,
        Self::Forget,
        Self::Id,
        Self::Ignore,
        Self::Impute,
        Self::LearningRate,
        Self::Measure,
        Self::Method,
        Self::Missing,
        Self::Model,
        Self::Numeric,
        Self::PolicyNoise,
        Self::PolicySensitivity,
        Self::Positive,
        Self::Request,
        Self::Sample,
        Self::Shards,
        Self::Steps,
        Self::Subject,
        Self::Target,
        Self::Text,
        Self::Tolerance,
    ];

    /// Its name in the libraries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aggregate => "aggregate",
            Self::AllowMissing => "allow_missing",
            Self::AtMost => "at_most",
            Self::Categorical => "categorical",
            Self::Checkpoint => "checkpoint",
            Self::Classify => "classify",
            Self::ClearDeadColumns => "clear_dead_columns",
            Self::DecimalComma => "decimal_comma",
            Self::Encoder => "encoder",
            Self::ExposeForgotten => "expose_forgotten",
            Self::Forget => "forget",
            Self::Id => "id",
            Self::Ignore => "ignore",
            Self::Impute => "impute",
            Self::LearningRate => "learning_rate",
            Self::Measure => "measure",
            Self::Method => "method",
            Self::Missing => "missing",
            Self::Model => "model",
            Self::Numeric => "numeric",
            Self::PolicyNoise => "noise",
            Self::PolicySensitivity => "sensitivity",
            Self::Positive => "positive",
            Self::Request => "request",
            Self::Sample => "sample",
            Self::Shards => "shards",
            Self::Steps => "steps",
            Self::Subject => "subject",
            Self::Target => "target",
            Self::Text => "text",
            Self::Tolerance => "tolerance",
        }
    }
}

/// What to do next: a sentence, with places for the settings that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// `{}` stands where a setting is named.
    text: Cow<'static, str>,
    settings: Vec<(Setting, Option<Cow<'static, str>>)>,
}

impl Hint {
    /// A sentence in which `{}` stands for every setting that is then named with
    /// [`name`](Self::name) or [`set`](Self::set), in this order.
    pub fn new(text: &'static str) -> Self {
        Self {
            text: text.into(),
            settings: Vec::new(),
        }
    }

    /// Names a setting.
    #[must_use]
    pub fn name(mut self, setting: Setting) -> Self {
        self.settings.push((setting, None));
        self
    }

    /// Names a setting with a value that it should have.
    #[must_use]
    pub fn set(mut self, setting: Setting, value: impl Into<Cow<'static, str>>) -> Self {
        self.settings.push((setting, Some(value.into())));
        self
    }

    /// The sentence in the words of the caller, who turns a setting and the value that it should
    /// have into a text.
    pub fn worded(&self, word: impl Fn(Setting, Option<&str>) -> String) -> String {
        if self.settings.is_empty() {
            // Nothing is looked for in a sentence without settings: it may hold braces of its own.
            return self.text.clone().into_owned();
        }
        let mut settings = self.settings.iter();
        let mut out = String::new();
        let mut rest: &str = &self.text;
        while let Some((before, after)) = rest.split_once("{}") {
            out.push_str(before);
            if let Some((setting, value)) = settings.next() {
                out.push_str(&word(*setting, value.as_deref()));
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// A sentence that names no setting.
impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self {
            text: text.into(),
            settings: Vec::new(),
        }
    }
}

/// The sentence with the libraries' own names.
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(|setting, value| match value {
            Some(value) => format!("`{} = {value}`", setting.name()),
            None => format!("`{}`", setting.name()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caller_has_words_of_its_own() {
        let hint = Hint::new("use {}, or make two of them with {}")
            .set(Setting::Model, "softmax")
            .name(Setting::Positive);
        assert_eq!(
            hint.to_string(),
            "use `model = softmax`, or make two of them with `positive`"
        );
        let flags =
            hint.worded(|setting, value| format!("-{} {}", setting.name(), value.unwrap_or("…")));
        assert_eq!(
            flags,
            "use -model softmax, or make two of them with -positive …"
        );
    }

    #[test]
    fn a_plain_sentence_stays_as_it_is() {
        assert_eq!(
            Hint::from("write {} by hand".to_owned()).to_string(),
            "write {} by hand"
        );
    }
}
