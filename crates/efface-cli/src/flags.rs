//! The command's words for the settings that hints of the libraries name: its flags.

use efface::Setting;

/// The flag, or the command with its flag, and the value that it should have.
pub(crate) fn flag(setting: Setting, value: Option<&str>) -> String {
    let name = match setting {
        Setting::Aggregate => "--aggregate",
        Setting::AllowMissing => "--allow-missing",
        Setting::AtMost => "--at-most",
        Setting::Categorical => "--categorical",
        Setting::Checkpoint => "--checkpoint",
        Setting::Classify => "--classify",
        Setting::ClearDeadColumns => "--clear-dead-columns",
        Setting::DecimalComma => "--decimal-comma",
        Setting::Encoder => "--encoder",
        Setting::ExposeForgotten => "--expose-forgotten",
        Setting::Forget => "--forget",
        Setting::Id => "--id",
        Setting::Ignore => "--ignore",
        Setting::Impute => "--impute",
        Setting::LearningRate => "--learning-rate",
        Setting::Measure => "--measure",
        Setting::Method => "--method",
        Setting::Missing => "--missing",
        Setting::Model => "--model",
        Setting::Numeric => "--numeric",
        Setting::PolicyNoise => "efface policy --noise",
        Setting::PolicySensitivity => "efface policy --sensitivity",
        Setting::Positive => "--positive",
        Setting::Request => "--request",
        Setting::Sample => "--sample",
        Setting::Shards => "--sisa",
        Setting::Steps => "--steps",
        Setting::Subject => "--subject",
        Setting::Target => "--target",
        Setting::Text => "--text",
        Setting::Tolerance => "--tolerance",
        // A setting of a newer library, under the name that the library has for it.
        other => other.name(),
    };
    let words = match value {
        Some(value) => format!("{name} {value}"),
        None => name.to_owned(),
    };
    // A flag speaks for itself; a whole command is set off from the sentence around it.
    if words.starts_with('-') {
        words
    } else {
        format!("`{words}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_flags() {
        assert_eq!(flag(Setting::Model, Some("softmax")), "--model softmax");
        assert_eq!(flag(Setting::Shards, None), "--sisa");
        assert_eq!(
            flag(Setting::PolicyNoise, Some("0.5")),
            "`efface policy --noise 0.5`"
        );
    }

    #[test]
    fn every_flag_exists() {
        use clap::CommandFactory;
        let command = crate::cli::Cli::command();
        let flags: Vec<String> = command
            .get_subcommands()
            .flat_map(clap::Command::get_arguments)
            .filter_map(|argument| argument.get_long().map(|long| format!("--{long}")))
            .collect();
        for setting in Setting::ALL {
            let words = flag(setting, None);
            let name = words.trim_matches('`').rsplit(' ').next().unwrap();
            assert!(flags.iter().any(|flag| flag == name), "there is no {name}");
        }
    }
}
