//! Installation and review: how bytes become known. Neither gives authority.

use lazaret_contract::digest::Sha256Digest;

use super::{PackageState, check_named, check_not_denied};
use crate::command::{Actor, Context, NewReview, NewVersion};
use crate::event::Change;
use crate::package::{Provenance, Version, VersionIdentity, VersionState};
use crate::refusal::Refusal;
use crate::review::{Difference, Review, ReviewKind};

pub fn install(
    state: &PackageState,
    context: &Context<'_>,
    new: &NewVersion,
) -> Result<Vec<Change>, Refusal> {
    check_named(state, context, &new.named)?;
    check_identity(state, context, new)?;
    check_not_denied(context.tombstones, &new.identity)?;
    let was_active = match state.versions.get(&new.identity.content) {
        None => false,
        Some(known) if known.state != VersionState::Uninstalled => {
            return Err(Refusal::AlreadyInstalled);
        }
        Some(known) if known.identity == new.identity && known.runtime == new.runtime => {
            known.was_active
        }
        Some(_) => return Err(Refusal::DigestsDiffer),
    };
    check_name_is_free(state, &new.identity)?;
    Ok(vec![Change::InstallVersion(Version {
        identity: new.identity.clone(),
        runtime: new.runtime.clone(),
        capability: new.capability.clone(),
        provenance: new.provenance,
        state: VersionState::Installed,
        was_active,
        newest_review: None,
    })])
}

/// Package, reserved bytes and derived capability are as they must be.
fn check_identity(
    state: &PackageState,
    context: &Context<'_>,
    new: &NewVersion,
) -> Result<(), Refusal> {
    if new.identity.package != state.package {
        return Err(Refusal::OtherPackage);
    }
    if let Some(fixed) = context.policy.fixed_for(&new.identity.package) {
        if new.identity.content != fixed.content {
            return Err(Refusal::FixedIdentityOtherBytes);
        }
        return if new.capability == fixed.capability {
            Ok(())
        } else {
            Err(Refusal::CapabilityNotDerived)
        };
    }
    if context
        .policy
        .fixed
        .iter()
        .any(|fixed| fixed.capability == new.capability)
    {
        return Err(Refusal::CapabilityReserved);
    }
    let prefix = format!("pack.{}.", new.identity.package);
    let adapter = new
        .capability
        .as_str()
        .strip_prefix(&prefix)
        .and_then(|rest| rest.strip_suffix(".v1"));
    match adapter {
        Some(adapter) if !adapter.is_empty() && !adapter.contains('.') => Ok(()),
        _ => Err(Refusal::CapabilityNotDerived),
    }
}

fn check_name_is_free(state: &PackageState, identity: &VersionIdentity) -> Result<(), Refusal> {
    let taken = state.versions.values().find(|known| {
        known.identity.version == identity.version && known.identity.content != identity.content
    });
    match taken {
        Some(known) => Err(Refusal::VersionNameTaken {
            content: known.identity.content,
        }),
        None => Ok(()),
    }
}

pub fn review(
    state: &PackageState,
    context: &Context<'_>,
    actor: &Actor,
    new: &NewReview,
) -> Result<Vec<Change>, Refusal> {
    check_named(state, context, &new.named)?;
    let version = state.version(&new.shown.content)?;
    if version.state == VersionState::Uninstalled {
        return Err(Refusal::NotInstalled);
    }
    if version.identity != new.shown {
        return Err(Refusal::DigestsDiffer);
    }
    check_not_denied(context.tombstones, &version.identity)?;
    if version.provenance == Provenance::UnsignedLocal && !new.unsigned_acknowledged {
        return Err(Refusal::UnsignedNotAcknowledged);
    }
    if state.reviews.contains_key(&new.id) {
        return Err(Refusal::ReviewExists);
    }
    if let ReviewKind::Delta(difference) = &new.kind {
        check_difference(state, version, difference)?;
    }
    let row = Review {
        id: new.id.clone(),
        identity: version.identity.clone(),
        kind: new.kind.clone(),
        unsigned_acknowledged: new.unsigned_acknowledged,
        goal: new.named.goal.clone(),
        goal_revision: new.named.goal_revision,
        generation: state.pointer.generation,
        reviewer: actor.owner.clone(),
        session: actor.session.clone(),
        at: *context.now,
    };
    let updated = Version {
        state: state_after_review(version.state),
        newest_review: Some(new.id.clone()),
        ..version.clone()
    };
    Ok(vec![
        Change::InsertReview(row),
        Change::UpdateVersion(updated),
    ])
}

/// A version in force stays in force: its pointer keeps the review that it has.
const fn state_after_review(state: VersionState) -> VersionState {
    match state {
        VersionState::Active | VersionState::Paused => state,
        _ => VersionState::Reviewed,
    }
}

/// The difference starts from what the pointer points at and says what the digests say.
fn check_difference(
    state: &PackageState,
    to: &Version,
    difference: &Difference,
) -> Result<(), Refusal> {
    let base: Option<Sha256Digest> = state.pointer.target.as_ref().map(|target| target.content);
    if base != Some(difference.from) {
        return Err(Refusal::DeltaFromOtherVersion);
    }
    let from = state.version(&difference.from)?;
    let code_differs = from.identity.code != to.identity.code;
    let authority_differs = from.identity.authority != to.identity.authority;
    let consistent = difference.code_changed == code_differs
        && difference.authority_changed == authority_differs
        && (authority_differs || !difference.authority_widened);
    if consistent {
        Ok(())
    } else {
        Err(Refusal::DeltaMisstates)
    }
}
