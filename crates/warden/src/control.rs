//! The control pipe, on the warden's side: the controller's orders, in their order.
//!
//! A cancellation counts whatever else has come with it. The end of the pipe is the
//! end of the run: nobody would read its result.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};

use crate::ending::Ending;
use crate::frame::{Frame, FrameBuffer, HELLO_BYTES, Hello, Kind};
use crate::spec::{SPEC_SCHEMA, SpecRecord};
use crate::sys;

/// Orders that have come and are not carried out yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Orders {
    /// bwrap may be started.
    pub arm: bool,
    /// The package may run.
    pub release: bool,
}

/// The read end of the control pipe.
#[derive(Debug)]
pub struct Control {
    pipe: File,
    frames: FrameBuffer,
    /// What has come.
    pub orders: Orders,
}

/// What to run, whole.
#[derive(Debug)]
pub struct Order {
    /// The record.
    pub spec: SpecRecord,
    /// The package.
    pub package: Vec<u8>,
    /// The input.
    pub input: Vec<u8>,
}

fn lost(detail: impl ToString) -> Ending {
    Ending::ControllerLost {
        detail: detail.to_string(),
    }
}

/// Reads the greeting: the first thing that a warden does, with nothing to parse.
///
/// # Errors
/// What read(2) says, or another form.
pub fn read_hello(pipe: &mut File) -> io::Result<Hello> {
    let mut bytes = [0; HELLO_BYTES];
    pipe.read_exact(&mut bytes)?;
    Hello::decode(&bytes).map_err(io::Error::other)
}

impl Control {
    /// Takes over the pipe after the greeting.
    #[must_use]
    pub fn new(pipe: File) -> Self {
        Self {
            pipe,
            frames: FrameBuffer::of_commands(),
            orders: Orders::default(),
        }
    }

    /// Waits for what to run: the record, the package, the input, in this order.
    ///
    /// # Errors
    /// [`Ending::ControllerLost`] for anything else.
    pub fn read_order(&mut self) -> Result<Order, Ending> {
        let record = self.read_frame(Kind::Spec)?;
        let spec: SpecRecord = serde_json::from_slice(&record).map_err(lost)?;
        if spec.schema != SPEC_SCHEMA {
            return Err(lost("the order is of another version"));
        }
        let package = self.read_frame(Kind::Package)?;
        let input = self.read_frame(Kind::Input)?;
        sys::set_nonblocking(self.pipe.as_fd()).map_err(lost)?;
        Ok(Order {
            spec,
            package,
            input,
        })
    }

    fn read_frame(&mut self, wanted: Kind) -> Result<Vec<u8>, Ending> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.frames.next_frame().map_err(lost)? {
                Some(frame) if frame.kind == wanted => return Ok(frame.payload),
                Some(Frame {
                    kind: Kind::Cancel, ..
                }) => return Err(Ending::Cancelled),
                Some(frame) => return Err(lost(format!("{:?} came out of turn", frame.kind))),
                None => {}
            }
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Err(lost("the control pipe ended")),
                Ok(count) => self.frames.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }

    /// Takes notice of what has come, without waiting.
    ///
    /// # Errors
    /// [`Ending::Cancelled`]; [`Ending::ControllerLost`] for the end of the pipe or
    /// an order out of turn.
    pub fn read_commands(&mut self) -> Result<(), Ending> {
        let mut buffer = [0; 512];
        let mut ended = false;
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => {
                    ended = true;
                    break;
                }
                Ok(count) => self.frames.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(lost(error)),
            }
        }
        let mut orders = self.orders;
        while let Some(frame) = self.frames.next_frame().map_err(lost)? {
            match frame.kind {
                Kind::Arm if !orders.arm => orders.arm = true,
                Kind::Release if orders.arm && !orders.release => orders.release = true,
                Kind::Cancel => return Err(Ending::Cancelled),
                kind => return Err(lost(format!("{kind:?} came out of turn"))),
            }
        }
        if ended {
            return Err(lost("the control pipe ended"));
        }
        self.orders = orders;
        Ok(())
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
