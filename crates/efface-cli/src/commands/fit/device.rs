//! Which device multiplies the rows of a ridge model, trains a network or encodes texts. A card
//! that is asked for and cannot be used is no error: the processor does the work, and the user is
//! told why.

use std::sync::Arc;

use efface::GramEngine;
use efface_engine::NetworkDevice;

use crate::cli::DeviceName;
use crate::terminal::Terminal;

/// The card of a fit, where there is one.
#[derive(Default)]
pub(super) struct FitDevice {
    #[cfg(feature = "cuda")]
    card: Option<Arc<efface_cuda::CudaEngine>>,
}

impl FitDevice {
    /// The device that was asked for.
    pub(super) fn open(asked: Option<DeviceName>, terminal: &Terminal) -> Self {
        match asked {
            None | Some(DeviceName::Cpu) => Self::default(),
            Some(DeviceName::Cuda) => Self::card(terminal),
        }
    }

    #[cfg(feature = "cuda")]
    fn card(terminal: &Terminal) -> Self {
        match efface_cuda::CudaEngine::open() {
            Ok(card) => Self {
                card: Some(Arc::new(card)),
            },
            Err(reason) => {
                warn(&reason.to_string(), terminal);
                Self::default()
            }
        }
    }

    #[cfg(not(feature = "cuda"))]
    fn card(terminal: &Terminal) -> Self {
        warn("this program was built without the feature cuda", terminal);
        Self::default()
    }

    /// What the fit hands its rows to.
    #[cfg(feature = "cuda")]
    pub(super) fn engine(&self) -> Option<Arc<dyn GramEngine>> {
        self.card.clone().map(|card| card as Arc<dyn GramEngine>)
    }

    /// What the fit hands its rows to.
    #[cfg(not(feature = "cuda"))]
    pub(super) fn engine(&self) -> Option<Arc<dyn GramEngine>> {
        None
    }

    /// What trains a network or encodes texts.
    #[cfg(feature = "cuda")]
    pub(super) fn network_device(&self) -> Option<Arc<dyn NetworkDevice>> {
        self.card.clone().map(|card| card as Arc<dyn NetworkDevice>)
    }

    /// What trains a network or encodes texts.
    #[cfg(not(feature = "cuda"))]
    pub(super) fn network_device(&self) -> Option<Arc<dyn NetworkDevice>> {
        None
    }

    /// Says after a fit what the card has done.
    pub(super) fn tell(&self, terminal: &Terminal) {
        #[cfg(feature = "cuda")]
        if let Some(card) = &self.card {
            if let Some(reason) = card.remark() {
                warn(&reason.to_string(), terminal);
            } else if card.networks() > 0 {
                terminal.note(&format!(
                    "{} did the work of the encoder",
                    card.card().name()
                ));
            } else if card.sums() == 0 {
                warn(
                    "a card multiplies dense rows that are in memory, and not for --curvature iterative, and trains \
                     networks that are not in shards",
                    terminal,
                );
            } else {
                terminal.note(&format!("{} multiplied the rows", card.card().name()));
            }
        }
        #[cfg(not(feature = "cuda"))]
        let _ = terminal;
    }
}

fn warn(reason: &str, terminal: &Terminal) {
    terminal.warn(&format!(
        "--device cuda was not used: {reason}; the processor did the work"
    ));
}
