//! Root, sessions and Goals as facts, and the checks that all writers share.
//!
//! Nothing here knows a token, a passphrase or how somebody logged in; a session is a row.

use crate::ids::{GoalId, OwnerId, RootId, SessionId};
use crate::numbers::{Epoch, Revision};
use crate::time::{Deadline, Now};

/// The deployment's operator authority as it stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its id; made once.
    pub id: RootId,
    /// Its epoch; only grows.
    pub epoch: Epoch,
}

/// Why a session is over before its deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The owner logged out.
    LogOut,
    /// The Root was rotated.
    RootRotation,
    /// The owner was removed.
    OwnerRemoval,
}

impl SessionEnd {
    /// Every end.
    pub const ALL: [Self; 3] = [Self::LogOut, Self::RootRotation, Self::OwnerRemoval];

    /// The name under which it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LogOut => "log_out",
            Self::RootRotation => "root_rotation",
            Self::OwnerRemoval => "owner_removal",
        }
    }
}

/// One log-in of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id; not the secret.
    pub id: SessionId,
    /// Whose it is.
    pub owner: OwnerId,
    /// The Root epoch under which it began.
    pub root_epoch: Epoch,
    /// It ends here if nobody uses it.
    pub idle_deadline: Deadline,
    /// It ends here in any case.
    pub absolute_deadline: Deadline,
    /// Whether and why it was ended.
    pub ended: Option<SessionEnd>,
}

/// Why a session gives no authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionRefusal {
    /// No such session.
    #[error("the session is not known")]
    Unknown,
    /// It was ended.
    #[error("the session was ended")]
    Ended,
    /// It was not used for too long.
    #[error("the session was idle for too long")]
    Idle,
    /// It has reached its last moment, or the host was started anew.
    #[error("the session has expired")]
    Expired,
    /// It began under another Root epoch.
    #[error("the Root was rotated since the session began")]
    RootRotated,
    /// It belongs to somebody else.
    #[error("the session is another owner's")]
    OtherOwner,
}

impl SessionRefusal {
    /// A stable code for receipts and interfaces.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unknown => "session_unknown",
            Self::Ended => "session_ended",
            Self::Idle => "session_idle",
            Self::Expired => "session_expired",
            Self::RootRotated => "root_rotated",
            Self::OtherOwner => "session_of_other_owner",
        }
    }
}

impl Session {
    /// Whether the session is alive under `root` at `now`.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check_live(&self, root: &Root, now: &Now) -> Result<(), SessionRefusal> {
        if self.root_epoch != root.epoch {
            return Err(SessionRefusal::RootRotated);
        }
        if self.ended.is_some() {
            return Err(SessionRefusal::Ended);
        }
        if self.absolute_deadline.is_past(now) {
            return Err(SessionRefusal::Expired);
        }
        if self.idle_deadline.is_past(now) {
            return Err(SessionRefusal::Idle);
        }
        Ok(())
    }

    /// Whether the session is alive and belongs to `owner`.
    ///
    /// # Errors
    /// Why it gives no authority over what is `owner`'s.
    pub fn check_live_for(
        session: Option<&Self>,
        owner: &OwnerId,
        root: &Root,
        now: &Now,
    ) -> Result<(), SessionRefusal> {
        let session = session.ok_or(SessionRefusal::Unknown)?;
        if session.owner != *owner {
            return Err(SessionRefusal::OtherOwner);
        }
        session.check_live(root, now)
    }
}

/// What work is for, as it stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// Its id.
    pub id: GoalId,
    /// Whose it is.
    pub owner: OwnerId,
    /// The newest revision.
    pub revision: Revision,
    /// Whether it was closed.
    pub closed: bool,
}

/// Why a Goal gives no authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GoalRefusal {
    /// No such Goal, or another owner's: the two are not told apart.
    #[error("the Goal is not known")]
    Unknown,
    /// It was closed.
    #[error("the Goal is closed")]
    Closed,
    /// Work binds to one exact revision, and there is a newer one.
    #[error("the Goal was revised")]
    Revised,
}

impl GoalRefusal {
    /// A stable code for receipts and interfaces.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unknown => "goal_unknown",
            Self::Closed => "goal_closed",
            Self::Revised => "goal_revised",
        }
    }
}

impl Goal {
    /// Whether the Goal is `owner`'s, open, and at `revision`.
    ///
    /// # Errors
    /// Why it gives no authority.
    pub fn check_current(
        goal: Option<&Self>,
        id: &GoalId,
        owner: &OwnerId,
        revision: Revision,
    ) -> Result<(), GoalRefusal> {
        let goal = goal
            .filter(|g| g.owner == *owner && g.id == *id)
            .ok_or(GoalRefusal::Unknown)?;
        if goal.closed {
            return Err(GoalRefusal::Closed);
        }
        if goal.revision == revision {
            Ok(())
        } else {
            Err(GoalRefusal::Revised)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::BootId;

    const BOOT: BootId = BootId::from_bytes([1; 16]);

    fn at(boottime_ns: u64) -> Now {
        Now {
            boot: BOOT,
            boottime_ns,
            unix_ms: 0,
        }
    }

    fn root(epoch: u64) -> Root {
        Root {
            id: "root".parse().unwrap(),
            epoch: Epoch::new(epoch).unwrap(),
        }
    }

    fn session() -> Session {
        Session {
            id: "s".parse().unwrap(),
            owner: "alice".parse().unwrap(),
            root_epoch: Epoch::FIRST,
            idle_deadline: Deadline::after(&at(0), 10),
            absolute_deadline: Deadline::after(&at(0), 100),
            ended: None,
        }
    }

    #[test]
    fn a_session_dies_of_each_cause_by_its_name() {
        let live = |s: &Session, epoch, ns| s.check_live(&root(epoch), &at(ns));
        assert_eq!(live(&session(), 1, 9_999_999), Ok(()));
        assert_eq!(live(&session(), 1, 10_000_000), Err(SessionRefusal::Idle));
        assert_eq!(
            live(&session(), 1, 100_000_000),
            Err(SessionRefusal::Expired)
        );
        assert_eq!(live(&session(), 2, 0), Err(SessionRefusal::RootRotated));
        for end in SessionEnd::ALL {
            let ended = Session {
                ended: Some(end),
                ..session()
            };
            assert_eq!(live(&ended, 1, 0), Err(SessionRefusal::Ended));
        }
        let mallory = "mallory".parse().unwrap();
        let foreign = Session::check_live_for(Some(&session()), &mallory, &root(1), &at(0));
        assert_eq!(foreign, Err(SessionRefusal::OtherOwner));
        let none = Session::check_live_for(None, &mallory, &root(1), &at(0));
        assert_eq!(none, Err(SessionRefusal::Unknown));
    }

    #[test]
    fn a_session_of_an_earlier_boot_has_expired() {
        let other = Now {
            boot: BootId::from_bytes([2; 16]),
            boottime_ns: 0,
            unix_ms: 0,
        };
        assert_eq!(
            session().check_live(&root(1), &other),
            Err(SessionRefusal::Expired)
        );
    }

    #[test]
    fn another_owners_goal_is_an_unknown_goal() {
        let alice: OwnerId = "alice".parse().unwrap();
        let id: GoalId = "g".parse().unwrap();
        let goal = Goal {
            id: id.clone(),
            owner: alice.clone(),
            revision: Revision::FIRST,
            closed: false,
        };
        let check = |goal: Option<&Goal>, owner: &OwnerId, revision| {
            Goal::check_current(goal, &id, owner, revision)
        };
        assert_eq!(check(Some(&goal), &alice, Revision::FIRST), Ok(()));
        let second = Revision::FIRST.next().unwrap();
        assert_eq!(
            check(Some(&goal), &alice, second),
            Err(GoalRefusal::Revised)
        );
        let bob = "bob".parse().unwrap();
        assert_eq!(
            check(Some(&goal), &bob, Revision::FIRST),
            Err(GoalRefusal::Unknown)
        );
        assert_eq!(
            check(None, &alice, Revision::FIRST),
            Err(GoalRefusal::Unknown)
        );
        let closed = Goal {
            closed: true,
            ..goal
        };
        assert_eq!(
            check(Some(&closed), &alice, Revision::FIRST),
            Err(GoalRefusal::Closed)
        );
    }
}
