//! The transitions that take authority away. None of them asks for an approval, a Goal, or a
//! state of the pointer that a concurrent change could spoil.

use super::{PackageState, check_generation};
use crate::command::{Actor, Context, Quarantine, Revocation, Withdrawal};
use crate::event::{Change, Decision};
use crate::package::{Pointer, Standing, Version, VersionState};
use crate::refusal::Refusal;
use crate::tombstone::{Tombstone, TombstoneCause};

pub fn pause(state: &PackageState, withdrawal: &Withdrawal) -> Result<Vec<Change>, Refusal> {
    check_generation(state, withdrawal.generation)?;
    match state.pointer.standing {
        Standing::Active => {}
        Standing::Paused => return Err(Refusal::AlreadyPaused),
        _ => return Err(Refusal::NothingInForce),
    }
    let target = state.pointer.in_force().ok_or(Refusal::NothingInForce)?;
    let version = state.version(&target.content)?;
    let generation = state.next_generation()?;
    Ok(vec![
        Change::UpdateVersion(Version {
            state: VersionState::Paused,
            ..version.clone()
        }),
        Change::SetPointer(Pointer {
            generation,
            standing: Standing::Paused,
            paused_at: Some(generation),
            ..state.pointer.clone()
        }),
    ])
}

pub fn revoke(
    state: &PackageState,
    context: &Context<'_>,
    actor: &Actor,
    revocation: &Revocation,
) -> Result<Vec<Change>, Refusal> {
    check_generation(state, revocation.generation)?;
    let version = state.version(&revocation.content)?;
    if version.state == VersionState::Revoked {
        return Err(Refusal::AlreadyRevoked);
    }
    let identity = &version.identity;
    let tombstone = Tombstone {
        id: revocation.tombstone.clone(),
        package: identity.package.clone(),
        version: identity.version.clone(),
        content: identity.content,
        code: identity.code,
        cause: TombstoneCause::Revocation,
        actor: Some(actor.owner.clone()),
        reason: revocation.reason.clone(),
        observed: None,
        at: *context.now,
    };
    bury(state, &tombstone)
}

pub fn quarantine(
    state: &PackageState,
    context: &Context<'_>,
    found: &Quarantine,
) -> Result<Vec<Change>, Refusal> {
    let version = state.version(&found.content)?;
    match version.state {
        VersionState::Revoked => return Err(Refusal::AlreadyRevoked),
        VersionState::Quarantined => return Err(Refusal::AlreadyQuarantined),
        _ => {}
    }
    let identity = &version.identity;
    let tombstone = Tombstone {
        id: found.tombstone.clone(),
        package: identity.package.clone(),
        version: identity.version.clone(),
        content: identity.content,
        code: identity.code,
        cause: TombstoneCause::DigestMismatch,
        actor: None,
        reason: found.reason.clone(),
        observed: found.observed,
        at: *context.now,
    };
    bury(state, &tombstone)
}

fn bury(state: &PackageState, tombstone: &Tombstone) -> Result<Vec<Change>, Refusal> {
    let mut changes = vec![Change::InsertTombstone(tombstone.clone())];
    changes.extend(withdrawn(state, tombstone)?);
    Ok(changes)
}

/// What a tombstone that somebody else caused changes here; none if it changes nothing.
///
/// Tombstones are of the deployment: a version that is denied is in force for nobody.
pub fn withdraw_denied(
    state: &PackageState,
    context: &Context<'_>,
    tombstone: &Tombstone,
) -> Option<Decision> {
    let result = withdrawn(state, tombstone);
    if matches!(&result, Ok(changes) if changes.is_empty()) {
        return None;
    }
    let event = super::event_facts::of_withdrawal(state, context, tombstone, &result);
    Some(Decision { event, result })
}

fn withdrawn(state: &PackageState, tombstone: &Tombstone) -> Result<Vec<Change>, Refusal> {
    let (version_state, standing) = match tombstone.cause {
        TombstoneCause::Revocation => (VersionState::Revoked, Standing::Revoked),
        TombstoneCause::DigestMismatch => (VersionState::Quarantined, Standing::Quarantined),
    };
    let denied = |version: &Version| tombstone.denies(&version.identity).is_some();
    let mut changes = Vec::new();
    for version in state.versions.values().filter(|version| denied(version)) {
        // A revocation outranks a mismatch, and nothing outranks a revocation.
        if version.state != version_state && version.state != VersionState::Revoked {
            changes.push(Change::UpdateVersion(Version {
                state: version_state,
                ..version.clone()
            }));
        }
    }
    if let Some(pointer) = withdrawn_pointer(state, standing, denied)? {
        changes.push(Change::SetPointer(pointer));
    }
    Ok(changes)
}

fn withdrawn_pointer(
    state: &PackageState,
    standing: Standing,
    denied: impl Fn(&Version) -> bool,
) -> Result<Option<Pointer>, Refusal> {
    let pointer = &state.pointer;
    let moves = match pointer.standing {
        Standing::Active | Standing::Paused => true,
        Standing::Quarantined => standing == Standing::Revoked,
        Standing::Vacant | Standing::Revoked | Standing::Uninstalled => false,
    };
    let Some(target) = pointer.target.as_ref().filter(|_| moves) else {
        return Ok(None);
    };
    if !denied(state.version(&target.content)?) {
        return Ok(None);
    }
    let generation = state.next_generation()?;
    Ok(Some(Pointer {
        generation,
        standing,
        ..pointer.clone()
    }))
}

pub fn uninstall(state: &PackageState, withdrawal: &Withdrawal) -> Result<Vec<Change>, Refusal> {
    check_generation(state, withdrawal.generation)?;
    let stays = |version: &Version| {
        matches!(
            version.state,
            VersionState::Revoked | VersionState::Quarantined | VersionState::Uninstalled
        )
    };
    let mut changes: Vec<Change> = state
        .versions
        .values()
        .filter(|version| !stays(version))
        .map(|version| {
            Change::UpdateVersion(Version {
                state: VersionState::Uninstalled,
                newest_review: None,
                ..version.clone()
            })
        })
        .collect();
    let vacated = matches!(
        state.pointer.standing,
        Standing::Vacant | Standing::Uninstalled
    );
    if changes.is_empty() && vacated {
        return Err(Refusal::NothingInstalled);
    }
    let generation = state.next_generation()?;
    changes.push(Change::SetPointer(Pointer {
        generation,
        standing: Standing::Uninstalled,
        target: None,
        uninstalled_at: Some(generation),
        ..state.pointer.clone()
    }));
    Ok(changes)
}
