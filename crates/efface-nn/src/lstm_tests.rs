//! The layer against PyTorch, and against itself with more company.

use super::*;

/// Oracle: PyTorch 2.15.0+cu132 on the CPU, `nn.LSTM(3, 2, bidirectional=True)` in double precision
/// over `pack_padded_sequence` of lengths 4, 2 and 3; weights, inputs and the weights of the summed
/// loss from `formula`.
#[rustfmt::skip]
mod oracle {
    pub(super) const OUTPUT: [f32; 48] = [
        -0.1459326, -0.06625695, -0.1503411, -0.009217124, -0.1270784, 0.001625078, -0.1210919,
        0.11052, 0.06719114, 0.1218998, 0.08479778, 0.236133, -0.03931988, 0.09174894, 0.003018971,
        0.07413352, -0.02112952, 0.1532815, 0.06473448, 0.1631333, 0.08959691, 0.2524168,
        0.02928467, 0.146308, -0.1849522, -0.07122804, -0.2169226, -0.151595, 0.0, 0.0, 0.0, 0.0,
        -0.03923334, 0.1116838, -0.1363116, -0.072676, -0.1780662, -0.04122683, -0.1230633,
        -0.009379364, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    ];
    pub(super) const INPUT_GRADIENT: [f32; 36] = [
        0.02781335, -0.1174255, 0.07354563, 0.1168995, 0.3082548, -0.1184051, -0.002740477,
        -0.01122699, 0.002107559, -0.01267478, 0.004580899, -0.02885193, -0.03428411, 0.04099421,
        0.02000028, 0.06190705, -0.03521028, -0.04877824, 0.01108125, 0.06282922, -0.0465862, 0.0,
        0.0, 0.0, -0.09371468, -0.3520499, 0.1893634, 0.01991112, 0.01115195, -0.04286088, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0,
    ];
    pub(super) const FORWARD_WEIGHT_INPUT: [f32; 24] = [
        -0.07891775, -0.06223345, 0.04111935, -0.0009332802, -0.07969988, 0.04598988, -0.009713161,
        -0.03259488, 0.006815395, -0.07490992, 0.04727764, -0.01152255, 0.2389633, 0.01372272,
        -0.06426637, -0.5398318, 0.2373833, 0.07509447, -0.160964, -0.097931, 0.1708899,
        -0.03106602, 0.01114149, -0.04441731,
    ];
    pub(super) const FORWARD_WEIGHT_HIDDEN: [f32; 16] = [
        0.001280134, 0.002231968, 0.008096852, 0.001591798, 0.003391747, 0.001602256, -0.01111546,
        -0.02343116, -0.009592321, -0.006453877, 0.006772137, -0.04421302, 0.002794282,
        -0.001770987, 0.006752018, -0.001607334,
    ];
    pub(super) const FORWARD_BIAS: [f32; 8] = [
        0.002042737, -0.05363271, -0.02008308, -0.07701906, -0.1799696, -0.1680839, 0.04597059,
        -0.009601065,
    ];
    pub(super) const REVERSE_WEIGHT_INPUT: [f32; 24] = [
        -0.09062778, -0.03404825, -0.008974288, 0.0324007, 0.01463559, 0.1011183, 0.01144796,
        -0.006908008, -0.01230246, -0.03361768, 0.004467022, 0.07934592, 0.1822461, 0.009629024,
        -0.1349129, -0.5840789, 0.04088953, 0.5944786, -0.1314999, -0.000401454, 0.05086389,
        0.03766254, -0.004172624, 0.2117856,
    ];
    pub(super) const REVERSE_WEIGHT_HIDDEN: [f32; 16] = [
        -0.00158983, 0.00494622, 0.01210227, -0.00275709, -0.002132372, -0.0008379953, 0.001410256,
        0.003774173, 0.004347444, -0.01122337, 0.008432778, 0.0602421, 0.0007697551, 0.01001268,
        0.002952722, -0.007185436,
    ];
    pub(super) const REVERSE_BIAS: [f32; 8] = [
        0.03881724, -0.08376285, 0.01349372, 0.03148342, -0.09031965, 0.3845138, 0.0965395,
        -0.07018339,
    ];
}

const INPUT: usize = 3;
const HIDDEN: usize = 2;
const LENGTHS: [usize; 3] = [4, 2, 3];

fn formula(count: usize, (a, b, m): (usize, usize, usize), scale: f32) -> Vec<f32> {
    (0..count)
        .map(|k| (((k * a + b) % m) as f32 / m as f32 - 0.5) * scale)
        .collect()
}

/// From rows to columns.
fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns)
        .map(|at| values[at % rows * columns + at / rows])
        .collect()
}

fn close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() < 2e-6,
            "{what} {at}: {a} where PyTorch has {b}"
        );
    }
}

/// Gathers columns in the places of `packed` from a table by step and sample, or puts them back.
fn columns(packed: &PackedTexts, table: &[f32], width: usize) -> Vec<f32> {
    let mut out = vec![0.0; width * packed.columns()];
    for t in 0..packed.steps() {
        for place in 0..packed.active(t) {
            let from = (t * packed.samples() + packed.sample(place)) * width;
            let to = packed.column(t, place) * width;
            out[to..to + width].copy_from_slice(&table[from..from + width]);
        }
    }
    out
}

#[test]
fn outputs_and_gradients_equal_pytorch() {
    let packed = PackedTexts::new(&LENGTHS);
    let steps = packed.steps();
    let samples = packed.samples();
    let x = columns(
        &packed,
        &formula(steps * samples * INPUT, (41, 13, 113), 3.0),
        INPUT,
    );
    let slopes = columns(
        &packed,
        &formula(steps * samples * 2 * HIDDEN, (53, 7, 97), 2.0),
        2 * HIDDEN,
    );
    let mut parameters = Vec::new();
    let mut layers = Vec::new();
    for way in 0..2 {
        layers.push(LstmPlace::at(parameters.len(), INPUT, HIDDEN, way == 1));
        let gates = 4 * HIDDEN;
        parameters.extend(transposed(
            &formula(gates * INPUT, (37, 11 + way, 101), 1.6),
            gates,
            INPUT,
        ));
        parameters.extend(transposed(
            &formula(gates * HIDDEN, (29, 5 + way, 89), 1.6),
            gates,
            HIDDEN,
        ));
        parameters.extend(formula(gates, (17, 3 + way, 31), 1.0));
    }
    let mut pool = BufferPool::default();
    // Used buffers must not show through.
    pool.give(vec![7.0; 1000]);
    pool.give(vec![f32::NAN; 1000]);
    let mut output = vec![0.0; 2 * HIDDEN * packed.columns()];
    let block = |way: usize| OutputBlock {
        height: 2 * HIDDEN,
        first: way * HIDDEN,
    };
    let traces: Vec<LstmTrace> = layers
        .iter()
        .enumerate()
        .map(|(way, layer)| {
            layer.forward(&parameters, &x, &packed, &mut output, block(way), &mut pool)
        })
        .collect();
    close(
        &output,
        &columns(&packed, &oracle::OUTPUT, 2 * HIDDEN),
        "output",
    );
    let mut gradient = vec![0.0; parameters.len()];
    let mut back = vec![0.0; x.len()];
    for (way, (layer, trace)) in layers.iter().zip(traces).enumerate() {
        let wish = Some(&mut back[..]);
        let task = LstmBackward {
            parameters: &parameters,
            x: &x,
            packed: &packed,
            trace,
            output_gradient: &slopes,
            lanes: block(way),
        };
        layer.backward(task, &mut gradient, wish, &mut pool);
    }
    close(
        &back,
        &columns(&packed, &oracle::INPUT_GRADIENT, INPUT),
        "input gradient",
    );
    let expected: [(&[f32], &[f32], &[f32]); 2] = [
        (
            &oracle::FORWARD_WEIGHT_INPUT,
            &oracle::FORWARD_WEIGHT_HIDDEN,
            &oracle::FORWARD_BIAS,
        ),
        (
            &oracle::REVERSE_WEIGHT_INPUT,
            &oracle::REVERSE_WEIGHT_HIDDEN,
            &oracle::REVERSE_BIAS,
        ),
    ];
    for (layer, (input, hidden, bias)) in layers.iter().zip(expected) {
        close(
            &gradient[layer.weight_input.clone()],
            &transposed(input, 4 * HIDDEN, INPUT),
            "W_ih",
        );
        close(
            &gradient[layer.weight_hidden.clone()],
            &transposed(hidden, 4 * HIDDEN, HIDDEN),
            "W_hh",
        );
        close(&gradient[layer.bias.clone()], bias, "b");
    }
}
