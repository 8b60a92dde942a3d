//! Text networks that forget.
//!
//! A [`Network`] is an encoder (word vectors, LSTM layers, pooling) and a linear head. The encoder
//! is trained once; the head is then fitted to its optimum on the encoder's features, with the
//! models of [`efface`], so that the whole theory of the linear core holds for it: its methods take
//! rows out of the head exactly or approximately, with their own evidence. What the *encoder*
//! learned from a forgotten text stays in it: the claim of the network is then `approximate`, its
//! bound infinite, and the evidence has the bound of the head beside it ([`EncoderState`]). Nothing
//! of that concerns an encoder that was never trained. Retraining, and SISA over whole networks ([`NetworkRecipe`] is a
//! recipe for [`efface::Sisa`]), leave nothing uncovered. [`train_further`] trains a whole network
//! further instead: the methods that the literature compares with, which promise nothing.
//!
//! A frozen encoder that others trained is [`minilm`]; networks leave for other programs through
//! [`onnx`].
//!
//! This crate is pure, like the core: no clock, no printing, and no file but the folder that
//! [`minilm::MiniLm::open`] is given. Progress goes to a [`TrainingProgress`] of the caller, who
//! may stop the training there and keeps the best state so far.

#![warn(missing_docs)]

mod activation;
mod backbone;
mod batch;
mod device;
mod embedding;
mod encoder;
mod encoder_state;
mod error;
mod head;
mod lstm;
pub mod minilm;
mod model;
mod network;
mod norm;
pub mod onnx;
mod optimiser;
mod packed;
mod plan;
mod pool;
mod pooling;
mod recipe;
mod store;
mod texts;
mod train;
mod unlearn;
mod vectorised;

pub use backbone::{Backbone, encoded_rows};
pub use batch::{DropoutMask, DropoutMasks, TextAim, TextBatch};
pub use device::{
    AdamStep, DeviceBert, DeviceNetwork, DeviceRun, NetworkDevice, NetworkStart, TextScore,
};
pub use embedding::{ABSENT, Embedding, UNKNOWN};
pub use encoder_state::EncoderState;
pub use error::{Error, Result};
pub use head::{fit_head, forget_from_head, head_distance, head_recipe};
pub use lstm::LstmPlace;
pub use model::NetworkModel;
pub use network::Network;
pub use packed::PackedTexts;
pub use plan::{ArraySlot, EncoderPlan, EncoderSettings, LayerPlace, LinearPlace, Pooling, Squash};
pub use recipe::{NetworkRecipe, TrainedNetwork};
pub use texts::{TextRows, text_rows, words_in};
pub use train::{
    EpochReport, QuietTraining, StepReport, TrainSettings, Trainer, TrainingCheckpoint,
    TrainingFlow, TrainingProgress,
};
pub use unlearn::{TunedNetwork, further_epochs, further_rate, train_further};
