//! Python's words for the settings that hints of the libraries name: its arguments.

use efface::Setting;

/// The argument, and the value that it should have. What only the command can set is named as such.
pub(crate) fn argument(setting: Setting, value: Option<&str>) -> String {
    let name = match setting {
        Setting::Classify => return "model='ridge_classifier'".into(),
        Setting::Request => "request_id",
        Setting::AllowMissing
        | Setting::Id
        | Setting::Ignore
        | Setting::Method
        | Setting::Model
        | Setting::Subject
        | Setting::Target
        | Setting::Text
        | Setting::Tolerance => setting.name(),
        Setting::PolicyNoise | Setting::PolicySensitivity => {
            let words = [Some(setting.name()), value].map(Option::unwrap_or_default).join(" ");
            return format!("the command `efface policy` with {}", words.trim_end());
        }
        other => return format!("`{}` (a setting of the command `efface`)", other.name()),
    };
    match value {
        Some(value) => format!("{name}='{value}'"),
        None => format!("`{name}`"),
    }
}
