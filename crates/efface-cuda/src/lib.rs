//! An NVIDIA graphics card multiplies the rows of a ridge model and factors its sums.
//!
//! [`CudaEngine::open`] looks for the driver, for cuBLAS and cuSOLVER of CUDA 13, and for a card; where one is missing, or is of
//! another version, the error says which, and the processor does the work. A fit hands its rows over in blocks: while one block
//! is written, the one before it travels to the card, and the one before that is multiplied. No more of the rows than that is on
//! the card at a time.
//!
//! Sums on the card are sums of doubles like those of the processor. A block is multiplied with itself, in whatever order the
//! library likes, and is then added to those before it: an entry sees one rounding for each row of a block and one for each
//! block, which is what the bounds of the model are charged with.
//!
//! ```no_run
//! use std::sync::Arc;
//! use efface::{Dense, Fit, GramEngine, Ridge, Rows};
//!
//! let engine: Arc<dyn GramEngine> = Arc::new(efface_cuda::CudaEngine::open()?);
//! let rows = Rows::new(Dense::new(vec![1.0, 2.0, 4.0], 1)?, vec![2.0, 3.0, 5.0], 1)?;
//! let model = Ridge::new(0.1).fit(&rows.multiplied_by(&engine))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block_sum;
mod card;
mod engine;
mod error;
mod probe;

pub use block_sum::BlockSum;
pub use card::{Card, CardMatrix, CardNumber};
pub use engine::CudaEngine;
pub use error::CudaError;
