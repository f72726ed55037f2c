//! Step 13: whether the output is true. Outside the sandbox, in Rust.
//!
//! Only a run that ended by itself with code 0, with no limit hit, its cleanup proved
//! and what was staged unchanged, has an output that is looked at. It is read once,
//! through the inode that was made for it, and these very bytes are checked and
//! handed on.

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::formatter::{self, VerifyError};
use lazaret_contract::limits::OUTPUT_BYTES_MAX;
use lazaret_custody::RunDir;
use lazaret_warden::record::Outcome;

use super::session::{Ended, boottime_ns, ending_name};
use super::{Attempt, OutputClaim, RunRequest, Stop};
use crate::record::{BytesRecord, VerificationRecord};

/// Reads and checks the output of a run that was released.
pub(super) fn output(
    request: &RunRequest<'_>,
    run_dir: &mut RunDir,
    ended: &Ended,
    deadline_boottime_ns: u64,
    attempt: &mut Attempt,
) -> Result<Vec<u8>, Stop> {
    let outcome = &ended.outcome;
    let staged_unchanged = outcome
        .closing
        .as_ref()
        .is_some_and(|closing| closing.unchanged && closing.digests == ended.staged.digests);
    let mut verification = VerificationRecord {
        output_claim: request.claim.name().to_owned(),
        verified: false,
        refusal: None,
        staged_unchanged,
        output: None,
    };
    let checked = check(
        request,
        run_dir,
        ended,
        deadline_boottime_ns,
        &mut verification,
    );
    match &checked {
        Ok(_) => verification.verified = true,
        Err(Stop::Failed { cause, .. }) => verification.refusal = Some(cause.clone()),
        Err(_) => verification.refusal = Some("end-not-proved".to_owned()),
    }
    attempt.record.verification = Some(verification);
    checked
}

fn check(
    request: &RunRequest<'_>,
    run_dir: &mut RunDir,
    ended: &Ended,
    deadline_boottime_ns: u64,
    verification: &mut VerificationRecord,
) -> Result<Vec<u8>, Stop> {
    let outcome = &ended.outcome;
    if !outcome.cleanup.is_proved() {
        return Err(Stop::Unknown {
            why: format!("it is not proved that nothing is left ({})", outcome.ending),
        });
    }
    if !outcome.is_success() {
        return Err(failed(
            &ending_name(&outcome.ending),
            outcome.ending.to_string(),
            outcome,
        ));
    }
    if !verification.staged_unchanged {
        let why = "what was staged has other digests at the end than at the beginning";
        return Err(failed("staged-changed", why.to_owned(), outcome));
    }
    let bytes = run_dir
        .read_output(OUTPUT_BYTES_MAX as u64)
        .map_err(|error| failed("output-refused", error.refusal.to_string(), outcome))?;
    verification.output = Some(BytesRecord::of(&bytes));
    let closing = outcome
        .closing
        .as_ref()
        .and_then(|closing| closing.output.as_ref());
    if closing.and_then(|output| output.sha256) != Some(Sha256Digest::of(&bytes)) {
        let why = "the output is not what the warden hashed at the end";
        return Err(failed("output-changed", why.to_owned(), outcome));
    }
    match request.claim {
        OutputClaim::FormatterBytes => formatter::verify(request.input, &bytes)
            .map_err(|error| failed(verify_name(&error), error.to_string(), outcome))?,
    }
    require_time(deadline_boottime_ns, outcome)?;
    Ok(bytes)
}

/// The deadline covers the verification too.
fn require_time(deadline_boottime_ns: u64, outcome: &Outcome) -> Result<(), Stop> {
    match boottime_ns() {
        Ok(now) if now < deadline_boottime_ns => Ok(()),
        Ok(_) => {
            let why = "the deadline passed before the output was verified";
            Err(failed("late", why.to_owned(), outcome))
        }
        Err(blocked) => Err(failed("late", blocked.why, outcome)),
    }
}

fn verify_name(error: &VerifyError) -> &'static str {
    match error {
        VerifyError::Input(_) => "input-refused",
        VerifyError::Output(_) => "output-not-strict-json",
        VerifyError::ValueDiffers => "output-value-differs",
        VerifyError::BytesDiffer { .. } => "output-bytes-differ",
    }
}

fn failed(cause: &str, why: String, outcome: &Outcome) -> Stop {
    Stop::Failed {
        cause: cause.to_owned(),
        why,
        stderr: outcome.stderr.kept.clone(),
    }
}
