#![no_main]
//! Arbitrary bytes as statistics that a worker sent: sums, or an error, never a panic and never
//! more memory than the bytes account for. What was read gives the same bytes again, and merges
//! with itself or says why not.

use efface::{LinearStatistics, Ridge};
use efface_engine::Statistics;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Statistics::from_bytes(bytes, None);
    let Ok(mut sums) = LinearStatistics::from_bytes(bytes) else {
        return;
    };
    assert_eq!(
        LinearStatistics::from_bytes(&sums.to_bytes()).ok().as_ref(),
        Some(&sums)
    );
    let other = sums.clone();
    let _ = sums.merge(&other);
    if sums.spec().width() < 16 {
        let _ = Ridge::new(1.0).fit_statistics(&sums);
    }
});
