//! Signals that ask this program to end: while a run is under way they cancel it, so
//! that its end is waited for and recorded.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use lazaret_engine::run::Cancel;
use nix::sys::signal::{SigSet, Signal};

/// While it lives, SIGINT, SIGTERM and SIGHUP cancel the run instead of ending this
/// program. Afterwards they do what they always do.
pub struct Guard(SigSet);

impl Guard {
    /// Begins. Signals are blocked for this thread and those that it starts from now
    /// on; a thread of its own takes them.
    pub fn new(cancel: &Arc<Cancel>) -> Result<Self> {
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
            .into_iter()
            .collect();
        set.thread_block().context("blocking signals")?;
        let cancel = Arc::clone(cancel);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                while set.wait().is_ok() {
                    cancel.cancel();
                }
            })
            .context("starting the thread that takes signals")?;
        Ok(Self(set))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Should that fail, a signal goes to the waiting thread, as before.
        let _ = self.0.thread_unblock();
    }
}
