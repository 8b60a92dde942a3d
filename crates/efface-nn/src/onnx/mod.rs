//! Encoder and head as an ONNX file, for programs that run models without this library.
//!
//! Each network is described by a plain struct of slices and turned into an [`OnnxModel`] to be
//! written. The layouts:
//!
//! - a linear map is [outputs, inputs] as PyTorch stores it, or [inputs, outputs], as its
//!   [`WeightOrder`] says; a column-major matrix of outputs × inputs is the second;
//! - an LSTM's weights are [4·hidden, inputs] and [4·hidden, hidden], or turned likewise, gates in
//!   the order i, f, g, o (PyTorch's); they are put into ONNX's order i, o, f, c here;
//! - embeddings are [vocabulary, width].
//!
//! Inputs and outputs have fixed names: `features` into a head alone; `tokens` [batch, time] and
//! `lengths` (batch) into an LSTM; `input_ids` and `attention_mask` [batch, time] into a BERT. Out
//! of an encoder come `features` and, with a head, `scores` [batch, outputs]. A labelled head alone
//! has `label` (batch) too.

mod bert;
mod error;
mod graph;
mod head;
mod lstm;
mod proto;

pub use bert::{BertLayer, OnnxBert};
pub use error::{OnnxError, OnnxResult};
pub use graph::OnnxModel;
pub use head::{OnnxActivation, OnnxHead, OnnxLinear, OnnxNorm, OnnxQuadratic, WeightOrder};
pub use lstm::{LstmLayer, OnnxLstm, OnnxPooling, OnnxProjection, OnnxSquash, TextLstm};
