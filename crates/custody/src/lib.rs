//! Files, directories and bytes that somebody else may have written.
//!
//! This crate owns every access to a file system that has to hold against other
//! users, other programs and untrusted packages: a directory is opened once and
//! held, everything below it is reached through that descriptor, and what is read
//! comes out as owned bytes. DESIGN.md sections 3 (steps 3 and 13) and 4.
//!
//! It must never follow a symbolic link inside a held directory, never open a FIFO
//! or a device for reading, never trust a size that it did not count itself, never
//! run, import or interpret what it reads, and never fall back to a weaker way of
//! opening when the kernel refuses the stronger one.
//!
//! | module | holds |
//! |---|---|
//! | [`name`] | which relative names exist for us at all |
//! | [`error`] | what was refused, where, and what to do about it |
//! | [`facts`] | what `fstat` says of a descriptor |
//! | [`held`] | [`HeldDir`], [`HeldFile`] and the rules for files |
//! | [`ancestry`] | who could replace a directory above |
//! | [`filesystem`] | file systems that keep their promises, by `statfs` magic |
//! | [`durable`] | whole files or no file, after a power loss too |
//! | [`run_dir`] | the 0700 directory of one run and its single output inode |
//! | [`package`] | an untrusted package directory as owned bytes |

#![forbid(unsafe_code)]

pub mod ancestry;
pub mod durable;
pub mod error;
pub mod facts;
pub mod filesystem;
pub mod held;
pub mod name;
pub mod package;
pub mod run_dir;

mod resolve;

pub use ancestry::Trust;
pub use error::{CustodyError, Refusal};
pub use facts::{FileFacts, FileKind};
pub use held::{FileRules, HeldDir, HeldFile, Owner};
pub use name::{NameError, RelativeName};
pub use package::{PackageBytes, PackageReader};
pub use resolve::{Resolver, openat2_answers};
pub use run_dir::{RunDir, RunOwner};
