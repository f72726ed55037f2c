//! The command line of `lazaret package`.

use std::path::PathBuf;

use super::Profile;

/// `lazaret package`
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Package {
    /// What to do.
    #[command(subcommand)]
    pub command: PackageCommand,
}

/// What to do with a package.
#[derive(Debug, clap::Subcommand)]
pub enum PackageCommand {
    /// Writes a working package to begin from.
    ///
    /// Manifest, descriptor with the right digests, adapter.py, a golden vector and a
    /// README, bound to the closure that this build has accepted. The directory must
    /// not exist yet. What comes out has no problem, so that whatever validate tells
    /// later comes from an edit.
    Scaffold(Scaffold),
    /// Tells every problem of a package at once.
    ///
    /// Each has the file, the place (a JSON Pointer, or line and column), what is wrong,
    /// and what to do; a size or digest that differs is told with the right one. Exit
    /// code 0 means that an operator can be asked to approve exactly these bytes, 1
    /// that there are problems. Golden vectors are held to the schemas, and never run.
    ///
    /// What cannot be read safely, such as a symbolic link, a second hard link or a
    /// FIFO, refuses the directory as a whole, because a part of a package is none.
    Validate(Validate),
    /// Shows what an operator will approve.
    ///
    /// The manifest, permissions, limits, both schemas in words, golden vectors, all
    /// digests, and the code with line numbers. Whatever is not printable ASCII is
    /// shown as an escape, such as <U+00E9> or <TAB>, in a line marked with !; a line
    /// marked with + continues the one above. A package with problems is not shown:
    /// its problems are, as validate gives them.
    Inspect(Inspect),
    /// Shows what an update changes.
    ///
    /// Identity, version, authority, dependency, both schemas, code, texts and other
    /// files, each change named; what allows more than before is marked WIDENS. Changed
    /// code is shown line by line, and white space is never ignored. Exit code 0
    /// whether or not anything differs, 1 if one of the two has problems, which are
    /// shown then.
    Diff(Diff),
}

/// `lazaret package scaffold`
#[derive(Debug, clap::Args)]
pub struct Scaffold {
    /// The directory to make.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// What to begin from.
    #[arg(long, value_enum)]
    pub template: Template,
    /// The package's id. Default: local. and the name of DIR.
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// The profile.
    #[command(flatten)]
    pub profile: Profile,
}

/// A package to begin from.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Template {
    /// Takes the text of a JSON document and gives it formatted.
    JsonFormat,
    /// Takes rows of label and amount, and gives the sum for each label.
    Summary,
    /// Takes a text and gives it back.
    Blank,
}

/// `lazaret package validate`
#[derive(Debug, clap::Args)]
pub struct Validate {
    /// The package's directory.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Print JSON (schema lazaret-package-validate/1).
    #[arg(long)]
    pub json: bool,
}

/// `lazaret package inspect`
#[derive(Debug, clap::Args)]
pub struct Inspect {
    /// The package's directory.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Print JSON (schema lazaret-package-inspect/1; with problems,
    /// lazaret-package-validate/1).
    #[arg(long)]
    pub json: bool,
}

/// `lazaret package diff`
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// The directory of the package as it was.
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The directory of the package as it is to be.
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Print JSON (schema lazaret-package-diff/1; with problems,
    /// lazaret-package-validate/1).
    #[arg(long)]
    pub json: bool,
}
