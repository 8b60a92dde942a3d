//! The card as what efface's fits hand their rows to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use efface::{DeviceFactor, GramEngine, GramSum};
use efface_nn::onnx::OnnxBert;
use efface_nn::{DeviceBert, DeviceNetwork, EncoderPlan, NetworkDevice, NetworkStart};

use crate::bert::{CudaBert, WIDEST_HEAD};
use crate::block_sum::BlockSum;
use crate::card::Card;
use crate::error::CudaError;
use crate::kernels::{Kernels, NETWORK};
use crate::network::CudaNetwork;
use crate::probe;

/// Up to this many columns the processor has a factor before the matrix would be on the card and
/// back.
const LEAST_FACTOR: usize = 2048;

/// A card that multiplies rows and factors sums.
#[derive(Debug)]
pub struct CudaEngine {
    card: Card,
    /// Sums that were begun.
    begun: AtomicU64,
    /// Networks and encoders that were taken over.
    networks: AtomicU64,
    /// The kernels of networks, once they were needed.
    kernels: Mutex<Option<Arc<Kernels>>>,
    /// Why the processor did what the card was to do.
    remark: Mutex<Option<CudaError>>,
}

impl CudaEngine {
    /// The first card, once it has shown that its products of doubles are such.
    ///
    /// # Errors
    /// There is no card, no driver or no library, or one of another version.
    pub fn open() -> Result<Self, CudaError> {
        let card = Card::first()?;
        let engine = Self {
            card,
            begun: AtomicU64::new(0),
            networks: AtomicU64::new(0),
            kernels: Mutex::new(None),
            remark: Mutex::new(None),
        };
        engine.check_products()?;
        Ok(engine)
    }

    /// The card itself.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// How many sums the card has made.
    pub fn sums(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// How many networks and encoders the card has taken over.
    pub fn networks(&self) -> u64 {
        self.networks.load(Ordering::Relaxed)
    }

    /// Why the processor did what the card was asked to do, if it did.
    pub fn remark(&self) -> Option<CudaError> {
        self.remark
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }

    /// What could be taken over; else the reason is kept, and the processor does the work: nothing
    /// is lost yet.
    fn taken<T>(&self, made: Result<T, CudaError>) -> Option<T> {
        match made {
            Ok(made) => {
                self.networks.fetch_add(1, Ordering::Relaxed);
                Some(made)
            }
            Err(reason) => {
                *self
                    .remark
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(reason);
                None
            }
        }
    }

    fn network_kernels(&self) -> Result<Arc<Kernels>, CudaError> {
        probe::check_compiler()?;
        let mut kept = self
            .kernels
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(kernels) = &*kept {
            return Ok(kernels.clone());
        }
        let kernels = Arc::new(Kernels::compile(&self.card.context, &NETWORK, &[])?);
        *kept = Some(kernels.clone());
        Ok(kernels)
    }

    fn take_bert(&self, bert: &OnnxBert<'_>, max_tokens: usize) -> Result<CudaBert, CudaError> {
        probe::check_compiler()?;
        let head = bert.hidden / bert.heads.max(1);
        if head > WIDEST_HEAD {
            return Err(CudaError::WideHeads(head));
        }
        CudaBert::new(&self.card, bert, max_tokens)
    }

    /// Products of whole numbers of 26 bits have 52: a card that splits doubles into shorter
    /// numbers gets them wrong.
    fn check_products(&self) -> Result<(), CudaError> {
        let rows = [
            67_108_859.0,
            -67_108_837.0,
            1.0,
            67_108_777.0,
            3.0,
            67_108_763.0,
        ];
        let exact = |i: usize, j: usize| {
            let product = |row: usize| rows[3 * row + i] as i128 * rows[3 * row + j] as i128;
            product(0) + product(1)
        };
        let matrix = self.card.upload(&rows, 3)?;
        let (sum, _) = self.card.gram(&matrix, 2)?;
        let fits = |i: usize, j: usize| sum[3 * j + i] as i128 == exact(i, j);
        let is_exact = (0..3).all(|j| (j..3).all(|i| fits(i, j)));
        is_exact.then_some(()).ok_or(CudaError::Inexact)
    }
}

impl GramEngine for CudaEngine {
    fn begin(&self, width: usize) -> efface::Result<Option<Box<dyn GramSum>>> {
        match BlockSum::<f64>::begin(&self.card, width) {
            Ok(sum) => {
                self.begun.fetch_add(1, Ordering::Relaxed);
                Ok(Some(Box::new(sum)))
            }
            // Nothing is lost yet: the processor can do it.
            Err(reason) => {
                *self
                    .remark
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(reason);
                Ok(None)
            }
        }
    }

    fn factor(&self, columns: &mut [&mut [f64]]) -> efface::Result<DeviceFactor> {
        let width = columns.len();
        if width < LEAST_FACTOR
            || self.card.free_memory()? < width.saturating_mul(width).saturating_mul(24)
        {
            return Ok(DeviceFactor::Refused);
        }
        let card = self.card.beside()?;
        let mut matrix = card.upload_lower(columns)?;
        if let (Some(pivot), _) = card.factor(&mut matrix)? {
            return Ok(DeviceFactor::NotPositive(pivot));
        }
        card.download_lower(&matrix, columns)?;
        Ok(DeviceFactor::Factored)
    }
}

impl NetworkDevice for CudaEngine {
    fn name(&self) -> String {
        format!("{} with {}", self.card.name(), probe::versions())
    }

    fn network(
        &self,
        plan: &EncoderPlan,
        start: NetworkStart<'_>,
    ) -> efface_nn::Result<Option<Box<dyn DeviceNetwork>>> {
        let made = self
            .network_kernels()
            .and_then(|kernels| CudaNetwork::new(&self.card, kernels, plan, start));
        Ok(self
            .taken(made)
            .map(|network| Box::new(network) as Box<dyn DeviceNetwork>))
    }

    fn bert(
        &self,
        bert: &OnnxBert<'_>,
        max_tokens: usize,
    ) -> efface_nn::Result<Option<Box<dyn DeviceBert>>> {
        let made = self.take_bert(bert, max_tokens);
        Ok(self
            .taken(made)
            .map(|bert| Box::new(bert) as Box<dyn DeviceBert>))
    }
}
