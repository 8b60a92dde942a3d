//! The processor that measures, and whether it is quiet: printed with the tables of every
//! benchmark.

use std::time::Instant;

/// Up to this spread a machine counts as quiet.
const QUIET: f64 = 0.1;

/// Prints the processor, its instructions, its cores, and how far repeated timings lie apart.
pub(crate) fn print() {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map_or("", |(_, value)| value.trim())
    };
    let wide = [
        "avx512f",
        "avx512_vnni",
        "amx_tile",
        "avx2",
        "fma",
        "sha_ni",
        "asimd",
    ];
    let flags: Vec<&str> = field("flags").split(' ').collect();
    let has: Vec<&str> = wide
        .into_iter()
        .filter(|wide| flags.contains(wide))
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let spread = spread();
    let verdict = if spread <= QUIET {
        "quiet"
    } else {
        "busy: read ratios within a run"
    };
    println!(
        "\n{}, {cores} cores, {}; spread of repeated timings {:.0} %: {verdict}",
        field("model name"),
        has.join(" "),
        100.0 * spread
    );
}

/// (The time that nine of ten runs of one short computation stay below) ÷ (the median) − 1.
fn spread() -> f64 {
    let values: Vec<f64> = (0..4096).map(f64::from).collect();
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..20 {
                std::hint::black_box(
                    std::hint::black_box(&values)
                        .iter()
                        .map(|x| x * x)
                        .sum::<f64>(),
                );
            }
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[180] / times[100] - 1.0
}
