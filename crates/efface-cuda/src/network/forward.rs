//! From word ids to features and losses.

use efface_nn::{LinearPlace, LstmPlace, PackedTexts, TextBatch};

use super::inbox::{Inbox, LearningInbox};
use super::places::{LstmPlaces, Places};
use super::{CudaNetwork, count};
use crate::card::{Card, size};
use crate::error::CudaError;
use crate::kernels::BLOCK;
use crate::products::Factor;

/// What keeps a constant column from being divided by 0; the same as on the processor.
const NORM_EPSILON: f32 = 1e-5;

/// Units and texts of a block of a step; as in the source.
const UNITS: usize = 4;
const TEXTS: usize = 64;

impl CudaNetwork {
    pub(super) fn forward(
        &self,
        batch: &TextBatch,
        inbox: &Inbox,
        learning: Option<&LearningInbox>,
        places: &Places,
    ) -> Result<(), CudaError> {
        let plan = &self.plan;
        let packed = batch.packed();
        let n = packed.columns();
        let samples = packed.samples();
        let lanes = plan.settings.lanes();
        let width = plan.word_width;
        let table = match (&plan.table, &self.frozen) {
            (Some(table), _) => self.parameter(table),
            (None, Some(frozen)) => frozen.first(),
            (None, None) => self.parameters.first(),
        };
        let ids = self.inbox.at(inbox.ids);
        self.each(
            "embed",
            width * n,
            &[
                places.words.into(),
                table.into(),
                ids.into(),
                count(width)?,
                count(n)?,
            ],
        )?;
        if let Some(mask) = learning.and_then(|learning| learning.words) {
            self.mask(places.words, mask, inbox, width, n)?;
        }
        let mut below = places.words;
        for (at, layer) in plan.layers.iter().enumerate() {
            let own = &places.layers[at];
            let x = match &layer.norm {
                Some((gain, shift)) => {
                    let arguments = [
                        below.into(),
                        self.parameter(gain).into(),
                        self.parameter(shift).into(),
                        own.normed.into(),
                        own.normal.into(),
                        own.scales.into(),
                        count(layer.input)?,
                        NORM_EPSILON.into(),
                    ];
                    let grid = (size(n)? as u32, 1, 1);
                    self.kernels
                        .blocks(self.main(), "norm_forward", (grid, BLOCK), &arguments)?;
                    own.normed
                }
                None => below,
            };
            self.fork()?;
            for (way, (lstm, traces)) in layer.directions.iter().zip(&own.lstms).enumerate() {
                let output = own.output + 4 * (way * lstm.hidden) as u64;
                self.read_texts(&self.lanes[way], lstm, packed, x, traces, (output, lanes))?;
            }
            self.join()?;
            if let Some(mask) = learning.and_then(|learning| learning.layers.get(at)) {
                self.mask(own.output, *mask, inbox, lanes, n)?;
            }
            if layer.residual {
                self.each(
                    "add",
                    lanes * n,
                    &[own.output.into(), below.into(), count(lanes * n)?],
                )?;
            }
            below = own.output;
        }
        let arguments = [
            below.into(),
            places.pooled.into(),
            places.chosen.into(),
            self.inbox.at(inbox.starts).into(),
            self.inbox.at(inbox.lengths).into(),
            count(lanes)?,
            count(plan.settings.hidden)?,
            count(samples)?,
            self.pooling().into(),
        ];
        self.each("pool_forward", lanes * samples, &arguments)?;
        if let Some(linear) = &plan.projection {
            self.linear(linear, places.pooled, places.features, samples)?;
            let numbers = linear.output * samples;
            let arguments = [
                places.features.into(),
                self.is_tanh().into(),
                count(numbers)?,
            ];
            self.each("squash_forward", numbers, &arguments)?;
        }
        Ok(())
    }

    /// One direction of a layer over all steps, queued on one lane: one product for all steps, and
    /// one kernel a step.
    fn read_texts(
        &self,
        lane: &Card,
        lstm: &LstmPlace,
        packed: &PackedTexts,
        x: u64,
        traces: &LstmPlaces,
        (output, height): (u64, usize),
    ) -> Result<(), CudaError> {
        let h = lstm.hidden;
        let n = packed.columns();
        let weight_input = Factor::plain(self.parameter(&lstm.weight_input), 4 * h);
        let weight_hidden = self.parameter(&lstm.weight_hidden);
        let bias = self.parameter(&lstm.bias);
        lane.product(
            (4 * h, n, lstm.input),
            weight_input,
            Factor::plain(x, lstm.input),
            0.0,
            traces.gates,
        )?;
        // Texts that begin at a step have no state before it.
        let arguments = [traces.before.into(), 0.0.into(), count(h * n)?];
        self.kernels.each(lane, "fill", h * n, &arguments)?;
        for t in lstm.reading_order(packed) {
            let first = packed.step(t).start;
            let active = packed.active(t);
            let previous = lstm.previous(t, packed);
            let remembering = previous.map_or(0, |step| packed.active(step).min(active));
            let gates = column(traces.gates, 4 * h, first);
            let next = lstm.next(t, packed);
            let next_active = next.map_or(0, |next| active.min(packed.active(next)));
            let next_first = next.map_or(first, |next| packed.step(next).start);
            let before_first = previous.map_or(first, |step| packed.step(step).start);
            let arguments = [
                gates.into(),
                weight_hidden.into(),
                column(traces.before, h, first).into(),
                bias.into(),
                column(traces.cells, h, before_first).into(),
                column(traces.cells, h, first).into(),
                column(traces.squashed, h, first).into(),
                column(output, height, first).into(),
                column(traces.before, h, next_first).into(),
                count(h)?,
                count(active)?,
                count(remembering)?,
                count(height)?,
                count(next_active)?,
            ];
            let grid = (
                size(h.div_ceil(UNITS))? as u32,
                size(active.div_ceil(TEXTS))? as u32,
                1,
            );
            self.kernels
                .blocks(lane, "lstm_forward", (grid, BLOCK), &arguments)?;
        }
        Ok(())
    }

    /// Scores of the training's head, and what becomes of them.
    pub(super) fn score(
        &self,
        samples: usize,
        learning: &LearningInbox,
        places: &Places,
    ) -> Result<(), CudaError> {
        let head = &self.plan.head;
        let read = self.head_input(samples, learning, places)?;
        self.linear(head, read, places.logits, samples)?;
        let arguments = [
            places.logits.into(),
            self.inbox.at(learning.classes).into(),
            self.inbox.at(learning.weights).into(),
            self.inbox.at(learning.taught).into(),
            places.losses.into(),
            places.hits.into(),
            count(head.output)?,
            count(samples)?,
        ];
        self.each("cross_entropy", samples, &arguments)
    }

    /// What the head reads while training: the features, some of them dropped.
    fn head_input(
        &self,
        samples: usize,
        learning: &LearningInbox,
        places: &Places,
    ) -> Result<u64, CudaError> {
        let Some(mask) = learning.head else {
            return Ok(places.features);
        };
        let numbers = self.plan.head.input * samples;
        let mask = self.inbox.at(mask);
        let arguments = [
            places.read.into(),
            places.features.into(),
            mask.into(),
            count(numbers)?,
        ];
        self.each("multiply", numbers, &arguments)?;
        Ok(places.read)
    }

    /// W x + b for every column.
    fn linear(
        &self,
        linear: &LinearPlace,
        x: u64,
        out: u64,
        columns: usize,
    ) -> Result<(), CudaError> {
        let LinearPlace {
            input,
            output,
            weight,
            bias,
        } = linear;
        let bias = self.parameter(bias);
        let arguments = [out.into(), bias.into(), count(*output)?, count(columns)?];
        self.each("fill_columns", output * columns, &arguments)?;
        let weight = Factor::plain(self.parameter(weight), *output);
        self.main().product(
            (*output, columns, *input),
            weight,
            Factor::plain(x, *input),
            1.0,
            out,
        )
    }

    pub(super) fn mask(
        &self,
        values: u64,
        factors: usize,
        inbox: &Inbox,
        height: usize,
        columns: usize,
    ) -> Result<(), CudaError> {
        let arguments = [
            values.into(),
            self.inbox.at(factors).into(),
            self.inbox.at(inbox.places).into(),
            count(height)?,
            count(columns)?,
        ];
        self.each("mask_columns", height * columns, &arguments)
    }
}

/// Where a column of a matrix of this height begins.
pub(super) fn column(matrix: u64, height: usize, column: usize) -> u64 {
    matrix + 4 * (height * column) as u64
}
