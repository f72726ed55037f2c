//! `lazaret package validate`: every problem at once, or that there is none.

use anyhow::Result;

use super::problems::{self, Report, VALIDATE_SCHEMA};
use crate::arguments::Validate;
use crate::exit::Exit;
use crate::talk;

/// Tells the problems.
pub fn run(validate: &Validate) -> Result<Exit> {
    let package = match super::open(&validate.dir) {
        Ok(package) => package,
        Err(unfit) => return problems::refuse(&validate.dir, &unfit, validate.json),
    };
    let report = Report {
        schema: VALIDATE_SCHEMA,
        directory: problems::name(&validate.dir),
        ok: true,
        package: Some(package.id_and_version()),
        capability: Some(package.capability.to_string()),
        content_sha256: Some(package.digests.content.to_string()),
        problems: Vec::new(),
        omitted: 0,
    };
    if validate.json {
        talk::give_json(&report)?;
    } else {
        let text = format!(
            "no problems: {}, capability {}, content {}\n",
            package.id_and_version(),
            package.capability,
            package.digests.content
        );
        talk::give(text.as_bytes())?;
    }
    Ok(Exit::Done)
}
