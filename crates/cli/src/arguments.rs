//! The command line. Its help is the manual.

mod package;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::pins::{PROFILE_IDS, PROFILE_V1};

use crate::exit;

pub use package::{Diff, Inspect, Package, PackageCommand, Scaffold, Template, Validate};

/// Runs reviewed Python tool packages under isolation that the kernel enforces, and
/// keeps the evidence.
///
/// The shortest way: `lazaret doctor` says what this host lacks, `lazaret init
/// --approve-bundled` shows the bundled JSON formatter and asks for your approval of
/// its exact digests, `lazaret format FILE` runs it in the sandbox, checks its output
/// outside, and prints it.
#[derive(Debug, clap::Parser)]
#[command(name = "lazaret", version, after_help = exit::HELP, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// The data directory: approvals, runs under way, kept evidence. Made on first
    /// use, private to you. Default: lazaret below $XDG_DATA_HOME, else
    /// ~/.local/share/lazaret. Root needs one that every user may pass through, such
    /// as /var/lib/lazaret.
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// For root only: the uid and gid that runs get. No account and no group may have
    /// the number. Default: 1912602624.
    #[arg(long, global = true, value_name = "NUMBER")]
    pub run_uid: Option<u32>,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Probes what a run needs of this host, by doing it.
    ///
    /// One line for each fact: ok, or Blocked with what, why and what to do. The last
    /// probe starts the sandbox with a harmless package up to the barrier, where it is
    /// ended. That is no proof of isolation. Makes the data directory if it is missing.
    Doctor(Doctor),
    /// Prepares a data directory.
    ///
    /// With --approve-bundled: shows the bundled package, its permissions, limits and
    /// digests, and records that you approve exactly that. Anything else, such as
    /// another closure or one changed byte, needs a new approval.
    Init(Init),
    /// Formats a JSON document in the sandbox.
    ///
    /// The output has sorted keys, two spaces per level and one newline at the end. It
    /// is printed only if it is, byte for byte, what an independent implementation
    /// outside the sandbox makes of the same input. At most 32 KiB, 4096 values, 32
    /// levels; no duplicate keys, no NaN, no lone surrogates.
    Format(Format),
    /// Makes and looks at packages, without running anything of them.
    ///
    /// For authors and reviewers. No server and no data directory is needed, nothing is
    /// written but what scaffold makes, and no line of a package is ever imported,
    /// compiled or run, not even in the sandbox.
    Package(Package),
}

/// The profile.
#[derive(Debug, clap::Args)]
pub struct Profile {
    /// The profile to use. Anything but the default is a candidate, and everything
    /// that it touches says so.
    #[arg(long, value_name = "ID", default_value = PROFILE_V1,
          value_parser = PossibleValuesParser::new(PROFILE_IDS))]
    pub profile: String,
}

/// `lazaret doctor`
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// The profile.
    #[command(flatten)]
    pub profile: Profile,
    /// Print JSON (schema lazaret-doctor/1).
    #[arg(long)]
    pub json: bool,
}

/// `lazaret init`
#[derive(Debug, clap::Args)]
pub struct Init {
    /// Approve the package that comes with Lazaret.
    #[arg(long, required = true)]
    pub approve_bundled: bool,
    /// Approve without asking, if this is the digest of exactly what is shown.
    #[arg(long, value_name = "DIGEST")]
    pub yes: Option<Sha256Digest>,
    /// The profile.
    #[command(flatten)]
    pub profile: Profile,
    /// Print what was approved as JSON (schema lazaret-init/1).
    #[arg(long)]
    pub json: bool,
}

/// `lazaret format`
#[derive(Debug, clap::Args)]
pub struct Format {
    /// The document; - for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The profile.
    #[command(flatten)]
    pub profile: Profile,
    /// Write the run's record here (schema lazaret-run-record/1), whatever its end.
    #[arg(long, value_name = "PATH")]
    pub record: Option<PathBuf>,
    /// Keep the run's files in a fresh directory below this one, also if it is done.
    #[arg(long, value_name = "DIR")]
    pub keep_evidence: Option<PathBuf>,
    /// Say on one line what is launched, instead of showing all of it.
    #[arg(long)]
    pub quiet: bool,
    /// Print output and record, or the refusal, as JSON (schema lazaret-format/1).
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_documented_run_uid_is_the_one_that_is_used() {
        let documented = lazaret_engine::acting::RUN_ID_DEFAULT.to_string();
        let help = Arguments::command().render_long_help().to_string();
        assert!(help.contains(&documented), "{documented}");
    }
}
