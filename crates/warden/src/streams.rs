//! A stream of the package: at most the limit is kept, and one byte more is noticed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};

use lazaret_contract::limits::STREAM_BYTES_MAX;

use crate::record::StreamRecord;
use crate::sys;

/// What one look at a stream gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Nothing more for now.
    Waiting,
    /// The other end is closed.
    Ended,
}

/// The read end of a pipe and what came over it.
#[derive(Debug)]
pub struct StreamBuffer {
    pipe: File,
    kept: Vec<u8>,
    ended: bool,
}

impl StreamBuffer {
    /// Takes over a read end.
    ///
    /// # Errors
    /// What fcntl(2) says.
    pub fn new(pipe: File) -> io::Result<Self> {
        sys::set_nonblocking(pipe.as_fd())?;
        Ok(Self {
            pipe,
            kept: Vec::new(),
            ended: false,
        })
    }

    /// Reads what is there, up to `limit_bytes` and one more in all. A flood is
    /// stopped by not being read, never by an end of file (case D03).
    ///
    /// # Errors
    /// What read(2) says.
    pub fn read(&mut self, limit_bytes: usize) -> io::Result<Look> {
        let mut buffer = [0; 4096];
        loop {
            let room = (limit_bytes + 1)
                .saturating_sub(self.kept.len())
                .min(buffer.len());
            if self.ended || room == 0 {
                return Ok(if self.ended {
                    Look::Ended
                } else {
                    Look::Waiting
                });
            }
            match self.pipe.read(&mut buffer[..room]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(Look::Ended);
                }
                Ok(count) => {
                    self.kept.extend_from_slice(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Look::Waiting);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the other end is closed and everything has been read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// What has come so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.kept
    }

    /// Takes everything that has come so far out; what comes later is counted anew.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }

    /// Whether more than the limit of a run has come.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.kept.len() > STREAM_BYTES_MAX
    }

    /// How many bytes were counted: at most one more than the limit.
    #[must_use]
    pub fn counted_bytes(&self) -> u64 {
        u64::try_from(self.kept.len()).unwrap_or(u64::MAX)
    }

    /// For the record: the first bytes up to the limit.
    #[must_use]
    pub fn record(&self) -> StreamRecord {
        let kept = &self.kept[..self.kept.len().min(STREAM_BYTES_MAX)];
        StreamRecord {
            kept: kept.to_vec(),
            truncated: self.is_over_limit(),
        }
    }

    /// For a message: the text, bounded, with everything unprintable escaped.
    #[must_use]
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept[..self.kept.len().min(512)]);
        let mut shown = String::with_capacity(text.len());
        for character in text.trim_end().chars() {
            match character {
                '"' | '\'' => shown.push(character),
                other => shown.extend(other.escape_debug()),
            }
        }
        shown
    }
}

impl AsFd for StreamBuffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_stream_of_the_limit_passes_and_one_byte_more_is_noticed() {
        for (extra, over) in [(0, false), (1, true), (5000, true)] {
            let (read, mut write) = io::pipe().unwrap();
            let mut buffer = StreamBuffer::new(File::from(OwnedFd::from(read))).unwrap();
            write
                .write_all(&vec![b'x'; STREAM_BYTES_MAX + extra])
                .unwrap();
            assert_eq!(buffer.read(STREAM_BYTES_MAX).unwrap(), Look::Waiting);
            assert_eq!(buffer.is_over_limit(), over, "{extra}");
            assert_eq!(buffer.record().kept.len(), STREAM_BYTES_MAX);
            assert_eq!(buffer.record().truncated, over);
            assert_eq!(buffer.bytes().len(), STREAM_BYTES_MAX + extra.min(1));
        }
    }

    #[test]
    fn an_end_is_noticed_and_does_not_come_back() {
        let (read, write) = io::pipe().unwrap();
        let mut buffer = StreamBuffer::new(File::from(OwnedFd::from(read))).unwrap();
        assert_eq!(buffer.read(10).unwrap(), Look::Waiting);
        drop(write);
        assert_eq!(buffer.read(10).unwrap(), Look::Ended);
        assert_eq!(buffer.read(10).unwrap(), Look::Ended);
    }

    #[test]
    fn control_bytes_are_shown_inert() {
        let (read, mut write) = io::pipe().unwrap();
        let mut buffer = StreamBuffer::new(File::from(OwnedFd::from(read))).unwrap();
        write.write_all(b"a\x1b[31m \"b\"\n").unwrap();
        buffer.read(100).unwrap();
        assert_eq!(buffer.shown(), "a\\u{1b}[31m \"b\"");
    }
}
