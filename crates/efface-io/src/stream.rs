//! A stream, such as standard input, as a source of several passes. Its first bytes are kept, which
//! is enough to look at a header or at some rows. A pass that goes further first puts all of the
//! stream into a temporary file without a name, unless it is said that this pass is the only one.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes at the beginning that are kept.
const HEAD: usize = 8 << 20;

/// Bytes that are copied at once.
const COPY: usize = 1 << 20;

/// A stream that clones share.
#[derive(Clone)]
pub(crate) struct StreamInput(Arc<Mutex<StreamState>>);

struct StreamState {
    stream: Box<dyn Read + Send>,
    head: Vec<u8>,
    /// Bytes taken from the stream.
    taken: u64,
    /// What comes behind the head, once it is all there.
    rest: Option<File>,
    /// Whether no pass will follow the one that goes beyond the head.
    once: bool,
}

impl fmt::Debug for StreamInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamInput")
    }
}

/// That a stream was read, and cannot be read again.
pub(crate) fn is_read_once(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotSeekable
}

impl StreamInput {
    pub(crate) fn new(stream: Box<dyn Read + Send>) -> Self {
        let state = StreamState {
            stream,
            head: Vec::new(),
            taken: 0,
            rest: None,
            once: false,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is not one byte.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        Ok(self.read_at(0, &mut [0])? == 0)
    }

    /// The next pass is the only one.
    pub(crate) fn read_once(&self) {
        self.state().once = true;
    }

    /// A pass from the start.
    pub(crate) fn pass(&self) -> StreamPass {
        StreamPass {
            stream: self.clone(),
            at: 0,
        }
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        let head = state.head.len() as u64;
        if at < head {
            let kept = &state.head[at as usize..];
            let count = kept.len().min(buffer.len());
            buffer[..count].copy_from_slice(&kept[..count]);
            return Ok(count);
        }
        let grows = state.head.len() < HEAD && state.taken == head && state.rest.is_none();
        if !grows && !state.once && state.rest.is_none() {
            state.keep_rest()?;
        }
        if let Some(rest) = &mut state.rest {
            rest.seek(SeekFrom::Start(at - head))?;
            return rest.read(buffer);
        }
        if at != state.taken {
            return Err(io::ErrorKind::NotSeekable.into());
        }
        let room = if grows {
            HEAD - state.head.len()
        } else {
            usize::MAX
        };
        let room = room.min(buffer.len());
        let count = state.stream.read(&mut buffer[..room])?;
        state.taken += count as u64;
        if grows {
            state.head.extend_from_slice(&buffer[..count]);
        }
        Ok(count)
    }
}

impl StreamState {
    fn keep_rest(&mut self) -> io::Result<()> {
        if self.taken != self.head.len() as u64 {
            return Err(io::ErrorKind::NotSeekable.into());
        }
        let mut file = tempfile::tempfile()?;
        let mut buffer = vec![0; COPY];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => file.write_all(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.rest = Some(file);
        Ok(())
    }
}

/// A pass over a stream.
pub(crate) struct StreamPass {
    stream: StreamInput,
    at: u64,
}

impl Read for StreamPass {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read_at(self.at, buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long() -> Vec<u8> {
        (0..HEAD + 3 * COPY).map(|at| (at % 251) as u8).collect()
    }

    fn whole(stream: &StreamInput) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        stream.pass().read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn a_stream_is_read_again_unless_it_was_to_be_read_once() {
        let bytes = long();
        let stream = StreamInput::new(Box::new(io::Cursor::new(bytes.clone())));
        assert!(!stream.is_empty().unwrap());
        assert!(whole(&stream).unwrap() == bytes && whole(&stream).unwrap() == bytes);
        let stream = StreamInput::new(Box::new(io::Cursor::new(bytes.clone())));
        // A look at the beginning is no pass.
        stream.pass().read_exact(&mut [0; 1000]).unwrap();
        stream.read_once();
        assert!(whole(&stream).unwrap() == bytes);
        assert!(is_read_once(&whole(&stream).unwrap_err()));
        let short = StreamInput::new(Box::new(io::Cursor::new(b"abc")));
        short.read_once();
        assert!(whole(&short).unwrap() == b"abc" && whole(&short).unwrap() == b"abc");
        assert!(StreamInput::new(Box::new(io::empty())).is_empty().unwrap());
    }
}
