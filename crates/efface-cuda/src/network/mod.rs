//! A network on the card: parameters, the optimiser's state and word vectors stay there, a
//! minibatch comes in one copy, and losses go back.
//!
//! The steps of the two directions of a layer are queued on two streams, which the card works on
//! side by side. Each stream has a handle of its own for products, so that no sum depends on what
//! the other stream does: the same card and libraries give the same bits.

mod backward;
mod forward;
mod inbox;
mod places;

use std::sync::Arc;

use efface_nn::{
    AdamStep, DeviceNetwork, DeviceRun, EncoderPlan, NetworkStart, Pooling, Result, Squash,
    TextBatch, TextScore,
};

use crate::arena::{Arena, Dealer};
use crate::card::{Card, size};
use crate::error::CudaError;
use crate::kernels::{Argument, BLOCK, Kernels};
use inbox::Inbox;
use places::Places;

/// Blocks that share the sum of squares of a gradient.
const SUMMERS: usize = 256;

/// What the network is and where its numbers are. The two lanes are streams of work.
pub(crate) struct CudaNetwork {
    plan: EncoderPlan,
    kernels: Arc<Kernels>,
    lanes: [Card; 2],
    parameters: Arena,
    /// Gradient, means and squares, where it is trained.
    training: Option<[Arena; 3]>,
    frozen: Option<Arena>,
    inbox: Arena,
    work: Arena,
}

impl CudaNetwork {
    /// Takes a network over, if there is room.
    pub(crate) fn new(
        card: &Card,
        kernels: Arc<Kernels>,
        plan: &EncoderPlan,
        start: NetworkStart<'_>,
    ) -> std::result::Result<Self, CudaError> {
        let lanes = [card.beside()?, card.beside()?];
        let first = &lanes[0];
        let mut counted = Dealer::default();
        Places::deal(&mut counted, plan, start.largest)?;
        // Where the length of the gradient is measured, between minibatches.
        let room = counted.taken().max(3 * SUMMERS);
        let brought = Inbox::most(plan, start.largest);
        let copies = if start.moments.is_some() { 4 } else { 1 };
        let numbers = room + brought + copies * plan.total() + start.frozen.len();
        let free = card.free_memory()?;
        // A tenth is left to others.
        if numbers.saturating_mul(4) > free / 10 * 9 {
            let (free, needed) = (free >> 20, numbers >> 18);
            return Err(CudaError::NoNetworkRoom { free, needed });
        }
        let training = match start.moments {
            Some((means, squares)) => Some([
                Arena::new(first, plan.total())?,
                Arena::holding(first, means)?,
                Arena::holding(first, squares)?,
            ]),
            None => None,
        };
        let frozen = plan
            .table
            .is_none()
            .then(|| Arena::holding(first, start.frozen))
            .transpose()?;
        let network = Self {
            plan: plan.clone(),
            kernels,
            parameters: Arena::holding(first, start.parameters)?,
            training,
            frozen,
            inbox: Arena::new(first, brought)?,
            work: Arena::new(first, room)?,
            lanes,
        };
        network.lanes[0].wait()?;
        Ok(network)
    }

    fn main(&self) -> &Card {
        &self.lanes[0]
    }

    /// Where a parameter lies.
    fn parameter(&self, range: &std::ops::Range<usize>) -> u64 {
        self.parameters.at(range.start)
    }

    /// Where the gradient of a parameter lies.
    fn slope(&self, range: &std::ops::Range<usize>) -> std::result::Result<u64, CudaError> {
        Ok(self.training()?[0].at(range.start))
    }

    fn training(&self) -> std::result::Result<&[Arena; 3], CudaError> {
        self.training.as_ref().ok_or(CudaError::Call {
            what: "a step of a network that only encodes",
            code: "no result".into(),
        })
    }

    fn each(
        &self,
        name: &'static str,
        items: usize,
        arguments: &[Argument],
    ) -> std::result::Result<(), CudaError> {
        self.kernels.each(self.main(), name, items, arguments)
    }

    /// The second lane goes on where the first is.
    fn fork(&self) -> std::result::Result<(), CudaError> {
        self.lanes[1]
            .work
            .join(&self.lanes[0].work)
            .map_err(CudaError::call("waiting for a stream"))
    }

    /// The first lane goes on where the second is.
    fn join(&self) -> std::result::Result<(), CudaError> {
        self.lanes[0]
            .work
            .join(&self.lanes[1].work)
            .map_err(CudaError::call("waiting for a stream"))
    }

    /// Copies what a minibatch brings along, and deals the memory out.
    fn begin(
        &mut self,
        inbox: &Inbox,
        batch: &TextBatch,
    ) -> std::result::Result<(Places, Dealer), CudaError> {
        let packed = batch.packed();
        self.inbox.write(&self.lanes[0], &inbox.bits)?;
        let mut dealer = self.work.dealer();
        let places = Places::deal(
            &mut dealer,
            &self.plan,
            (packed.samples(), packed.columns()),
        )?;
        let ones = packed.columns().max(packed.samples());
        self.each(
            "fill",
            ones,
            &[places.ones.into(), 1.0.into(), count(ones)?],
        )?;
        Ok((places, dealer))
    }

    fn learn_run(&mut self, run: &DeviceRun<'_>) -> std::result::Result<Vec<TextScore>, CudaError> {
        let classes = self.plan.head.output;
        let mut inbox = Inbox::new(run.batch);
        let learning = inbox.put_run(run, self.plan.table.is_some(), classes);
        let (places, dealer) = self.begin(&inbox, run.batch)?;
        let samples = run.batch.packed().samples();
        self.forward(run.batch, &inbox, Some(&learning), &places)?;
        self.score(samples, &learning, &places)?;
        self.backward(run.batch, &inbox, &learning, &places)?;
        let losses = self
            .work
            .read_bits(self.main(), dealer.offset(places.losses), 2 * samples)?;
        let hits = self
            .work
            .read_bits(self.main(), dealer.offset(places.hits), samples)?;
        let losses = losses.as_chunks::<2>().0.iter().map(double);
        Ok(losses
            .zip(hits)
            .map(|(loss, hit)| TextScore {
                loss,
                hit: hit != 0,
            })
            .collect())
    }

    fn measure(&mut self) -> std::result::Result<(f64, f32), CudaError> {
        let mut dealer = self.work.dealer();
        let [squares, largest] = [dealer.take(2 * SUMMERS)?, dealer.take(SUMMERS)?];
        let arguments = [
            self.training()?[0].first().into(),
            self.parameters.first().into(),
            squares.into(),
            largest.into(),
            count(self.plan.total())?,
        ];
        self.each("lengths", SUMMERS * BLOCK as usize, &arguments)?;
        let squares = self
            .work
            .read_bits(self.main(), dealer.offset(squares), 2 * SUMMERS)?;
        let largest = self
            .work
            .read_bits(self.main(), dealer.offset(largest), SUMMERS)?;
        let sum: f64 = squares.as_chunks::<2>().0.iter().map(double).sum();
        let most = largest
            .iter()
            .fold(0.0f32, |most, bits| most.max(f32::from_bits(*bits)));
        Ok((sum.sqrt(), most))
    }

    fn take_step(&mut self, step: &AdamStep) -> std::result::Result<(), CudaError> {
        if step.shrink != 1.0 {
            for range in self.plan.decays() {
                let arguments = [
                    self.parameter(&range).into(),
                    step.shrink.into(),
                    count(range.len())?,
                ];
                self.each("shrink", range.len(), &arguments)?;
            }
        }
        let [gradient, means, squares] = self.training()?;
        let total = self.plan.total();
        let arguments = [
            self.parameters.first().into(),
            means.first().into(),
            squares.first().into(),
            gradient.first().into(),
            step.clip.into(),
            step.rate.into(),
            step.shares.0.into(),
            step.shares.1.into(),
            count(total)?,
        ];
        self.each("adam", total, &arguments)
    }

    fn encode(&mut self, batch: &TextBatch) -> std::result::Result<Vec<f32>, CudaError> {
        let inbox = Inbox::new(batch);
        let (places, dealer) = self.begin(&inbox, batch)?;
        self.forward(batch, &inbox, None, &places)?;
        let mut features = vec![0.0; self.plan.settings.features() * batch.packed().samples()];
        self.work
            .read(self.main(), dealer.offset(places.features), &mut features)?;
        Ok(features)
    }

    fn pooling(&self) -> i32 {
        match self.plan.settings.pooling {
            Pooling::Mean => 0,
            Pooling::Max => 1,
            Pooling::Last => 2,
        }
    }

    fn is_tanh(&self) -> i32 {
        i32::from(self.plan.settings.squash == Squash::Tanh)
    }
}

impl DeviceNetwork for CudaNetwork {
    fn learn(&mut self, run: &DeviceRun<'_>) -> Result<Vec<TextScore>> {
        self.learn_run(run).map_err(fault)
    }

    fn lengths(&mut self) -> Result<(f64, f32)> {
        self.measure().map_err(fault)
    }

    fn step(&mut self, step: &AdamStep) -> Result<()> {
        self.take_step(step).map_err(fault)
    }

    fn features(&mut self, batch: &TextBatch) -> Result<Vec<f32>> {
        self.encode(batch).map_err(fault)
    }

    fn read(
        &mut self,
        parameters: &mut [f32],
        means: &mut [f32],
        squares: &mut [f32],
    ) -> Result<()> {
        self.parameters
            .read(self.main(), 0, parameters)
            .map_err(fault)?;
        let [_, kept_means, kept_squares] = self.training().map_err(fault)?;
        kept_means.read(self.main(), 0, means).map_err(fault)?;
        kept_squares.read(self.main(), 0, squares).map_err(fault)
    }

    fn gradient(&mut self) -> Result<Vec<f32>> {
        let mut gradient = vec![0.0; self.plan.total()];
        self.training().map_err(fault)?[0]
            .read(self.main(), 0, &mut gradient)
            .map_err(fault)?;
        Ok(gradient)
    }
}

impl Drop for CudaNetwork {
    fn drop(&mut self) {
        // Memory must not be given back while a stream may still use it. A card that fails here has
        // failed before, and was told of.
        self.lanes.iter().for_each(|lane| _ = lane.wait());
    }
}

/// A failure of the card as the networks' crate tells it.
pub(crate) fn fault(error: CudaError) -> efface_nn::Error {
    efface_nn::Error::Core(error.into())
}

pub(crate) fn count(length: usize) -> std::result::Result<Argument, CudaError> {
    size(length).map(Argument::Count)
}

fn double(halves: &[u32; 2]) -> f64 {
    f64::from_bits(u64::from(halves[0]) | u64::from(halves[1]) << 32)
}
