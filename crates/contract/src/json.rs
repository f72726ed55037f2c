//! Strict JSON: one parser, one value type, one writer.
//!
//! This is the only way in which Lazaret reads JSON that it did not write
//! itself: inputs and outputs of runs, manifests, descriptors, schemas,
//! vectors. The same rules are implemented a second time in Python, in the
//! module `lazaret` of the closure, on CPython's C scanner; the two must agree
//! on every verdict and every byte, and the conformance corpus proves it.
//!
//! It must never guess: no encoding is sniffed, no byte order mark dropped, no
//! duplicate key merged, no number rounded to another one, no lone surrogate
//! replaced. It must never recurse on input, nor panic on any bytes.
//!
//! The order in which faults are looked for is fixed, so that both sides name
//! the same one: size, UTF-8, byte order mark; then the first fault met while
//! reading from left to right (syntax, a duplicate key at the end of its
//! object, a number that is not finite, an integer of too many digits, more
//! nesting than is followed at all); then, for a document that parsed, depth,
//! number of nodes and lone surrogates, in this order.

mod error;
mod number;
mod parse;
mod text;
mod value;
mod write;

pub use error::{JsonError, JsonErrorKind};
pub use number::{Float, Integer};
pub use parse::{Bounds, parse, parse_bounded};
pub use value::{Object, Value};
pub use write::{write_compact, write_pretty};
