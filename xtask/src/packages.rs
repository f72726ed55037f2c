//! `cargo xtask packages`: the bundled packages in the form that is bound to a profile.
//!
//! A package's descriptor names the closure that it was reviewed for, so a new accepted
//! closure means a new form of each. `packages/` holds the form of v1; other profiles' forms
//! are derived below `.lazaret/packages/`. Nothing of a package is run or imported here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lazaret_contract::bundled::BUNDLED;
use lazaret_contract::profiles::Binding;
use lazaret_profile::accepted::Accepted;
use lazaret_profile::pins::{PROFILE_IDS, PROFILE_V1};

/// Which form, and whether to write it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The profile whose accepted closure the packages are bound to.
    #[arg(long, value_name = "ID", default_value = PROFILE_V1)]
    profile: String,
    /// Only say whether the files are the ones of this tree's accepted closure.
    #[arg(long)]
    check: bool,
}

/// Writes the packages, or says whether they are current.
///
/// # Errors
/// When the profile has no accepted closure, or a file cannot be read or written.
pub fn main(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let stale = differing(root, &arguments.profile)?;
    if arguments.check {
        for (path, _) in &stale {
            eprintln!("{} is not the one of the accepted closure", path.display());
        }
        return Ok(if stale.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    for (path, bytes) in &stale {
        let directory = path.parent().context("a file lies in a directory")?;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("making {}", directory.display()))?;
        std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
        println!("{}", path.display());
    }
    eprintln!(
        "{}: {} files were written anew",
        arguments.profile,
        stale.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Every file of the bundled packages that is not what the accepted closure asks for, with the
/// bytes that it should have.
///
/// # Errors
/// As [`main`].
pub fn differing(root: &Path, profile: &str) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let binding = Binding {
        profile: profile.to_owned(),
        closure: accepted(root, profile)?.closure,
    };
    let place = if profile == PROFILE_V1 {
        root.join("packages")
    } else {
        root.join(".lazaret/packages").join(profile)
    };
    let mut stale = Vec::new();
    for bundled in &BUNDLED {
        let files = bundled
            .bound_to(&binding)
            .with_context(|| format!("{} cannot be bound to {profile}", bundled.id))?;
        for (name, bytes) in files.iter() {
            let path = place.join(bundled.id).join(name);
            if std::fs::read(&path).ok().as_deref() != Some(bytes) {
                stale.push((path, bytes.to_vec()));
            }
        }
    }
    Ok(stale)
}

/// The tree's own acceptance, not the one compiled in: this command may have to follow it.
fn accepted(root: &Path, profile: &str) -> Result<Accepted> {
    if !PROFILE_IDS.contains(&profile) {
        bail!(
            "there is no profile {profile}; there are {}",
            PROFILE_IDS.join(" and ")
        );
    }
    let path = root
        .join("third_party/profiles")
        .join(profile)
        .join("accepted.json");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    Accepted::parse(&text, profile)?.with_context(|| format!("nothing is accepted for {profile}"))
}
