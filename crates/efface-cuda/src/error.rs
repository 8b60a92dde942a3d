//! Why a card is not used.

/// What can go wrong with a card.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is no driver.
    #[error("there is no NVIDIA driver here (libcuda was not found)")]
    NoDriver,
    /// The driver is older than the libraries.
    #[error(
        "the NVIDIA driver is for CUDA {found} and must be for {needed} or newer; install a newer driver"
    )]
    OldDriver {
        /// The version of CUDA that it is for.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// A library is missing.
    #[error(
        "the library {0} was not found; install CUDA 13, or put its folder into LD_LIBRARY_PATH"
    )]
    NoLibrary(&'static str),
    /// A library is there in another version.
    #[error(
        "the library {name} that was found first is of version {found}, not {needed}; put the folder of CUDA 13 first in \
         LD_LIBRARY_PATH"
    )]
    LibraryVersion {
        /// The library.
        name: &'static str,
        /// Its major version.
        found: i32,
        /// The one that comes with CUDA 13.
        needed: i32,
    },
    /// The driver knows no card.
    #[error("the NVIDIA driver knows no card that this process may use ({0})")]
    NoCard(String),
    /// The card has too little memory left.
    #[error(
        "the card has {free} MiB of memory left, and rows of {width} numbers need {needed} MiB"
    )]
    NoRoom {
        /// Numbers a row.
        width: usize,
        /// MiB that are left.
        free: usize,
        /// MiB that are needed.
        needed: usize,
    },
    /// The card has too little memory left for a network.
    #[error(
        "the card has {free} MiB of memory left, and the network with a minibatch needs {needed} MiB"
    )]
    NoNetworkRoom {
        /// MiB that are left.
        free: usize,
        /// MiB that are needed.
        needed: usize,
    },
    /// An encoder of another shape than the kernels are for.
    #[error("attention heads of {0} numbers are wider than the card's kernels take (128)")]
    WideHeads(usize),
    /// Products that have an exact result came out otherwise.
    #[error(
        "the card's products of doubles are not those of doubles; unset CUBLAS_EMULATE_DOUBLE_PRECISION if it is set"
    )]
    Inexact,
    /// A call failed.
    #[error("{what} gave {code}")]
    Call {
        /// What was done.
        what: &'static str,
        /// What the library said.
        code: String,
    },
}

impl CudaError {
    /// A call that failed, as one of the libraries tells it.
    pub(crate) fn call<E: std::fmt::Debug>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Call {
            what,
            code: format!("{error:?}"),
        }
    }
}

impl From<CudaError> for efface::Error {
    fn from(error: CudaError) -> Self {
        Self::Device(error.to_string())
    }
}
