//! From losses to the gradients of all parameters.

use efface_nn::{LinearPlace, LstmPlace, PackedTexts, TextBatch};

use super::forward::column;
use super::inbox::{Inbox, LearningInbox};
use super::places::{LstmPlaces, Places};
use super::{CudaNetwork, count};
use crate::card::{Card, size};
use crate::error::CudaError;
use crate::kernels::BLOCK;
use crate::products::Factor;

impl CudaNetwork {
    pub(super) fn backward(
        &self,
        batch: &TextBatch,
        inbox: &Inbox,
        learning: &LearningInbox,
        places: &Places,
    ) -> Result<(), CudaError> {
        let plan = &self.plan;
        let packed = batch.packed();
        let n = packed.columns();
        let samples = packed.samples();
        let lanes = plan.settings.lanes();
        let read = if learning.head.is_some() {
            places.read
        } else {
            places.features
        };
        let slopes = places.features_back;
        self.linear_back(
            &plan.head,
            read,
            places.logits,
            slopes,
            (samples, places.ones),
        )?;
        let numbers = plan.head.input * samples;
        if let Some(mask) = learning.head {
            let mask = self.inbox.at(mask);
            let arguments = [slopes.into(), slopes.into(), mask.into(), count(numbers)?];
            self.each("multiply", numbers, &arguments)?;
        }
        let pooled_back = match &plan.projection {
            Some(linear) => {
                let arguments = [
                    slopes.into(),
                    places.features.into(),
                    self.is_tanh().into(),
                    count(numbers)?,
                ];
                self.each("squash_backward", numbers, &arguments)?;
                let back = places.pooled_back;
                self.linear_back(linear, places.pooled, slopes, back, (samples, places.ones))?;
                back
            }
            None => slopes,
        };
        let [mut back, mut input, kept] = places.back;
        let arguments = [
            back.into(),
            pooled_back.into(),
            places.chosen.into(),
            self.inbox.at(inbox.places).into(),
            self.inbox.at(inbox.steps).into(),
            self.inbox.at(inbox.lengths).into(),
            count(lanes)?,
            count(plan.settings.hidden)?,
            count(n)?,
            self.pooling().into(),
        ];
        self.each("pool_backward", lanes * n, &arguments)?;
        for (at, layer) in plan.layers.iter().enumerate().rev() {
            let own = &places.layers[at];
            let below = if at == 0 {
                places.words
            } else {
                places.layers[at - 1].output
            };
            let x = if layer.norm.is_some() {
                own.normed
            } else {
                below
            };
            // What goes past the layer is not dropped.
            let mut past = back;
            if let Some(mask) = learning.layers.get(at) {
                if layer.residual {
                    let arguments = [kept.into(), back.into(), count(lanes * n)?, 1.into()];
                    self.each("fill_columns", lanes * n, &arguments)?;
                    past = kept;
                }
                self.mask(back, *mask, inbox, lanes, n)?;
            }
            self.fork()?;
            for (way, (lstm, traces)) in layer.directions.iter().zip(&own.lstms).enumerate() {
                let slopes = back + 4 * (way * lstm.hidden) as u64;
                let read = (x, places.ones);
                self.read_back(
                    &self.lanes[way],
                    lstm,
                    packed,
                    read,
                    traces,
                    (slopes, lanes),
                )?;
            }
            self.join()?;
            // Frozen word vectors have no gradient to add to.
            if at == 0 && plan.table.is_none() {
                return Ok(());
            }
            for (way, (lstm, traces)) in layer.directions.iter().zip(&own.lstms).enumerate() {
                let gates = 4 * lstm.hidden;
                let weight = Factor::turned(self.parameter(&lstm.weight_input), gates);
                let keep = if way == 0 { 0.0 } else { 1.0 };
                let slopes = Factor::plain(traces.gates, gates);
                self.main()
                    .product((layer.input, n, gates), weight, slopes, keep, input)?;
            }
            if let Some((gain, shift)) = &layer.norm {
                let width = layer.input;
                self.main()
                    .add_columns((width, n), input, places.ones, self.slope(shift)?)?;
                // The layer has read its normalised input for the last time: its place is free for
                // the product.
                let product = own.normed;
                let arguments = [
                    product.into(),
                    input.into(),
                    own.normal.into(),
                    count(width * n)?,
                ];
                self.each("multiply", width * n, &arguments)?;
                self.main()
                    .add_columns((width, n), product, places.ones, self.slope(gain)?)?;
                let gain = self.parameter(gain);
                let arguments = [
                    input.into(),
                    own.normal.into(),
                    own.scales.into(),
                    gain.into(),
                    count(width)?,
                ];
                let grid = (size(n)? as u32, 1, 1);
                self.kernels
                    .blocks(self.main(), "norm_backward", (grid, BLOCK), &arguments)?;
            }
            if layer.residual {
                self.each(
                    "add",
                    lanes * n,
                    &[input.into(), past.into(), count(lanes * n)?],
                )?;
            }
            std::mem::swap(&mut back, &mut input);
        }
        self.add_to_words(back, inbox, learning, n)
    }

    /// One direction of a layer back over all steps, queued on one lane, and then the gradients of
    /// its weights.
    fn read_back(
        &self,
        lane: &Card,
        lstm: &LstmPlace,
        packed: &PackedTexts,
        (x, ones): (u64, u64),
        traces: &LstmPlaces,
        (slopes, height): (u64, usize),
    ) -> Result<(), CudaError> {
        let h = lstm.hidden;
        let n = packed.columns();
        let samples = packed.samples();
        let arguments = [traces.cell_gradient.into(), 0.0.into(), count(h * samples)?];
        self.kernels.each(lane, "fill", h * samples, &arguments)?;
        let weight_hidden = Factor::turned(self.parameter(&lstm.weight_hidden), 4 * h);
        for t in lstm.reading_order(packed).rev() {
            let first = packed.step(t).start;
            let active = packed.active(t);
            let mut later = 0;
            if let Some(next) = lstm.next(t, packed) {
                later = active.min(packed.active(next));
                let gates =
                    Factor::plain(column(traces.gates, 4 * h, packed.step(next).start), 4 * h);
                lane.product((h, later, 4 * h), weight_hidden, gates, 0.0, traces.carried)?;
            }
            let previous = lstm.previous(t, packed);
            let remembering = previous.map_or(0, |step| packed.active(step).min(active));
            let before_first = previous.map_or(first, |step| packed.step(step).start);
            let arguments = [
                column(traces.gates, 4 * h, first).into(),
                column(traces.cells, h, before_first).into(),
                column(traces.squashed, h, first).into(),
                column(slopes, height, first).into(),
                traces.carried.into(),
                traces.cell_gradient.into(),
                count(h)?,
                count(active)?,
                count(remembering)?,
                count(later)?,
                count(height)?,
            ];
            self.kernels
                .each(lane, "lstm_backward", h * active, &arguments)?;
        }
        let gates = Factor::plain(traces.gates, 4 * h);
        let x = Factor::turned(x, lstm.input);
        lane.product(
            (4 * h, lstm.input, n),
            gates,
            x,
            1.0,
            self.slope(&lstm.weight_input)?,
        )?;
        let before = Factor::turned(traces.before, h);
        lane.product(
            (4 * h, h, n),
            gates,
            before,
            1.0,
            self.slope(&lstm.weight_hidden)?,
        )?;
        lane.add_columns((4 * h, n), traces.gates, ones, self.slope(&lstm.bias)?)
    }

    /// The gradients of a linear map, and that of its input.
    fn linear_back(
        &self,
        linear: &LinearPlace,
        x: u64,
        slopes: u64,
        input_slopes: u64,
        (columns, ones): (usize, u64),
    ) -> Result<(), CudaError> {
        let LinearPlace {
            input,
            output,
            weight,
            bias,
        } = linear;
        let back = Factor::plain(slopes, *output);
        let read = Factor::turned(x, *input);
        self.main().product(
            (*output, *input, columns),
            back,
            read,
            1.0,
            self.slope(weight)?,
        )?;
        self.main()
            .add_columns((*output, columns), slopes, ones, self.slope(bias)?)?;
        let weight = Factor::turned(self.parameter(weight), *output);
        self.main()
            .product((*input, columns, *output), weight, back, 0.0, input_slopes)
    }

    fn add_to_words(
        &self,
        back: u64,
        inbox: &Inbox,
        learning: &LearningInbox,
        columns: usize,
    ) -> Result<(), CudaError> {
        let Some(table) = &self.plan.table else {
            return Ok(());
        };
        let width = self.plan.word_width;
        if let Some(mask) = learning.words {
            self.mask(back, mask, inbox, width, columns)?;
        }
        let list = &learning.word_list;
        let arguments = [
            self.slope(table)?.into(),
            back.into(),
            self.inbox.at(list.words).into(),
            self.inbox.at(list.ends).into(),
            self.inbox.at(list.columns).into(),
            count(width)?,
        ];
        let grid = (size(list.count)? as u32, 1, 1);
        self.kernels
            .blocks(self.main(), "add_to_words", (grid, BLOCK), &arguments)
    }
}
