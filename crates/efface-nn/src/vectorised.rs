//! Loops with the widest instructions that the processor has. The core has the same for its own
//! loops, and keeps it to itself.

use pulp::{Arch, Simd, WithSimd};

/// A loop to be compiled once per instruction set. A bare closure would do, but it reaches pulp
/// through a shim that is not inlined, and then its body is compiled for the oldest processor.
struct VectorLoop<F>(F);

impl<F: FnMut()> WithSimd for VectorLoop<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        (self.0)();
    }
}

/// Runs a loop with the widest instructions at hand. The closure is to be marked
/// `#[inline(always)]`.
#[inline(always)]
pub(crate) fn vectorised(body: impl FnMut()) {
    Arch::new().dispatch(VectorLoop(body));
}
