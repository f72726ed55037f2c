//! Who runs, and as whom the sandbox runs.
//!
//! An ordinary user's runs are that user's. Started by root, a run drops to a uid of
//! its own first (DESIGN.md section 3, step 4): one fixed number that no account
//! has, so that nothing on the host belongs to it.

use lazaret_custody::{RunOwner, Trust};
use nix::unistd::{Gid, Group, Uid, User};

use crate::blocked::{Blocked, Cause};

/// The uid and gid that a run started by root gets. It lies in the range that
/// systemd's list of uid ranges calls unused (1879048192 to 2147483647), so no
/// distribution, container manager or directory service hands it out.
pub const RUN_ID_DEFAULT: u32 = 0x7200_0000;

/// `nobody`: shared by whoever cannot do better, so never a run's.
const NOBODY: u32 = 65_534;

/// Who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acting {
    /// The uid of this process.
    pub uid: u32,
    /// Whom a run drops to; only where root starts it.
    pub run_owner: Option<RunOwner>,
}

impl Acting {
    /// Looks at this process. `run_uid` is the operator's setting for runs started
    /// by root.
    ///
    /// # Errors
    /// [`Cause::RunUser`] for a setting without root, an id that an account or group
    /// has, root's or nobody's id, or a process whose real and effective user differ.
    pub fn current(run_uid: Option<u32>) -> Result<Self, Blocked> {
        let (real, effective) = (Uid::current(), Uid::effective());
        if real != effective {
            let why = format!("started with real uid {real} and effective uid {effective}");
            return Err(refuse(why).advise("start Lazaret without a setuid program in between"));
        }
        if !effective.is_root() {
            return match run_uid {
                None => Ok(Self {
                    uid: effective.as_raw(),
                    run_owner: None,
                }),
                Some(_) => Err(refuse("only root can choose the uid of a run".to_owned())
                    .advise("leave --run-uid away: the run is yours")),
            };
        }
        let id = run_uid.unwrap_or(RUN_ID_DEFAULT);
        require_unused(id)?;
        Ok(Self {
            uid: 0,
            run_owner: Some(RunOwner { uid: id, gid: id }),
        })
    }

    /// Whose directories are trusted.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust {
            acting_uid: self.uid,
        }
    }

    /// The uid and gid that the sandbox has on the host.
    #[must_use]
    pub fn run_ids(&self) -> (u32, u32) {
        self.run_owner.map_or_else(
            || (self.uid, Gid::effective().as_raw()),
            |owner| (owner.uid, owner.gid),
        )
    }
}

/// Refuses an id that somebody has.
fn require_unused(id: u32) -> Result<(), Blocked> {
    let other = || "choose a number with --run-uid that no account and no group has".to_owned();
    if id == 0 || id == NOBODY || id == u32::MAX {
        return Err(refuse(format!("uid {id} can never be a run's")).advise(other()));
    }
    // A lookup that fails is no proof that nobody has the id.
    let account = User::from_uid(Uid::from_raw(id))
        .map_err(|errno| refuse(format!("looking up uid {id}: {errno}")))?;
    if let Some(account) = account {
        let why = format!("uid {id} belongs to the account {:?}", account.name);
        return Err(refuse(why).advise(other()));
    }
    let group = Group::from_gid(Gid::from_raw(id))
        .map_err(|errno| refuse(format!("looking up gid {id}: {errno}")))?;
    if let Some(group) = group {
        let why = format!("gid {id} belongs to the group {:?}", group.name);
        return Err(refuse(why).advise(other()));
    }
    Ok(())
}

fn refuse(why: String) -> Blocked {
    Blocked::new(Cause::RunUser, "the user of the run", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_somebody_has_are_refused() {
        for id in [0, NOBODY, u32::MAX] {
            assert_eq!(require_unused(id).unwrap_err().cause, Cause::RunUser);
        }
        // Every host has this account.
        let daemon = User::from_name("daemon").unwrap();
        if let Some(daemon) = daemon {
            let blocked = require_unused(daemon.uid.as_raw()).unwrap_err();
            assert!(blocked.why.contains("daemon"), "{blocked}");
        }
    }

    #[test]
    fn root_gets_a_run_user_and_nobody_else_may_choose_one() {
        if Uid::effective().is_root() {
            let acting = Acting::current(None).unwrap();
            assert_eq!(acting.run_ids(), (RUN_ID_DEFAULT, RUN_ID_DEFAULT));
            let other = Acting::current(Some(RUN_ID_DEFAULT + 1)).unwrap();
            assert_eq!(other.run_ids().0, RUN_ID_DEFAULT + 1);
        } else {
            assert_eq!(Acting::current(None).unwrap().run_owner, None);
            assert_eq!(Acting::current(Some(7)).unwrap_err().cause, Cause::RunUser);
        }
    }
}
