//! `lazaret init`: shows, asks, and records an approval of exact digests.

use std::io::{BufRead as _, IsTerminal as _};

use anyhow::Result;
use lazaret_contract::digest::Sha256Digest;
use lazaret_engine::approval::{self, Subject};
use lazaret_engine::closure::accepted_in_this_build;
use lazaret_engine::{Acting, Blocked, Cause, DataDir};
use serde::Serialize;

use crate::arguments::{Arguments, Init};
use crate::bundled;
use crate::exit::Exit;
use crate::{places, show, talk};

/// The version of the JSON form.
const INIT_SCHEMA: &str = "lazaret-init/1";

#[derive(Serialize)]
struct Approved<'a> {
    schema: &'a str,
    approval_sha256: Sha256Digest,
    subject: &'a Subject,
}

/// Shows what is to be approved and records the answer.
pub fn run(arguments: &Arguments, init: &Init) -> Result<Exit> {
    match approve(arguments, init) {
        Ok(exit) => exit,
        Err(blocked) => {
            talk::blocked(&blocked);
            // A digest that was not shown is a wrong request, not a missing host.
            let refused = blocked.cause == Cause::ApprovalDiffers;
            Ok(if refused {
                Exit::Refused
            } else {
                Exit::Blocked
            })
        }
    }
}

fn approve(arguments: &Arguments, init: &Init) -> Result<Result<Exit>, Blocked> {
    let accepted = accepted_in_this_build(&init.profile.profile)?;
    let package = bundled::formatter(&accepted)?;
    let subject = Subject::new(&package, &accepted)?;
    let digest = subject.digest()?;
    let acting = Acting::current(arguments.run_uid)?;
    let data = DataDir::open(&places::data_dir(arguments.data_dir.as_deref())?, acting)?;
    talk::line("this is to be approved:");
    talk::text(&show::subject(&subject));
    talk::text(&show::manifest(&package));
    talk::text(&show::code(package.code()));
    talk::text(&format!("  {:<12} {digest}\n", "approval"));
    let confirmed = match init.yes {
        Some(given) => given,
        None if ask(&subject) => digest,
        None => return Ok(Ok(not_approved(digest))),
    };
    approval::record(&data, &subject, confirmed)?;
    talk::line(&format!(
        "approved, in {}",
        lazaret_custody::error::shown(data.path())
    ));
    let given = if init.json {
        talk::give_json(&Approved {
            schema: INIT_SCHEMA,
            approval_sha256: digest,
            subject: &subject,
        })
    } else {
        talk::give(format!("{digest}\n").as_bytes())
    };
    Ok(given.map(|()| Exit::Done))
}

fn not_approved(digest: Sha256Digest) -> Exit {
    talk::line("not approved; nothing was written");
    talk::text(&format!("  to do: run this again with --yes {digest}\n"));
    Exit::Refused
}

/// Asks at the terminal; without one the answer is no.
fn ask(subject: &Subject) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    let candidate = show::candidate_mark(subject.profile.candidate);
    talk::text(&format!("Approve exactly this{candidate}? Type yes: "));
    let mut answer = String::new();
    // An answer that cannot be read is no.
    std::io::stdin().lock().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}
