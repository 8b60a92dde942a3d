//! The processor that measures, how quiet it is, and what times say.

use std::time::Instant;

/// The processor, its instructions and the cores that this process may use.
pub(crate) fn describe() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map_or("", |(_, value)| value.trim())
            .to_string()
    };
    let flags = field("flags");
    let wide = ["avx512f", "avx512_vnni", "amx_tile", "avx2", "fma", "neon"];
    let has: Vec<&str> = wide
        .into_iter()
        .filter(|wide| flags.split(' ').any(|flag| flag == *wide))
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    format!(
        "{}, {} cores, {}",
        field("model name"),
        cores,
        has.join(" ")
    )
}

/// Up to this spread a machine counts as quiet.
pub(crate) const QUIET: f64 = 0.1;

/// The spread of one short computation repeated: (the time that nine of ten stay below) ÷ (the
/// median) − 1. A machine that has other work is above 0.1, and then only ratios within a run are
/// worth reading.
pub(crate) fn spread() -> f64 {
    let values: Vec<f64> = (0..4096).map(|i| f64::from(i) * 1e-3).collect();
    let mut times = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        let mut sum = 0.0;
        for _ in 0..50 {
            sum += std::hint::black_box(&values)
                .iter()
                .map(|x| x * x)
                .sum::<f64>();
        }
        std::hint::black_box(sum);
        times.push(start.elapsed().as_secs_f64());
    }
    let times = TimeSummary::of(times);
    times.p90 / times.p50 - 1.0
}

/// Seconds, sorted.
pub(crate) struct TimeSummary {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) mean: f64,
    pub(crate) worst: f64,
}

impl TimeSummary {
    pub(crate) fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            mean: times.iter().sum::<f64>() / times.len() as f64,
            worst: at(1.0),
        }
    }
}

/// Seconds to move d×d numbers once through memory, to the processor and back: the median of
/// several passes over a matrix that no cache holds, as a d×d one is when another has been read
/// since.
pub(crate) fn factor_pass(width: usize) -> f64 {
    let square = width * width;
    let copies = (256_000_000 / (square * 8)).max(2);
    let mut matrices: Vec<Vec<f64>> = (0..copies).map(|_| vec![1.0f64; square]).collect();
    let mut times = Vec::new();
    for round in 0..3 * copies {
        let matrix = &mut matrices[round % copies];
        let start = RequestWatch::start(1);
        for x in matrix.iter_mut() {
            *x = 0.999 * *x + 1e-9;
        }
        times.push(start.seconds());
        std::hint::black_box(matrix[round % square]);
    }
    TimeSummary::of(times).p50
}

/// Measures how long this thread is on a processor, which other programs on the machine do not
/// lengthen; with more threads than one the time of day.
pub(crate) struct RequestWatch {
    begin: Instant,
    processor: Option<f64>,
}

impl RequestWatch {
    pub(crate) fn start(threads: usize) -> Self {
        Self {
            processor: (threads == 1).then(processor_seconds),
            begin: Instant::now(),
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        match self.processor {
            Some(before) => processor_seconds() - before,
            None => self.begin.elapsed().as_secs_f64(),
        }
    }
}

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
