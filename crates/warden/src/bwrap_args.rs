//! The one command line that this product gives to bubblewrap.
//!
//! Made from two absolute paths and two descriptor numbers, and from nothing else.
//! Every option is named here with its reason; the order is part of it, because
//! bubblewrap carries out mounts in the order given. Nothing of a package, an input
//! or a setting may ever reach this module, and `--not-a-security-boundary` never
//! stands in it.

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lazaret_launcher::abi;

/// The host name inside: it tells nothing of the host's.
pub const HOST_NAME: &str = "lazaret";

/// Uid and gid inside: the customary *nobody*, which tells nothing of the host's.
pub const INSIDE_ID: u32 = 65534;

/// What varies from run to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BwrapPlan {
    /// The launcher on the host.
    pub launcher: PathBuf,
    /// The one writable inode on the host.
    pub output: PathBuf,
    /// The sealed memfd with the package, open in bwrap under this number.
    pub package_fd: RawFd,
    /// The sealed memfd with the input, open in bwrap under this number.
    pub input_fd: RawFd,
}

/// A path that cannot stand on the command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BwrapPlanError {
    /// Relative, so that it could be taken for an option.
    #[error("{0:?} is not an absolute path")]
    Relative(PathBuf),
    /// It holds a NUL byte.
    #[error("{0:?} holds a NUL byte")]
    Nul(PathBuf),
}

impl BwrapPlan {
    /// The arguments, the program's name first.
    ///
    /// # Errors
    /// [`BwrapPlanError`] names the path.
    pub fn arguments(&self) -> Result<Vec<CString>, BwrapPlanError> {
        let mut line = CommandLine(vec![c"bwrap".to_owned()]);
        // All namespaces there are, each named: --unshare-all would skip what the
        // kernel lacks.
        line.words(&[
            "--unshare-user",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
        ]);
        line.words(&["--unshare-net", "--unshare-cgroup"]);
        // No further user namespace; pid 1 of the PID namespace is the launcher
        // itself, so the kernel empties the namespace when it ends.
        line.words(&[
            "--disable-userns",
            "--as-pid-1",
            "--die-with-parent",
            "--new-session",
        ]);
        line.words(&["--cap-drop", "ALL", "--clearenv"]);
        line.words(&["--uid"])
            .number(INSIDE_ID)
            .words(&["--gid"])
            .number(INSIDE_ID);
        line.words(&["--hostname", HOST_NAME]);
        line.words(&["--ro-bind"])
            .path(&self.launcher)?
            .fixed(abi::LZ_PATH_LAUNCHER);
        // Copies into files that have no name outside; readable by any uid.
        line.words(&["--perms", "0444", "--ro-bind-data"])
            .number(self.package_fd);
        line.fixed(abi::LZ_PATH_PACKAGE);
        line.words(&["--perms", "0444", "--ro-bind-data"])
            .number(self.input_fd);
        line.fixed(abi::LZ_PATH_INPUT);
        line.words(&["--perms", "0555", "--dir"])
            .fixed(abi::LZ_PATH_OUTPUT_DIR);
        line.words(&["--bind"])
            .path(&self.output)?
            .fixed(abi::LZ_PATH_OUTPUT);
        // Last of the mounts: it takes away the right to make any further name.
        line.words(&["--remount-ro", "/", "--chdir", "/", "--"]);
        line.fixed(abi::LZ_PATH_LAUNCHER);
        Ok(line.0)
    }
}

struct CommandLine(Vec<CString>);

impl CommandLine {
    fn words(&mut self, words: &[&str]) -> &mut Self {
        for word in words {
            // Constants of this module, none of which holds a NUL byte.
            self.0.push(CString::new(*word).unwrap_or_default());
        }
        self
    }

    /// A path of the ABI, which ends with a NUL byte there.
    fn fixed(&mut self, path: &[u8]) -> &mut Self {
        self.0.push(
            CStr::from_bytes_until_nul(path)
                .unwrap_or_default()
                .to_owned(),
        );
        self
    }

    fn number(&mut self, number: impl ToString) -> &mut Self {
        self.words(&[&number.to_string()])
    }

    fn path(&mut self, path: &Path) -> Result<&mut Self, BwrapPlanError> {
        if !path.is_absolute() {
            return Err(BwrapPlanError::Relative(path.to_path_buf()));
        }
        let text = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| BwrapPlanError::Nul(path.to_path_buf()))?;
        self.0.push(text);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(launcher: &str, output: &str) -> BwrapPlan {
        BwrapPlan {
            launcher: PathBuf::from(launcher),
            output: PathBuf::from(output),
            package_fd: 10,
            input_fd: 11,
        }
    }

    #[test]
    fn the_command_line_is_exactly_this_one() {
        let arguments = plan("/c/launcher", "/r/result.json").arguments().unwrap();
        let text: Vec<_> = arguments
            .iter()
            .map(|word| word.to_str().unwrap())
            .collect();
        assert_eq!(
            text.join(" "),
            "bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-net \
             --unshare-cgroup --disable-userns --as-pid-1 --die-with-parent --new-session \
             --cap-drop ALL --clearenv --uid 65534 --gid 65534 --hostname lazaret \
             --ro-bind /c/launcher /launcher --perms 0444 --ro-bind-data 10 /package.py \
             --perms 0444 --ro-bind-data 11 /input.json --perms 0555 --dir /out \
             --bind /r/result.json /out/result.json --remount-ro / --chdir / -- /launcher"
        );
    }

    #[test]
    fn a_path_cannot_become_an_option_or_end_early() {
        assert_eq!(
            plan("--bind", "/r").arguments(),
            Err(BwrapPlanError::Relative(PathBuf::from("--bind")))
        );
        assert_eq!(
            plan("/c", "/r\0--bind").arguments(),
            Err(BwrapPlanError::Nul(PathBuf::from("/r\0--bind")))
        );
        // A line feed, a blank or a leading hyphen further on is only a name.
        let odd = "/c/\n--bind /etc /etc";
        assert!(
            plan(odd, "/r")
                .arguments()
                .unwrap()
                .contains(&CString::new(odd).unwrap())
        );
    }
}
