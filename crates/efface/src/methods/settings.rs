//! The settings of methods by name, as a line of text gives them: `newton:steps=3,measure=true`.

use super::{Auto, DeltaGrad, FineTune, NegGradPlus, Newton, ProjectionResidual, Scrub};
use crate::error::{Error, Result};

/// A value that a setting can have.
trait SettingValue: Sized {
    /// What a text must be to be read.
    const KIND: &'static str;

    fn read(text: &str) -> Option<Self>;

    /// None where the setting is left to the method.
    fn write(&self) -> Option<String>;
}

impl SettingValue for usize {
    const KIND: &'static str = "a whole number";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl SettingValue for f64 {
    const KIND: &'static str = "a number";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> Option<String> {
        // The shortest text that reads back as the same number.
        Some(format!("{self:?}"))
    }
}

impl SettingValue for bool {
    const KIND: &'static str = "true or false";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl SettingValue for Option<f64> {
    const KIND: &'static str = f64::KIND;

    fn read(text: &str) -> Option<Self> {
        f64::read(text).map(Some)
    }

    fn write(&self) -> Option<String> {
        self.as_ref().and_then(f64::write)
    }
}

/// Settings that can be read and written one by one.
pub(super) trait NamedSettings {
    /// Sets one of them; false where there is none of this name.
    fn set(&mut self, name: &str, value: &str) -> Result<bool>;

    /// Every one that is not at its default, with its value.
    fn changed(&self) -> Vec<(&'static str, String)>;
}

macro_rules! named_settings {
    ($settings:ty { $($field:ident),+ }) => {
        impl NamedSettings for $settings {
            fn set(&mut self, name: &str, value: &str) -> Result<bool> {
                $(if name == stringify!($field) {
                    self.$field = read(stringify!($field), value)?;
                    return Ok(true);
                })+
                Ok(false)
            }

            fn changed(&self) -> Vec<(&'static str, String)> {
                let usual = Self::default();
                let mut list = Vec::new();
                $(if self.$field.write() != usual.$field.write() {
                    list.extend(self.$field.write().map(|value| (stringify!($field), value)));
                })+
                list
            }
        }
    };
}

named_settings!(Newton { steps, measure });
named_settings!(ProjectionResidual {
    rounds,
    step,
    tolerance
});
named_settings!(DeltaGrad {
    burn_in,
    period,
    memory,
    iterations
});
named_settings!(FineTune {
    epochs,
    learning_rate
});
named_settings!(NegGradPlus {
    alpha,
    epochs,
    learning_rate,
    loss_cap
});
named_settings!(Scrub {
    epochs,
    max_epochs,
    alpha,
    gamma,
    learning_rate,
    loss_cap
});
named_settings!(Auto { tolerance });

fn read<T: SettingValue>(name: &'static str, value: &str) -> Result<T> {
    T::read(value).ok_or_else(|| Error::Parameter {
        name,
        value: value.to_owned(),
        range: T::KIND,
    })
}
