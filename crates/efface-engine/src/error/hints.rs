//! What to do about an error.

use efface::{Hint, Setting};

use super::{Error, SuppressionKind};

impl Error {
    /// What to do next, where the message does not say it already.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Request { hint, .. }
            | Self::Cell { hint, .. }
            | Self::Line { hint, .. }
            | Self::Classes { hint, .. } => hint.clone(),
            Self::InFile { cause, .. } => cause.hint(),
            Self::NothingChosen { .. } => Some("check the names and values; text compares letter by letter".into()),
            Self::UnknownMethod { known, .. } => Some(format!("the methods are {}", known.join(", ")).into()),
            Self::EmptyRequest => Some("name at least one id, or a subject".into()),
            Self::StillThere { .. } => Some(
                Hint::new("rows of the file must have left the model, or never been in it; name rows that are in it with {}")
                    .name(Setting::Forget),
            ),
            Self::AlreadyThere { .. } => {
                Some("amend corrects rows that are there; learn only adds new ones".into())
            }
            Self::ComesBack { by: SuppressionKind::Subject | SuppressionKind::Content, .. } => {
                Some("where consent was given anew, the policy of the model can let it in".into())
            }
            Self::ComesBack { .. } => Some("if it is another row, give it another id".into()),
            Self::SubjectColumn { has: None, .. } => {
                Some(Hint::new("name the column with {} when fitting, or forget by id").name(Setting::Subject))
            }
            Self::SubjectColumn { has: Some(has), .. } => Some(format!("use `{has}`").into()),
            Self::NoIds => Some(
                Hint::new("fit with {} to amend rows; here, forget the rows by position and learn them as new ones")
                    .name(Setting::Id),
            ),
            Self::Exists { .. } => Some("choose another path, or ask for it to be overwritten".into()),
            Self::Protected { .. } => Some("choose another name, or move it away first".into()),
            Self::SameFile { .. } => Some("give every file a name of its own".into()),
            Self::NotOurs { .. } => Some("give the path of a file that `efface fit` wrote".into()),
            Self::Older { .. } => Some("fit the model again".into()),
            Self::Newer { .. } => Some("upgrade efface".into()),
            Self::Damaged { .. } => Some("restore a copy of the file, or fit the model again".into()),
            Self::Key { .. } => Some(
                "put back the key file that was made with the model, for its owner alone (chmod 600)".into(),
            ),
            Self::Signing { .. } => {
                Some("run the signing command, or ask the agent, by hand to see what it says".into())
            }
            Self::RowsChanged => Some("preview the request again".into()),
            Self::RequestReused { .. } => Some("give the new request an id of its own".into()),
            Self::Held { .. } => Some(
                Hint::new(
                    "whoever holds the last export and this one could compute the rows that left in between; {} publishes it \
                     all the same, and `efface policy` with an ε adds noise that hides them",
                )
                .name(Setting::ExposeForgotten),
            ),
            Self::Unwitnessed { .. } => Some(Hint::new(
                "`efface log` writes what they sign and takes what they answer; its help has an example",
            )),
            Self::Exposes { .. } => Some(
                Hint::new("say {} if that is meant; noise that is calibrated by an ε needs no company")
                    .name(Setting::ExposeForgotten),
            ),
            Self::Moved { .. } => Some(
                Hint::new("{} takes a larger distance, at the price of more noise").name(Setting::PolicySensitivity),
            ),
            Self::OtherNoise { before, .. } => Some(
                Hint::new(
                    "export it again under {}; the next change of the model makes a new version, to which the new policy \
                     applies",
                )
                .set(Setting::PolicyNoise, before.to_string()),
            ),
            Self::NoiseSeed { .. } => Some(
                Hint::new(
                    "put back the key file that was made with the model; without it, {} exports without noise, or a new fit \
                     makes a new seed",
                )
                .set(Setting::PolicyNoise, "0"),
            ),
            Self::UnknownSubject { .. } => {
                Some(
                Hint::new("with {} or {} the log records that nothing was found")
                    .name(Setting::Request)
                    .name(Setting::AllowMissing),
            )
            }
            Self::OtherEncoder { .. } => {
                Some(
                Hint::new("name the folder of the encoder that the model was fitted with: {}")
                    .set(Setting::Encoder, "DIR"),
            )
            }
            Self::Encoder(efface_nn::minilm::MiniLmError::Read { .. }) => {
                Some(Hint::new("name the folder with {}").set(Setting::Encoder, "DIR"))
            }
            Self::Network(error) if matches!(error.as_ref(), efface_nn::Error::Diverged { .. }) => Some(
                Hint::new("with {} the state before that step is kept there, and a lower {} goes on from it")
                    .set(Setting::Checkpoint, "FILE")
                    .name(Setting::LearningRate),
            ),
            Self::TooLong { .. } => Some(
                Hint::new("allow more with {}, or name one of these with {}; a network that is fitted with {} trains a part only")
                    .name(Setting::AtMost)
                    .name(Setting::Method)
                    .name(Setting::Shards),
            ),
            Self::Locked { .. } => Some("wait until the other process is done, then try again".into()),
            _ => None,
        }
    }
}
