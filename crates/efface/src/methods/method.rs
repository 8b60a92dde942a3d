//! A way to forget as one value: which method, and its settings. Requests carry it, commands and
//! files name it, and its JSON is part of what a request is recognised by.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::settings::NamedSettings;
use super::table::{self, TableEntry};
use super::{Auto, DeltaGrad, FineTune, NegGradPlus, Newton, ProjectionResidual, Scrub};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::family::Family;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

/// A method with its settings. [`table`] says what each works on, promises and costs.
///
/// As text it is a name and what differs from the defaults: `newton`,
/// `newton:steps=3,measure=true`.
///
/// ```
/// use efface::Method;
///
/// let method: Method = "newton:steps=3".parse()?;
/// assert_eq!(method.to_string(), "newton:steps=3");
/// assert_eq!(method.name(), "newton");
/// # Ok::<(), efface::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Method {
    /// Fit again without the rows; of a network, train all of it again.
    Retrain,
    /// Fit the head of a network again, on the features of the retained rows.
    RetrainHead,
    /// Train a network further on the retained rows.
    FineTune(FineTune),
    /// Train a network further, down on the retained rows and up on those to forget.
    #[serde(rename = "neggrad_plus")]
    NegGradPlus(NegGradPlus),
    /// Train a network further, near its old answers on the retained rows and away from them on
    /// those to forget.
    Scrub(Scrub),
    /// The closed form of squared loss.
    Exact,
    /// Newton steps on the retained loss.
    Newton(Newton),
    /// One step with the Hessian of all rows.
    Influence,
    /// A step within the span of the removed rows.
    ProjectionResidual(ProjectionResidual),
    /// Subtract from the sums, solve again.
    Summation,
    /// Train from the old parameters.
    WarmStart,
    /// Replay gradient descent from memory.
    DeltaGrad(DeltaGrad),
    /// Newton steps under a budget of noise.
    Certified,
    /// Gradient descent behind published noise.
    DescentToDelete,
    /// Train the shards again that saw the rows.
    Sisa,
    /// Replay quantised k-means.
    #[serde(rename = "q_kmeans")]
    QKMeans,
    /// Replay a path of the tree of divided k-means.
    #[serde(rename = "dc_kmeans")]
    DcKMeans,
    /// What suits the model.
    Auto(Auto),
}

impl Default for Method {
    /// What suits the model, within its own tolerance.
    fn default() -> Self {
        Self::Auto(Auto::default())
    }
}

impl Method {
    /// The method of a name at its defaults.
    pub fn named(name: &str) -> Result<Self> {
        let known = Self::all().into_iter().find(|method| method.name() == name);
        known.ok_or_else(|| Error::Parameter {
            name: "method",
            value: name.to_owned(),
            range: "the name of a method in the table",
        })
    }

    /// Every method at its defaults, in the order of the table.
    pub fn all() -> Vec<Self> {
        vec![
            Self::Retrain,
            Self::RetrainHead,
            Self::FineTune(FineTune::default()),
            Self::NegGradPlus(NegGradPlus::default()),
            Self::Scrub(Scrub::default()),
            Self::Exact,
            Self::Newton(Newton::default()),
            Self::Influence,
            Self::ProjectionResidual(ProjectionResidual::default()),
            Self::Summation,
            Self::WarmStart,
            Self::DeltaGrad(DeltaGrad::default()),
            Self::Certified,
            Self::DescentToDelete,
            Self::Sisa,
            Self::QKMeans,
            Self::DcKMeans,
            Self::default(),
        ]
    }

    /// Every method that the table lists for a family, at its defaults.
    pub fn all_for(family: Family) -> Vec<Self> {
        Self::all()
            .into_iter()
            .filter(|method| method.is_for(family))
            .collect()
    }

    /// Whether the table lists it for a family.
    pub fn is_for(&self, family: Family) -> bool {
        table::lists(self.name(), family)
    }

    /// Its lines in the table: claim, cost and paper by family.
    pub fn entries(&self) -> impl Iterator<Item = &'static TableEntry> {
        let name = self.name();
        table::table()
            .iter()
            .filter(move |entry| entry.method == name)
    }

    /// A method by name, with the settings that are given. A setting that it does not have is
    /// refused.
    pub fn with_settings(name: &str, settings: &[(&str, String)]) -> Result<Self> {
        let mut method = Self::named(name)?;
        let is_given = |wanted: &str| settings.iter().any(|(name, _)| *name == wanted);
        for (setting, value) in settings {
            if !method.set(setting, value)? {
                return Err(foreign(method.name(), setting));
            }
        }
        match &mut method {
            // What ends rounds has no meaning where none were asked for.
            Self::ProjectionResidual(_)
                if is_given("tolerance") && !is_given("rounds") && !is_given("step") =>
            {
                return Err(foreign("projection_residual", "tolerance"));
            }
            // A short run keeps its passes over the forgotten rows to what it has.
            Self::Scrub(scrub) if !is_given("max_epochs") => {
                scrub.max_epochs = scrub.max_epochs.min(scrub.epochs.max(1));
            }
            _ => {}
        }
        Ok(method)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match self.settings_mut() {
            Some(settings) => settings.set(name, value),
            None => Ok(false),
        }
    }

    fn settings(&self) -> Option<&dyn NamedSettings> {
        Some(match self {
            Self::Newton(settings) => settings,
            Self::ProjectionResidual(settings) => settings,
            Self::DeltaGrad(settings) => settings,
            Self::FineTune(settings) => settings,
            Self::NegGradPlus(settings) => settings,
            Self::Scrub(settings) => settings,
            Self::Auto(settings) => settings,
            _ => return None,
        })
    }

    fn settings_mut(&mut self) -> Option<&mut dyn NamedSettings> {
        Some(match self {
            Self::Newton(settings) => settings,
            Self::ProjectionResidual(settings) => settings,
            Self::DeltaGrad(settings) => settings,
            Self::FineTune(settings) => settings,
            Self::NegGradPlus(settings) => settings,
            Self::Scrub(settings) => settings,
            Self::Auto(settings) => settings,
            _ => return None,
        })
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Newton(Newton { steps, .. }) if !(1..=100).contains(steps) => {
                Err(Error::Parameter {
                    name: "steps",
                    value: steps.to_string(),
                    range: "1 to 100",
                })
            }
            Self::Auto(Auto {
                tolerance: Some(tolerance),
            }) if !(*tolerance > 0.0 && *tolerance < 1.0) => {
                let value = tolerance.to_string();
                Err(Error::Parameter {
                    name: "tolerance",
                    value,
                    range: "above 0 and below 1",
                })
            }
            Self::ProjectionResidual(settings) => settings.check(),
            Self::DeltaGrad(settings) => settings.check(),
            Self::FineTune(settings) => settings.check(),
            Self::NegGradPlus(settings) => settings.check(),
            Self::Scrub(settings) => settings.check(),
            _ => Ok(()),
        }
    }

    /// Whether it trains a whole network further.
    pub fn trains_further(&self) -> bool {
        matches!(
            self,
            Self::FineTune(_) | Self::NegGradPlus(_) | Self::Scrub(_)
        )
    }

    /// The relative distance to retraining that the request names.
    pub fn tolerance(&self) -> Option<f64> {
        match self {
            Self::Auto(auto) => auto.tolerance,
            _ => None,
        }
    }

    /// Its name in commands, files and evidence.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Retrain => "retrain",
            Self::RetrainHead => "retrain_head",
            Self::FineTune(_) => "fine_tune",
            Self::NegGradPlus(_) => "neggrad_plus",
            Self::Scrub(_) => "scrub",
            Self::Exact => "exact",
            Self::Newton(_) => "newton",
            Self::Influence => "influence",
            Self::ProjectionResidual(_) => "projection_residual",
            Self::Summation => "summation",
            Self::WarmStart => "warm_start",
            Self::DeltaGrad(_) => "delta_grad",
            Self::Certified => "certified",
            Self::DescentToDelete => "descent_to_delete",
            Self::Sisa => "sisa",
            Self::QKMeans => "q_kmeans",
            Self::DcKMeans => "dc_kmeans",
            Self::Auto(_) => "auto",
        }
    }
}

/// A model that says what does the work of a method on it. Every [`Method`] is a [`Forget`] of such
/// a model.
pub trait TakesMethods: Sized + 'static {
    /// What does the work; None where the method makes no sense for models of this type.
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>>;

    /// Sets the weights of columns that no retained row has to 0, where the method left something
    /// there.
    fn clear_dead_columns(_outcome: &mut Outcome<Self>) -> Result<()> {
        Err(Error::Unsupported {
            method: "clear_dead_columns",
            reason: "only a ridge, logistic or softmax model has a weight per column; leave it out"
                .into(),
        })
    }
}

impl<M: TakesMethods> Forget<M> for Method {
    fn name(&self) -> &'static str {
        Method::name(self)
    }

    fn claim(&self) -> Claim {
        M::worker(self).map_or(Claim::Approximate, |worker| worker.claim())
    }

    fn forget(&self, model: &M, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<M>> {
        match M::worker(self) {
            Some(worker) => worker.forget(model, rows, gone),
            None => Err(Error::Unsupported {
                method: Method::name(self),
                reason: "it is not made for this model; use auto".into(),
            }),
        }
    }
}

/// Why a method does not take a setting, and what to do.
fn foreign(method: &'static str, setting: &str) -> Error {
    let reason = match setting {
        "tolerance" => {
            "a tolerance is what auto must reach, and any other method does what it does; use auto, or no tolerance"
                .into()
        }
        "steps" | "measure" => {
            "steps and measure are for newton on a logistic or softmax model; leave them out".into()
        }
        _ => format!("{setting} has no meaning for {method}: leave it out"),
    };
    Error::Unsupported { method, reason }
}

impl fmt::Display for Method {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut changed = self
            .settings()
            .map(NamedSettings::changed)
            .unwrap_or_default();
        // Settings that follow from another one where they are not given are written beside it.
        match self {
            Self::Scrub(scrub) if *scrub != Scrub::default() => {
                changed.retain(|(name, _)| *name != "max_epochs");
                changed.push(("max_epochs", scrub.max_epochs.to_string()));
            }
            Self::ProjectionResidual(rounds) if *rounds != ProjectionResidual::default() => {
                changed.retain(|(name, _)| *name != "rounds");
                changed.push(("rounds", rounds.rounds.to_string()));
            }
            _ => {}
        }
        out.write_str(self.name())?;
        for (at, (name, value)) in changed.iter().enumerate() {
            write!(out, "{}{name}={value}", if at == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, list) = match text.split_once(':') {
            Some((name, list)) => (name, list.split(',').collect()),
            None => (text, Vec::new()),
        };
        let mut settings = Vec::with_capacity(list.len());
        for setting in list {
            let Some((name, value)) = setting.split_once('=') else {
                return Err(Error::Parameter {
                    name: "method",
                    value: text.to_owned(),
                    range: "a name, or a name and settings such as newton:steps=3,measure=true",
                });
            };
            settings.push((name.trim(), value.trim().to_owned()));
        }
        Self::with_settings(name.trim(), &settings)
    }
}

macro_rules! from_settings {
    ($($settings:ident),+) => {
        $(impl From<$settings> for Method {
            fn from(settings: $settings) -> Self {
                Self::$settings(settings)
            }
        })+
    };
}

from_settings!(
    Newton,
    ProjectionResidual,
    DeltaGrad,
    FineTune,
    NegGradPlus,
    Scrub,
    Auto
);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Method> {
        text.parse()
    }

    #[test]
    fn text_and_json_give_the_same_method_back() {
        let mut methods = Method::all();
        let others: [Method; 7] = [
            Newton {
                steps: 3,
                measure: true,
            }
            .into(),
            ProjectionResidual {
                rounds: 4,
                step: 0.1,
                tolerance: 1e-300,
            }
            .into(),
            ProjectionResidual {
                tolerance: 0.5,
                ..ProjectionResidual::default()
            }
            .into(),
            DeltaGrad {
                period: 7,
                ..DeltaGrad::default()
            }
            .into(),
            Scrub {
                epochs: 9,
                ..Scrub::default()
            }
            .into(),
            Scrub {
                epochs: 1,
                max_epochs: 1,
                learning_rate: Some(1e-3),
                ..Scrub::default()
            }
            .into(),
            Auto {
                tolerance: Some(0.1 + 0.2),
            }
            .into(),
        ];
        methods.extend(others);
        for method in methods {
            assert_eq!(read(&method.to_string()), Ok(method), "{method}");
            let json = serde_json::to_string(&method).unwrap();
            assert_eq!(
                serde_json::from_str::<Method>(&json).unwrap(),
                method,
                "{json}"
            );
            assert!(
                json.starts_with(&format!(r#"{{"name":"{}""#, method.name())),
                "{json}"
            );
            assert!(method.entries().count() > 0, "{method}");
        }
        assert_eq!(
            read("newton:steps=3").unwrap().to_string(),
            "newton:steps=3"
        );
        assert_eq!(read("auto").unwrap(), Method::default());
    }

    #[test]
    fn the_table_and_the_methods_name_each_other() {
        let names: Vec<&str> = Method::all().iter().map(Method::name).collect();
        assert_eq!(names, table::method_names());
    }

    #[test]
    fn settings_of_others_and_nonsense_are_refused() {
        for (text, told) in [
            ("magic", "method = magic"),
            ("newton:steps", "a name and settings"),
            (
                "newton:steps=many",
                "steps = many is out of range; it must be a whole number",
            ),
            ("newton:measure=1", "it must be true or false"),
            ("exact:steps=2", "steps and measure are for newton"),
            (
                "newton:tolerance=0.1",
                "a tolerance is what auto must reach",
            ),
            (
                "projection_residual:tolerance=0.1",
                "a tolerance is what auto must reach",
            ),
            (
                "fine_tune:gamma=1",
                "gamma has no meaning for fine_tune: leave it out",
            ),
            ("influence:x=1", "x has no meaning for influence"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
        for (text, told) in [
            (
                "newton:steps=0",
                "steps = 0 is out of range; it must be 1 to 100",
            ),
            ("auto:tolerance=1", "above 0 and below 1"),
            ("scrub:epochs=0", "epochs = 0"),
            ("projection_residual:rounds=0", "rounds = 0"),
            ("delta_grad:period=0", "period = 0"),
        ] {
            let error = read(text).unwrap().check().unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_short_run_of_scrub_passes_over_the_forgotten_rows_no_more_often_than_over_the_others() {
        let short = read("scrub:epochs=1").unwrap();
        assert_eq!(
            short,
            Scrub {
                epochs: 1,
                max_epochs: 1,
                ..Scrub::default()
            }
            .into()
        );
        assert_eq!(
            read("scrub:epochs=9").unwrap(),
            Scrub {
                epochs: 9,
                ..Scrub::default()
            }
            .into()
        );
        assert!(
            read("scrub:epochs=1,max_epochs=2")
                .unwrap()
                .check()
                .is_err()
        );
    }
}
