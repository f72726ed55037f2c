//! `cargo xtask accept-closure`: makes the closure that was just built the accepted one.
//!
//! It writes `accepted.json` of the tree, which is compiled into the shipped binary; a
//! commit, not this command, puts it into force. It must never accept a closure that is
//! damaged or does not belong to this tree's inputs, and never write a review.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lazaret_profile::accepted::{ACCEPTED_SCHEMA, Accepted};
use lazaret_profile::manifest::{ClosureManifest, Role};
use lazaret_profile::pins::{PROFILE_IDS, PROFILE_V1};

use super::assemble::verify;
use super::inputs::Inputs;
use super::layout::{Layout, write_atomically};
use super::progress::Progress;
use super::record::{Current, difference};

/// Which closure to accept.
#[derive(Debug, Clone, clap::Args)]
pub struct AcceptArguments {
    /// The profile whose closure was built.
    #[arg(long, value_name = "ID", default_value = PROFILE_V1, value_parser = PROFILE_IDS)]
    pub profile: String,
    /// Write nothing: fail unless what is accepted for every profile was made from this tree's
    /// inputs. This needs no closure.
    #[arg(long, conflicts_with = "profile")]
    pub check: bool,
}

/// Reads the `accepted.json` of a profile as it stands in the tree.
///
/// # Errors
/// When it is missing or not valid; `null` is none.
pub fn read(layout: &Layout, profile: &str) -> Result<Option<Accepted>> {
    let path = layout.profile(profile).join("accepted.json");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    Accepted::parse(&text, profile).with_context(|| format!("reading {}", path.display()))
}

/// The command `accept-closure`.
///
/// # Errors
/// When there is no whole closure of this tree's inputs, or the file cannot be written.
pub fn accept(root: &Path, arguments: &AcceptArguments) -> Result<ExitCode> {
    let progress = Progress::start();
    if arguments.check {
        for profile in PROFILE_IDS {
            accepted_inputs_current(root, profile)?;
            progress.say(format!("{profile}: accepted.json is of this tree's inputs"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let layout = Layout::new(root)?;
    let profile = &arguments.profile;
    let inputs = Inputs::read(&layout, profile)?.digest();
    let build = format!("cargo xtask build-closure --profile {profile}");
    let Some(current) = Current::read(&layout, profile) else {
        bail!("no closure of {profile} was built here; run {build}");
    };
    if current.inputs != inputs {
        bail!("the inputs have changed since the closure was built; run {build} again");
    }
    let manifest = verify(&layout.closure(profile, current.closure), current.closure)
        .with_context(|| format!("the closure is not whole; run {build} again"))?;
    let former = read(&layout, profile)?;
    for line in difference(former.as_ref(), &manifest, current.closure, inputs) {
        progress.say(line);
    }
    let new = acceptance(&manifest, &current, former.as_ref())?;
    if former.as_ref() == Some(&new) {
        progress.say("accepted.json says so already");
        return Ok(ExitCode::SUCCESS);
    }
    let path = layout.profile(profile).join("accepted.json");
    write_atomically(&path, new.to_text()?.as_bytes(), 0o644)?;
    progress.say(format!("wrote {}: {}", layout.shown(&path), new.standing()));
    progress.say("commit it together with what changed the closure");
    Ok(ExitCode::SUCCESS)
}

/// The new acceptance. A review stays only with everything that was reviewed.
fn acceptance(
    manifest: &ClosureManifest,
    current: &Current,
    former: Option<&Accepted>,
) -> Result<Accepted> {
    let digest = |role: Role| {
        let file = manifest
            .file(role)
            .with_context(|| format!("the closure has no {}", role.file_name()))?;
        anyhow::Ok(file.sha256)
    };
    let unchanged = former
        .filter(|former| former.closure == current.closure && former.inputs == current.inputs);
    Ok(Accepted {
        schema: ACCEPTED_SCHEMA.to_owned(),
        profile: current.profile.clone(),
        closure: current.closure,
        bwrap: digest(Role::Bwrap)?,
        launcher: digest(Role::Launcher)?,
        filter: digest(Role::Filter)?,
        inputs: current.inputs,
        review: unchanged.and_then(|former| former.review.clone()),
    })
}

/// Checks that the inputs recorded in `accepted.json` are those of this tree, also where the
/// profile cannot be built.
///
/// # Errors
/// Says what differs and what to do.
pub fn accepted_inputs_current(root: &Path, profile: &str) -> Result<()> {
    let layout = Layout::new(root)?;
    let inputs = Inputs::read(&layout, profile)?.digest();
    let Some(accepted) = read(&layout, profile)? else {
        bail!("nothing is accepted for {profile}");
    };
    if accepted.inputs != inputs {
        bail!(
            "accepted.json of {profile} was made from the inputs {}, this tree has {inputs}; run cargo \
             xtask build-closure --profile {profile} and cargo xtask accept-closure --profile {profile}",
            accepted.inputs
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::assemble::tests::sample;
    use super::*;
    use lazaret_contract::digest::Sha256Digest;
    use lazaret_profile::accepted::Review;

    #[test]
    fn a_review_stays_only_with_everything_that_was_reviewed() {
        let manifest = sample(b"launcher").manifest;
        let digest = manifest.digest().unwrap();
        let inputs = Sha256Digest::of(b"inputs");
        let current = Current::new(&manifest.profile, digest, inputs);
        let mut reviewed = acceptance(&manifest, &current, None).unwrap();
        assert_eq!(reviewed.review, None);
        reviewed.review = Some(Review {
            reviewer: "A. Reviewer".to_owned(),
            date: "2026-01-01".to_owned(),
            report_sha256: digest,
        });
        let again = acceptance(&manifest, &current, Some(&reviewed)).unwrap();
        assert_eq!(again, reviewed);
        let others = Current::new(&manifest.profile, digest, Sha256Digest::of(b"other"));
        assert_eq!(
            acceptance(&manifest, &others, Some(&reviewed))
                .unwrap()
                .review,
            None
        );
    }
}
