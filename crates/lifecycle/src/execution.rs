//! Which capability may run which package, and by which path.
//!
//! The reserved packages run by their own capability as native jobs and by no other path
//! (ADR-013); everything else runs by the capability that is derived from its package.

use crate::command::Policy;
use crate::ids::{Capability, PackageId};

/// A way in which somebody asks for a package to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionPath {
    /// A native job on the WorkBoard, isolated by a profile.
    NativeJob,
    /// The generic dispatch of authored adapters.
    Generic,
    /// Trusted processing on the host, without isolation. Lazaret has none; asking is refused.
    Local,
}

/// Why a package may not be run so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionRefusal {
    /// A reserved package was to run by another capability or by generic dispatch.
    #[error("the package is reserved: it runs by its own capability alone")]
    FixedIdentityGeneric,
    /// A package was to run on the host.
    #[error("no package runs outside its profile")]
    Local,
    /// A reserved capability was asked of another package.
    #[error("the capability belongs to a reserved package")]
    CapabilityShadowed,
    /// The capability is not derived from the package.
    #[error("the capability is not this package's")]
    CapabilityOfOtherPackage,
}

impl ExecutionRefusal {
    /// A stable code for receipts and interfaces.
    pub const fn code(self) -> &'static str {
        match self {
            Self::FixedIdentityGeneric => "fixed_identity_generic_execution",
            Self::Local => "local_execution",
            Self::CapabilityShadowed => "capability_shadowed",
            Self::CapabilityOfOtherPackage => "capability_of_other_package",
        }
    }
}

/// Whether `capability` may run `package` by `path`.
///
/// # Errors
/// Why not.
pub fn check_execution(
    policy: &Policy,
    package: &PackageId,
    capability: &Capability,
    path: ExecutionPath,
) -> Result<(), ExecutionRefusal> {
    if path == ExecutionPath::Local {
        return Err(match policy.fixed_for(package) {
            Some(_) => ExecutionRefusal::FixedIdentityGeneric,
            None => ExecutionRefusal::Local,
        });
    }
    if let Some(fixed) = policy.fixed_for(package) {
        let own = fixed.capability == *capability && path == ExecutionPath::NativeJob;
        return if own {
            Ok(())
        } else {
            Err(ExecutionRefusal::FixedIdentityGeneric)
        };
    }
    if policy
        .fixed
        .iter()
        .any(|fixed| fixed.capability == *capability)
    {
        return Err(ExecutionRefusal::CapabilityShadowed);
    }
    let prefix = format!("pack.{package}.");
    let adapter = capability
        .as_str()
        .strip_prefix(&prefix)
        .and_then(|rest| rest.strip_suffix(".v1"));
    match adapter {
        Some(adapter) if !adapter.is_empty() && !adapter.contains('.') => Ok(()),
        _ => Err(ExecutionRefusal::CapabilityOfOtherPackage),
    }
}
