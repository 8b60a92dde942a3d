//! Kernels that are compiled when they are first needed, for the card that is there.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

use crate::card::Card;
use crate::error::CudaError;

/// Threads of a block; `BLOCK` in the sources.
pub(crate) const BLOCK: u32 = 256;

/// Sources and the kernels in them, each with the kinds of its arguments: a place on the card (p),
/// a count (i), a number (f). A launch is compared with these, and a test compares these with the
/// sources.
pub(crate) const NETWORK: KernelSource = KernelSource {
    source: include_str!("kernels/network.cu"),
    kernels: &[
        ("lstm_forward", "pppppppppiiiii"),
        ("lstm_backward", "ppppppiiiii"),
        ("embed", "pppii"),
        ("mask_columns", "pppii"),
        ("multiply", "pppi"),
        ("add", "ppi"),
        ("fill_columns", "ppii"),
        ("fill", "pfi"),
        ("norm_forward", "ppppppif"),
        ("norm_backward", "ppppi"),
        ("pool_forward", "pppppiiii"),
        ("pool_backward", "ppppppiiii"),
        ("squash_forward", "pii"),
        ("squash_backward", "ppii"),
        ("cross_entropy", "ppppppii"),
        ("add_to_words", "pppppi"),
        ("lengths", "ppppi"),
        ("shrink", "pfi"),
        ("adam", "ppppffffi"),
    ],
};

/// The kernels of a pretrained encoder.
pub(crate) const BERT: KernelSource = KernelSource {
    source: include_str!("kernels/bert.cu"),
    kernels: &[
        ("embed_tokens", "pppppppif"),
        ("add_norm", "pppppif"),
        ("add_bias", "ppii"),
        ("bias_gelu", "ppii"),
        ("attention", "ppppif"),
        ("unit_mean", "ppppi"),
    ],
};

/// A source and what is in it.
pub(crate) struct KernelSource {
    source: &'static str,
    kernels: &'static [(&'static str, &'static str)],
}

/// One argument of a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument {
    /// An address on the card.
    Place(u64),
    Count(i32),
    Number(f32),
}

impl From<u64> for Argument {
    fn from(place: u64) -> Self {
        Self::Place(place)
    }
}

impl From<i32> for Argument {
    fn from(count: i32) -> Self {
        Self::Count(count)
    }
}

impl From<f32> for Argument {
    fn from(number: f32) -> Self {
        Self::Number(number)
    }
}

/// Compiled kernels.
#[derive(Debug)]
pub(crate) struct Kernels {
    functions: HashMap<&'static str, (CudaFunction, &'static str)>,
}

impl Kernels {
    /// Compiles a source for a card, with definitions such as `HEAD=32`.
    pub(crate) fn compile(
        context: &Arc<CudaContext>,
        source: &KernelSource,
        definitions: &[String],
    ) -> Result<Self, CudaError> {
        let (major, minor) = context
            .compute_capability()
            .map_err(CudaError::call("the capability of the card"))?;
        let mut options = vec![format!("-arch=compute_{major}{minor}")];
        options.extend(
            definitions
                .iter()
                .map(|definition| format!("-D{definition}")),
        );
        let options = CompileOptions {
            options,
            ..CompileOptions::default()
        };
        let code = compile_ptx_with_opts(source.source, options)
            .map_err(CudaError::call("the compilation of a kernel"))?;
        let module = context
            .load_module(code)
            .map_err(CudaError::call("the loading of kernels"))?;
        let functions = source.kernels.iter().map(|(name, kinds)| {
            let function = module
                .load_function(name)
                .map_err(CudaError::call("the loading of a kernel"))?;
            Ok((*name, (function, *kinds)))
        });
        Ok(Self {
            functions: functions.collect::<Result<_, CudaError>>()?,
        })
    }

    /// Runs a kernel over `items` threads, in blocks of [`BLOCK`].
    pub(crate) fn each(
        &self,
        card: &Card,
        name: &'static str,
        items: usize,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        if items == 0 {
            return Ok(());
        }
        let blocks = u32::try_from(items.div_ceil(BLOCK as usize));
        let blocks = blocks.map_err(CudaError::call("a launch of more than 2³² blocks"))?;
        self.blocks(card, name, ((blocks, 1, 1), BLOCK), arguments)
    }

    /// Runs a kernel in a grid of blocks of so many threads.
    pub(crate) fn blocks(
        &self,
        card: &Card,
        name: &'static str,
        (grid, threads): ((u32, u32, u32), u32),
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        let wrong = || CudaError::Call {
            what: "a launch",
            code: format!("{name} takes other arguments"),
        };
        let (function, kinds) = self.functions.get(name).ok_or_else(wrong)?;
        if !kinds.bytes().eq(arguments.iter().map(kind)) {
            return Err(wrong());
        }
        let mut launch = card.work.launch_builder(function);
        for argument in arguments {
            match argument {
                Argument::Place(place) => launch.arg(place),
                Argument::Count(count) => launch.arg(count),
                Argument::Number(number) => launch.arg(number),
            };
        }
        let config = LaunchConfig {
            grid_dim: grid,
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: number and kinds of the arguments are those of the kernel, as was compared above.
        // Whoever calls gives places that lie in memory that lives until the stream was waited for,
        // and counts that end within it.
        unsafe { launch.launch(config) }.map_err(CudaError::call("a launch"))?;
        Ok(())
    }
}

fn kind(argument: &Argument) -> u8 {
    match argument {
        Argument::Place(_) => b'p',
        Argument::Count(_) => b'i',
        Argument::Number(_) => b'f',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds of the arguments of every kernel of a source, read from its declarations.
    fn declared(source: &str) -> Vec<(String, String)> {
        let declarations = source.split("extern \"C\" __global__ void ").skip(1);
        let kind = |argument: &str| match argument {
            pointer if pointer.contains('*') => 'p',
            count if count.starts_with("int ") => 'i',
            number if number.starts_with("float ") => 'f',
            other => panic!("an argument of no kind: {other}"),
        };
        declarations
            .map(|text| {
                let (name, rest) = text.split_once('(').unwrap();
                let (arguments, _) = rest.split_once(')').unwrap();
                (
                    name.to_string(),
                    arguments
                        .split(',')
                        .map(|argument| kind(argument.trim()))
                        .collect(),
                )
            })
            .collect()
    }

    #[test]
    fn launches_are_compared_with_what_the_sources_declare() {
        for source in [NETWORK, BERT] {
            let listed: Vec<(String, String)> = source
                .kernels
                .iter()
                .map(|(name, kinds)| (name.to_string(), kinds.to_string()))
                .collect();
            assert_eq!(listed, declared(source.source));
        }
    }
}
