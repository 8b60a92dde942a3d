//! An NVIDIA graphics card multiplies the rows of a ridge model and factors its sums.
//!
//! [`CudaEngine::open`] looks for the driver, for cuBLAS and cuSOLVER of CUDA 13, and for a card;
//! where one is missing, or is of another version, the error says which, and the processor does the
//! work. A fit hands its rows over in blocks: while one block is written, the one before it travels
//! to the card, and the one before that is multiplied. No more of the rows than that is on the card
//! at a time.
//!
//! Sums on the card are sums of doubles like those of the processor. Up to 1,024 rows are
//! multiplied with themselves, in whatever order the library likes, and the product is then added
//! to 63 others and these to all before them: an entry sees one rounding for each row of a product
//! and one for each sum, which is what the bounds of the model are charged with.
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

mod arena;
mod bert;
mod block_sum;
mod card;
mod engine;
mod error;
mod kernels;
mod network;
mod probe;
mod products;
mod totals;

pub use block_sum::BlockSum;
pub use card::{Card, CardMatrix, CardNumber};
pub use engine::CudaEngine;
pub use error::CudaError;
