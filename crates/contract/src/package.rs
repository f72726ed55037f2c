//! Packages: their two documents, their digests, and everything that is wrong
//! with one, without running anything of it.
//!
//! A package is bytes until an operator has approved its exact digests. This
//! module reads those bytes, held by somebody else, and never imports, compiles
//! or evaluates a line of `adapter.py`. It has no default and repairs nothing: a
//! package is either exactly what the contract says, or it is refused with all
//! its problems.

mod descriptor;
mod difference;
mod digests;
mod files;
mod inspect;
mod manifest;
mod resources;
mod seal;
mod vector;

pub use descriptor::{Contract, Descriptor};
pub use difference::{Change, Subject, compare};
pub use digests::{PackageDigests, authority_digest, content_digest, dependency_digest};
pub use files::{PackageFiles, PathError, check_path};
pub use inspect::{BindingCheck, DenialKeys, Package, inspect};
pub use manifest::{FileEntry, Manifest, VERSION_MAX};
pub use resources::resources;
pub use seal::{UNBOUND, seal};
pub use vector::Vector;

/// The manifest's path within a package.
pub const MANIFEST_PATH: &str = "manifest.json";

/// The descriptor's path within a package.
pub const DESCRIPTOR_PATH: &str = "adapters/adapter.json";

/// The code's path within a package.
pub const CODE_PATH: &str = "adapter.py";

/// Where golden vectors lie within a package.
pub const VECTORS_DIRECTORY: &str = "evals";

/// Most golden vectors of a package (DESIGN.md section 1).
pub const VECTORS_MAX: usize = 3;
