//! Python's words for the settings that hints of the libraries name: its arguments.

use efface::Setting;

/// The argument, and the value that it should have. What only the command can set is named as such.
pub(crate) fn argument(setting: Setting, value: Option<&str>) -> String {
    let name = match setting {
        Setting::Classify => return "model='ridge_classifier'".into(),
        Setting::Request => "request_id",
        Setting::DecimalComma => return "decimal_comma=True".into(),
        Setting::Shards => "n_shards",
        Setting::Aggregate
        | Setting::AllowMissing
        | Setting::Categorical
        | Setting::Checkpoint
        | Setting::Encoder
        | Setting::Id
        | Setting::Ignore
        | Setting::Impute
        | Setting::LearningRate
        | Setting::Method
        | Setting::Missing
        | Setting::Model
        | Setting::Numeric
        | Setting::Positive
        | Setting::Subject
        | Setting::Target
        | Setting::Text
        | Setting::Tolerance => setting.name(),
        Setting::PolicyNoise | Setting::PolicySensitivity => {
            let words = [Some(setting.name()), value]
                .map(Option::unwrap_or_default)
                .join(" ");
            return format!("the command `efface policy` with {}", words.trim_end());
        }
        other => return format!("`{}` (a setting of the command `efface`)", other.name()),
    };
    match value {
        Some(value) => format!("{name}='{value}'"),
        None => format!("`{name}`"),
    }
}
