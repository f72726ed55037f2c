//! The fixed state in which a warden, and so everything that it starts, begins.
//!
//! A process inherits much that no argument shows: limits, priorities, masks,
//! personality, groups, keyrings. All of it is set here to the same values on every
//! host and read back where it can be, or the run is refused with the name of what
//! could not be set. Only a priority lower than usual that cannot be raised is left,
//! and reported: it takes nothing from the isolation.
//!
//! The order matters: what root may raise comes before root is given up, what
//! belongs to the new user comes after it, and the files of /proc/self are written
//! before the process is made undumpable, which gives them to root.

use std::fs;
use std::io;

use crate::frame::RunAs;
use crate::limits;
use crate::record::InheritedPriority;
use crate::sys;

/// The slack that the kernel gives to timers by default, in nanoseconds.
const TIMER_SLACK_NS: u32 = 50_000;

/// Which part could not be set, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {detail}")]
pub struct InheritedError {
    /// The part of the state.
    pub part: &'static str,
    /// What is in the way.
    pub detail: String,
}

fn failed(part: &'static str) -> impl FnOnce(io::Error) -> InheritedError {
    move |error| InheritedError {
        part,
        detail: error.to_string(),
    }
}

/// Who this process is once the state is fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// Its uid: real, effective and saved.
    pub uid: u32,
    /// Its gid.
    pub gid: u32,
    /// Its supplementary groups, sorted. Only an ordinary user's warden has any.
    pub groups: Vec<u32>,
    /// What could not be raised to the usual.
    pub priority: InheritedPriority,
}

/// Sets everything. To be called by a process with one thread, first of all.
///
/// # Errors
/// [`InheritedError`] names the first part that could not be set.
pub fn fix(run_as: Option<RunAs>) -> Result<Fixed, InheritedError> {
    sys::set_umask(0o077);
    sys::own_session().map_err(failed("session"))?;
    std::env::set_current_dir("/").map_err(failed("working directory"))?;
    sys::reset_signals().map_err(failed("signal dispositions"))?;
    let priority = fix_scheduling()?;
    fix_memory()?;
    fix_limits()?;
    become_user(run_as)?;
    drop_capabilities()?;
    sys::join_new_session_keyring().map_err(failed("session keyring"))?;
    sys::become_subreaper().map_err(failed("subreaper"))?;
    sys::set_not_dumpable().map_err(failed("dumpable flag"))?;
    let (uid, gid) = sys::effective_ids().map_err(failed("ids"))?;
    let groups = sys::group_list().map_err(failed("groups"))?;
    Ok(Fixed {
        uid,
        gid,
        groups,
        priority,
    })
}

/// Time sharing, nice 0, no I/O priority, plain personality. CPU affinity is left:
/// it says which part of the host the run was given.
fn fix_scheduling() -> Result<InheritedPriority, InheritedError> {
    /// sched(7): policies that give less than the ordinary one.
    const LOWER: [i32; 2] = [libc::SCHED_BATCH, libc::SCHED_IDLE];

    sys::reset_personality().map_err(failed("personality"))?;
    if sys::personality().map_err(failed("personality"))? != 0 {
        return Err(InheritedError {
            part: "personality",
            detail: "did not hold".to_owned(),
        });
    }
    let set = sys::reset_scheduling();
    let policy = sys::scheduling_policy().map_err(failed("scheduling policy"))?;
    if policy != libc::SCHED_OTHER && !LOWER.contains(&policy) {
        set.map_err(failed("scheduling policy"))?;
        return Err(InheritedError {
            part: "scheduling policy",
            detail: format!("is {policy} and did not change"),
        });
    }
    let set = sys::reset_nice();
    let nice = sys::nice().map_err(failed("nice value"))?;
    if nice < 0 {
        set.map_err(failed("nice value"))?;
        return Err(InheritedError {
            part: "nice value",
            detail: format!("is {nice} and did not change"),
        });
    }
    sys::reset_io_priority().map_err(failed("I/O priority"))?;
    sys::set_timer_slack_ns(TIMER_SLACK_NS).map_err(failed("timer slack"))?;
    Ok(InheritedPriority { nice, policy })
}

/// First to be killed when memory is short, nothing in core files, no huge pages,
/// no page merging (which another process could measure).
fn fix_memory() -> Result<(), InheritedError> {
    fs::write("/proc/self/oom_score_adj", "1000").map_err(failed("oom_score_adj"))?;
    match fs::write("/proc/self/coredump_filter", "0") {
        // A kernel without core dumps has no such file.
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("coredump_filter")(error));
        }
        _ => {}
    }
    sys::disable_huge_pages().map_err(failed("transparent huge pages"))?;
    sys::disable_page_merging().map_err(failed("page merging"))
}

fn fix_limits() -> Result<(), InheritedError> {
    for (resource, value) in limits::OF_WARDEN {
        let found = sys::get_limit(resource).map_err(failed("limits"))?;
        sys::set_limit(resource, value).map_err(|error| InheritedError {
            part: "limits",
            detail: format!(
                "{resource:?} has a hard limit of {}, {value} is needed, and it cannot be raised: \
                 {error}",
                found.hard
            ),
        })?;
        let set = sys::get_limit(resource).map_err(failed("limits"))?;
        if set
            != (sys::Limit {
                soft: value,
                hard: value,
            })
        {
            return Err(InheritedError {
                part: "limits",
                detail: format!("{resource:?} did not hold"),
            });
        }
    }
    Ok(())
}

/// Root becomes the run's user; nobody else becomes anybody.
fn become_user(run_as: Option<RunAs>) -> Result<(), InheritedError> {
    let (uid, _) = sys::effective_ids().map_err(failed("ids"))?;
    let refuse = |detail: &str| {
        Err(InheritedError {
            part: "ids",
            detail: detail.to_owned(),
        })
    };
    match run_as {
        None if uid == 0 => refuse("root has to name a run uid"),
        None => Ok(()),
        Some(_) if uid != 0 => refuse("only root can run as another user"),
        Some(ids) if ids.uid == 0 || ids.gid == 0 => refuse("root is no run user"),
        Some(ids) => {
            sys::drop_to(ids.uid, ids.gid).map_err(failed("ids"))?;
            let found = sys::effective_ids().map_err(failed("ids"))?;
            if found != (ids.uid, ids.gid)
                || !sys::group_list().map_err(failed("groups"))?.is_empty()
            {
                return refuse("dropping root did not hold");
            }
            Ok(())
        }
    }
}

/// Also for an ordinary user, who may have been given some.
fn drop_capabilities() -> Result<(), InheritedError> {
    const NONE: sys::Capabilities = sys::Capabilities {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    };

    sys::clear_ambient_capabilities().map_err(failed("ambient capabilities"))?;
    sys::clear_capabilities().map_err(failed("capabilities"))?;
    if sys::capabilities().map_err(failed("capabilities"))? != NONE {
        return Err(InheritedError {
            part: "capabilities",
            detail: "did not hold".to_owned(),
        });
    }
    Ok(())
}
