//! What crosses the two pipes between controller and warden, byte by byte.
//!
//! First, on the control pipe, comes a [`Hello`] of fixed size: the warden reads it
//! while it may still be root, so there is nothing in it to parse. Then frames:
//! four bytes of length (little-endian, of the payload), one byte of kind, the
//! payload; a report has 32 bytes of authenticator behind it. Every kind has its
//! own bound. A frame that is too long, of an unknown kind or wrongly authenticated
//! ends the conversation; nothing is skipped.

use crate::token::{RunToken, TOKEN_BYTES};

/// The first eight bytes of a [`Hello`].
const HELLO_MAGIC: [u8; 8] = *b"LZWARD1\n";

/// Size of an encoded [`Hello`], in bytes.
pub const HELLO_BYTES: usize = 8 + TOKEN_BYTES + 8;

/// An id that stands for *stay who you are*; the kernel gives it to nobody.
const NO_ID: u32 = u32::MAX;

const HEADER_BYTES: usize = 5;

/// The uid and gid that a warden drops to when root starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunAs {
    /// The user.
    pub uid: u32,
    /// The group; there are no supplementary ones.
    pub gid: u32,
}

/// What the warden is told before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The secret of the run.
    pub token: RunToken,
    /// Whom to become, if started by root.
    pub run_as: Option<RunAs>,
}

impl Hello {
    /// The bytes for the control pipe.
    #[must_use]
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        let ids = self.run_as.map_or((NO_ID, NO_ID), |ids| (ids.uid, ids.gid));
        bytes[..8].copy_from_slice(&HELLO_MAGIC);
        bytes[8..40].copy_from_slice(self.token.as_bytes());
        bytes[40..44].copy_from_slice(&ids.0.to_le_bytes());
        bytes[44..].copy_from_slice(&ids.1.to_le_bytes());
        bytes
    }

    /// Reads the bytes back.
    ///
    /// # Errors
    /// [`FrameError::Hello`] for another magic, or for one id without the other.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Self, FrameError> {
        let mut token = [0; TOKEN_BYTES];
        let mut id = [0; 4];
        token.copy_from_slice(&bytes[8..40]);
        id.copy_from_slice(&bytes[40..44]);
        let uid = u32::from_le_bytes(id);
        id.copy_from_slice(&bytes[44..]);
        let gid = u32::from_le_bytes(id);
        if bytes[..8] != HELLO_MAGIC || (uid == NO_ID) != (gid == NO_ID) {
            return Err(FrameError::Hello);
        }
        let run_as = (uid != NO_ID).then_some(RunAs { uid, gid });
        Ok(Self {
            token: RunToken::from_bytes(token),
            run_as,
        })
    }
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Controller: what to run, as JSON.
    Spec = 0x01,
    /// Controller: the exact bytes of the package.
    Package = 0x02,
    /// Controller: the exact bytes of the input.
    Input = 0x03,
    /// Controller: bwrap may be started (step 5).
    Arm = 0x04,
    /// Controller: package code may run (step 9).
    Release = 0x05,
    /// Controller: end the run.
    Cancel = 0x06,
    /// Warden: staged, waiting to be armed.
    Staged = 0x81,
    /// Warden: at the barrier, launch recorded, waiting for release.
    Launched = 0x82,
    /// Warden: the end.
    Outcome = 0x83,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Spec,
        Self::Package,
        Self::Input,
        Self::Arm,
        Self::Release,
        Self::Cancel,
        Self::Staged,
        Self::Launched,
        Self::Outcome,
    ];

    /// The byte that stands for it.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self as u8
    }

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.byte() == byte)
    }

    /// Largest payload of this kind, in bytes.
    #[must_use]
    pub const fn payload_bytes_max(self) -> usize {
        match self {
            Self::Spec => 64 * 1024,
            // Larger than what is accepted, so that "one byte more" is a refusal
            // with a reason instead of a broken conversation.
            Self::Package | Self::Input => 64 * 1024,
            Self::Arm | Self::Release | Self::Cancel => 0,
            Self::Staged | Self::Launched | Self::Outcome => 256 * 1024,
        }
    }

    /// Whether the warden sends it, authenticated.
    #[must_use]
    pub const fn is_report(self) -> bool {
        matches!(self, Self::Staged | Self::Launched | Self::Outcome)
    }
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not the greeting of this version.
    #[error("greeting has another form than this version's")]
    Hello,
    /// A kind that does not exist, or does not travel in this direction.
    #[error("frame of kind {0:#04x} is not one of this direction")]
    Kind(u8),
    /// Longer than its kind allows.
    #[error("frame of {found_bytes} bytes is over its limit of {limit_bytes} bytes")]
    Size {
        /// The length that it states, in bytes.
        found_bytes: usize,
        /// What its kind allows, in bytes.
        limit_bytes: usize,
    },
    /// Not authenticated by the run token.
    #[error("report is not authenticated by the run token")]
    Authenticator,
}

/// Encodes a command of the controller.
///
/// # Errors
/// [`FrameError::Kind`] for a report, [`FrameError::Size`] over the bound.
pub fn encode_command(kind: Kind, payload: &[u8]) -> Result<Vec<u8>, FrameError> {
    if kind.is_report() {
        return Err(FrameError::Kind(kind.byte()));
    }
    encode(kind, payload)
}

/// Encodes a report of the warden, with its authenticator.
///
/// # Errors
/// [`FrameError::Kind`] for a command, [`FrameError::Size`] over the bound.
pub fn encode_report(token: &RunToken, kind: Kind, payload: &[u8]) -> Result<Vec<u8>, FrameError> {
    if !kind.is_report() {
        return Err(FrameError::Kind(kind.byte()));
    }
    let mut bytes = encode(kind, payload)?;
    bytes.extend_from_slice(&token.authenticate(kind.byte(), payload));
    Ok(bytes)
}

fn encode(kind: Kind, payload: &[u8]) -> Result<Vec<u8>, FrameError> {
    let limit_bytes = kind.payload_bytes_max();
    let too_long = FrameError::Size {
        found_bytes: payload.len(),
        limit_bytes,
    };
    if payload.len() > limit_bytes {
        return Err(too_long);
    }
    let length = u32::try_from(payload.len()).map_err(|_| too_long)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len() + TOKEN_BYTES);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.push(kind.byte());
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

/// Bytes as they arrive, until they are whole frames of one direction.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    /// The token, on the side that reads reports.
    token: Option<RunToken>,
}

impl FrameBuffer {
    /// For the warden, which reads commands.
    #[must_use]
    pub fn of_commands() -> Self {
        Self {
            bytes: Vec::new(),
            token: None,
        }
    }

    /// For the controller, which reads reports and believes only authenticated ones.
    #[must_use]
    pub fn of_reports(token: RunToken) -> Self {
        Self {
            bytes: Vec::new(),
            token: Some(token),
        }
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next whole frame, if there is one.
    ///
    /// # Errors
    /// [`FrameError`]; the conversation is over then.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((header, rest)) = self.bytes.split_at_checked(HEADER_BYTES) else {
            return Ok(None);
        };
        let [a, b, c, d, kind_byte] = *header else {
            return Ok(None);
        };
        let stated = u32::from_le_bytes([a, b, c, d]);
        let kind = Kind::of(kind_byte)
            .filter(|kind| kind.is_report() == self.token.is_some())
            .ok_or(FrameError::Kind(kind_byte))?;
        let limit_bytes = kind.payload_bytes_max();
        let length = usize::try_from(stated).unwrap_or(usize::MAX);
        if length > limit_bytes {
            return Err(FrameError::Size {
                found_bytes: length,
                limit_bytes,
            });
        }
        let tail = if self.token.is_some() { TOKEN_BYTES } else { 0 };
        let Some((payload, rest)) = rest.split_at_checked(length) else {
            return Ok(None);
        };
        let Some((authenticator, _)) = rest.split_at_checked(tail) else {
            return Ok(None);
        };
        if let Some(token) = &self.token
            && !token.accepts(kind.byte(), payload, authenticator)
        {
            return Err(FrameError::Authenticator);
        }
        let frame = Frame {
            kind,
            payload: payload.to_vec(),
        };
        self.bytes.drain(..HEADER_BYTES + length + tail);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: RunToken = RunToken::from_bytes([9; 32]);

    fn any_command() -> impl Strategy<Value = (Kind, Vec<u8>)> {
        (0_usize..6, proptest::collection::vec(any::<u8>(), 0..300)).prop_map(|(index, payload)| {
            let kind = Kind::ALL[index];
            (
                kind,
                if kind.payload_bytes_max() == 0 {
                    Vec::new()
                } else {
                    payload
                },
            )
        })
    }

    proptest! {
        #[test]
        fn commands_come_out_as_they_went_in_however_they_are_cut(
            commands in proptest::collection::vec(any_command(), 0..6), cut in 1_usize..40,
        ) {
            let mut bytes = Vec::new();
            for (kind, payload) in &commands {
                bytes.extend(encode_command(*kind, payload).unwrap());
            }
            let mut buffer = FrameBuffer::of_commands();
            let mut seen = Vec::new();
            for piece in bytes.chunks(cut) {
                buffer.push(piece);
                while let Some(frame) = buffer.next_frame().unwrap() {
                    seen.push((frame.kind, frame.payload));
                }
            }
            prop_assert_eq!(seen, commands);
        }

        #[test]
        fn any_changed_byte_of_a_report_is_noticed(
            payload in proptest::collection::vec(any::<u8>(), 0..100), at in any::<usize>(), flip in 1_u8..,
        ) {
            let mut bytes = encode_report(&TOKEN, Kind::Outcome, &payload).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            let mut buffer = FrameBuffer::of_reports(TOKEN);
            buffer.push(&bytes);
            // A changed length may also ask for more bytes than there are.
            prop_assert!(!matches!(buffer.next_frame(), Ok(Some(_))));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut commands = FrameBuffer::of_commands();
            commands.push(&bytes);
            while let Ok(Some(_)) = commands.next_frame() {}
            let mut reports = FrameBuffer::of_reports(TOKEN);
            reports.push(&bytes);
            prop_assert!(!matches!(reports.next_frame(), Ok(Some(_))));
        }
    }

    #[test]
    fn a_payload_of_the_bound_passes_and_one_byte_more_does_not() {
        let limit = Kind::Package.payload_bytes_max();
        assert!(encode_command(Kind::Package, &vec![0; limit]).is_ok());
        assert_eq!(
            encode_command(Kind::Package, &vec![0; limit + 1]),
            Err(FrameError::Size {
                found_bytes: limit + 1,
                limit_bytes: limit
            })
        );
        let mut buffer = FrameBuffer::of_commands();
        buffer.push(&[1, 0, 0, 0, Kind::Arm.byte(), 0]);
        assert_eq!(
            buffer.next_frame(),
            Err(FrameError::Size {
                found_bytes: 1,
                limit_bytes: 0
            })
        );
    }

    #[test]
    fn a_report_is_no_command_and_a_command_no_report() {
        let mut buffer = FrameBuffer::of_commands();
        buffer.push(&encode_report(&TOKEN, Kind::Staged, b"{}").unwrap());
        assert_eq!(
            buffer.next_frame(),
            Err(FrameError::Kind(Kind::Staged.byte()))
        );
        let mut buffer = FrameBuffer::of_reports(TOKEN);
        buffer.push(&encode_command(Kind::Arm, b"").unwrap());
        assert_eq!(buffer.next_frame(), Err(FrameError::Kind(Kind::Arm.byte())));
    }

    #[test]
    fn a_greeting_reads_back_and_half_an_identity_is_refused() {
        for run_as in [None, Some(RunAs { uid: 7, gid: 8 })] {
            let hello = Hello {
                token: TOKEN,
                run_as,
            };
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
        let mut half = Hello {
            token: TOKEN,
            run_as: Some(RunAs { uid: 7, gid: 8 }),
        }
        .encode();
        half[44..].fill(0xff);
        assert_eq!(Hello::decode(&half), Err(FrameError::Hello));
        let mut other = Hello {
            token: TOKEN,
            run_as: None,
        }
        .encode();
        other[0] ^= 1;
        assert_eq!(Hello::decode(&other), Err(FrameError::Hello));
    }
}
