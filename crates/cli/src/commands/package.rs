//! `lazaret package`: what authors and reviewers do with a directory, without running
//! anything of it.
//!
//! A package is read once, safely, as owned bytes, and is text from then on. Nothing
//! here may start a process, write into a package that exists, or open a data
//! directory.

mod code;
mod diff;
mod inspect;
mod lines;
mod problems;
mod scaffold;
mod validate;

use std::path::Path;

use anyhow::Result;
use lazaret_contract::package::{self, BindingCheck};
use lazaret_contract::profiles::Binding;
use lazaret_custody::{PackageReader, Trust};
use lazaret_engine::approval::binding;
use lazaret_profile::accepted::built_in;
use lazaret_profile::pins::PROFILE_IDS;

use crate::arguments::{Package, PackageCommand};
use crate::exit::Exit;
use problems::Unfit;

/// Does what was asked for.
pub fn run(package: &Package) -> Result<Exit> {
    match &package.command {
        PackageCommand::Scaffold(scaffold) => scaffold::run(scaffold),
        PackageCommand::Validate(validate) => validate::run(validate),
        PackageCommand::Inspect(inspect) => inspect::run(inspect),
        PackageCommand::Diff(diff) => diff::run(diff),
    }
}

/// Reads a package and judges it against every closure that this build has accepted.
fn open(dir: &Path) -> Result<package::Package, Unfit> {
    let bindings: Vec<Binding> = PROFILE_IDS
        .iter()
        .filter_map(|profile| built_in(profile))
        .map(|accepted| binding(&accepted))
        .collect();
    open_bound(dir, BindingCheck::Accepted(&bindings))
}

fn open_bound(dir: &Path, bindings: BindingCheck<'_>) -> Result<package::Package, Unfit> {
    let files = PackageReader::default()
        .read(dir, Trust::acting())?
        .into_package_files()?;
    Ok(package::inspect(&files, bindings)?)
}
