//! Step 6: bubblewrap and what it becomes, as two traced processes.
//!
//! bwrap is started by its held descriptor and seized before its first instruction,
//! with every child following: the warden knows each process from its birth, learns
//! the true end of each from the kernel, and the kernel kills all of them should the
//! warden die, at whatever moment. There are exactly two: bwrap itself, and its
//! child, which sets up the namespaces and then becomes the launcher.

use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::thread::JoinHandle;

use lazaret_contract::digest::Sha256Digest;

use crate::barrier::judge::Inode;
use crate::bwrap_args::BwrapPlan;
use crate::ending::{Ending, ProcessEnd};
use crate::inode::InodeFacts;
use crate::record::{ReapedProcess, Role};
use crate::stage::{OUTPUT_NAME, RunDirHeld, Stage, digest_of};
use crate::streams::StreamBuffer;
use crate::sys::{self, ExecPlan, PidFd, TraceOptions, Tracee, Usage};

/// A process of the sandbox.
#[derive(Debug)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its descriptor.
    pub pidfd: PidFd,
    /// The handle for tracing it.
    pub tracee: Tracee,
    /// Whether it has become the program that it was started for.
    pub became_program: bool,
    /// What its exit event said, before it was reaped.
    pub exit: Option<ExitFacts>,
    /// How it ended, once it was reaped.
    pub end: Option<ProcessEnd>,
    /// What it used, once it was reaped.
    pub usage: Usage,
}

impl Process {
    fn new(pid: i32, tracee: Tracee) -> io::Result<Self> {
        Ok(Self {
            pid,
            pidfd: PidFd::open(pid)?,
            tracee,
            became_program: false,
            exit: None,
            end: None,
            usage: Usage::default(),
        })
    }

    /// Whether it is about to end or has ended.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.exit.is_some() || self.end.is_some()
    }
}

/// What the kernel says at a process's exit event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitFacts {
    /// The true status.
    pub end: ProcessEnd,
    /// The system call that it was in.
    pub registers: Option<sys::ExitRegisters>,
    /// CPU time as the limit counts it, in nanoseconds.
    pub limited_cpu_time_ns: Option<u64>,
    /// Largest resident set, in bytes.
    pub peak_memory_bytes: Option<u64>,
    /// Page tables, in bytes.
    pub page_tables_bytes: Option<u64>,
}

/// The program that the launcher's process became, and its digest in the making.
#[derive(Debug)]
pub struct Executable {
    /// Its /proc/PID, held from that moment.
    pub proc_dir: File,
    /// What was known of it at that moment.
    pub facts: InodeFacts,
    digest: Hashing,
}

#[derive(Debug)]
enum Hashing {
    Running(JoinHandle<io::Result<Sha256Digest>>),
    Known(Sha256Digest),
    Failed,
}

impl Executable {
    /// Looks at what a process runs, right after it became it. Its file can be
    /// written by nobody from now on (ETXTBSY), so it is hashed beside the start of
    /// the interpreter, not in front of it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn of(pid: i32) -> io::Result<Self> {
        let proc_dir = File::open(format!("/proc/{pid}"))?;
        let file = sys::open_at(proc_dir.as_fd(), c"exe")?;
        let facts = InodeFacts::of(&file.metadata()?);
        let limit = facts.size_bytes;
        let copy = file.try_clone()?;
        let thread = std::thread::Builder::new()
            .name("hash".to_owned())
            .spawn(move || digest_of(&copy, limit));
        let digest = match thread {
            Ok(handle) => Hashing::Running(handle),
            // The user may have no thread left: hash it here.
            Err(_) => Hashing::Known(digest_of(&file, limit)?),
        };
        Ok(Self {
            proc_dir,
            facts,
            digest,
        })
    }

    /// The digest, if it has been waited for.
    #[must_use]
    pub fn known_sha256(&self) -> Option<Sha256Digest> {
        match &self.digest {
            Hashing::Known(digest) => Some(*digest),
            Hashing::Running(_) | Hashing::Failed => None,
        }
    }

    /// Waits for the digest.
    ///
    /// # Errors
    /// What reading the file said.
    pub fn sha256(&mut self) -> io::Result<Sha256Digest> {
        match std::mem::replace(&mut self.digest, Hashing::Failed) {
            Hashing::Running(handle) => {
                let digest = handle
                    .join()
                    .map_err(|_| io::Error::other("the hashing thread ended early"))??;
                self.digest = Hashing::Known(digest);
                Ok(digest)
            }
            Hashing::Known(digest) => {
                self.digest = Hashing::Known(digest);
                Ok(digest)
            }
            Hashing::Failed => Err(io::Error::other("the program could not be hashed")),
        }
    }
}

/// bwrap, its child, and the pipes to them.
#[derive(Debug)]
pub struct Sandbox {
    /// The outer bwrap.
    pub bwrap: Process,
    /// Its child, once there is one.
    pub launcher: Option<Process>,
    /// What the child runs, once it is the launcher.
    pub executable: Option<Executable>,
    /// Set when bwrap was about to end and its child was not.
    pub bwrap_lost: Option<ProcessEnd>,
    /// The write end of the launcher's standard input, until the release.
    pub stdin: Option<File>,
    /// Its standard output.
    pub stdout: StreamBuffer,
    /// Its standard error.
    pub stderr: StreamBuffer,
    /// The inodes of the three pipes.
    pub pipes: [Inode; 3],
    /// Where the forked child says why it could not become bwrap.
    status: PipeReader,
    /// When it was started.
    pub started_ns: u64,
    /// When the launcher's process was reaped.
    pub ended_ns: Option<u64>,
    /// Everything that was reaped.
    pub reaped: Vec<ReapedProcess>,
}

impl Sandbox {
    /// Starts bwrap on what was staged, and sends the plan to the launcher-to-be.
    ///
    /// # Errors
    /// [`Ending::SetupFailed`] with the step.
    pub fn start(stage: &Stage, run: &RunDirHeld, plan: &[u8]) -> Result<Self, Ending> {
        let step = |name: &'static str| move |error: io::Error| Ending::setup(name, error);
        let (stdin_read, stdin_write) = io::pipe().map_err(step("pipes"))?;
        let (stdout_read, stdout_write) = io::pipe().map_err(step("pipes"))?;
        let (stderr_read, stderr_write) = io::pipe().map_err(step("pipes"))?;
        let (go_read, go_write) = io::pipe().map_err(step("pipes"))?;
        let (mut status_read, status_write) = io::pipe().map_err(step("pipes"))?;
        let arguments = BwrapPlan {
            launcher: stage.launcher.path.clone(),
            output: run.dir.path().join(OUTPUT_NAME),
            package_fd: stage.package.as_raw_fd(),
            input_fd: stage.input.as_raw_fd(),
        }
        .arguments()
        .map_err(|error| Ending::setup("bwrap arguments", error))?;
        let started_ns = sys::boottime_ns().map_err(step("clock"))?;
        let forked = sys::fork_exec(&ExecPlan {
            program: stage.bwrap.file.as_fd(),
            arguments: &arguments,
            standard: [
                stdin_read.as_fd(),
                stdout_write.as_fd(),
                stderr_write.as_fd(),
            ],
            inherited: &[stage.package.as_fd(), stage.input.as_fd()],
            go: go_read.as_fd(),
            go_other_end: go_write.as_fd(),
            status: status_write.as_fd(),
        })
        .map_err(step("fork"))?;
        let pipes = [
            inode_of(stdin_read.as_fd()).map_err(step("pipes"))?,
            inode_of(stdout_read.as_fd()).map_err(step("pipes"))?,
            inode_of(stderr_read.as_fd()).map_err(step("pipes"))?,
        ];
        // Our copies of the child's ends close here, so that an end of file is one.
        drop((
            stdin_read,
            stdout_write,
            stderr_write,
            go_read,
            status_write,
        ));
        // Until it says so it is as undumpable as the warden, and cannot be seized.
        status_read
            .read_exact(&mut [0])
            .map_err(step("wait for the child"))?;
        let mut sandbox = Self::adopt(
            forked.pid,
            started_ns,
            pipes,
            status_read,
            Streams {
                stdin: File::from(OwnedFd::from(stdin_write)),
                stdout: File::from(OwnedFd::from(stdout_read)),
                stderr: File::from(OwnedFd::from(stderr_read)),
            },
        )
        .map_err(step("seize bwrap"))?;
        // 128 bytes into an empty pipe: cannot block, cannot be short (pipe(7)).
        if let Some(stdin) = &mut sandbox.stdin {
            stdin.write_all(plan).map_err(step("send the plan"))?;
        }
        let mut go = go_write;
        go.write_all(&[1]).map_err(step("let bwrap go"))?;
        Ok(sandbox)
    }

    fn adopt(
        pid: i32,
        started_ns: u64,
        pipes: [Inode; 3],
        status: PipeReader,
        streams: Streams,
    ) -> io::Result<Self> {
        sys::set_nonblocking(status.as_fd())?;
        let tracee = Tracee::seize(
            pid,
            TraceOptions {
                follow_children: true,
            },
        )?;
        Ok(Self {
            bwrap: Process::new(pid, tracee)?,
            launcher: None,
            executable: None,
            bwrap_lost: None,
            stdin: Some(streams.stdin),
            stdout: StreamBuffer::new(streams.stdout)?,
            stderr: StreamBuffer::new(streams.stderr)?,
            pipes,
            status,
            started_ns,
            ended_ns: None,
            reaped: Vec::new(),
        })
    }

    /// Why the forked child could not become bwrap, if it said so.
    pub fn exec_failure(&self) -> Option<io::Error> {
        let mut bytes = [0; 4];
        let mut pipe = &self.status;
        pipe.read_exact(&mut bytes).ok()?;
        Some(io::Error::from_raw_os_error(i32::from_le_bytes(bytes)))
    }

    /// The process with this id.
    pub fn process_mut(&mut self, pid: i32) -> Option<(Role, &mut Process)> {
        if self.bwrap.pid == pid {
            return Some((Role::Bwrap, &mut self.bwrap));
        }
        match &mut self.launcher {
            Some(launcher) if launcher.pid == pid => Some((Role::Launcher, launcher)),
            _ => None,
        }
    }

    /// Takes notice of a child of bwrap's that the kernel has attached.
    ///
    /// # Errors
    /// [`Ending::UnexpectedProcess`] for any but the first.
    pub fn meet_child(&mut self, pid: i32) -> Result<(), Ending> {
        match &self.launcher {
            Some(launcher) if launcher.pid == pid => Ok(()),
            Some(_) => Err(Ending::UnexpectedProcess),
            None => {
                let tracee = Tracee::attached_with_its_parent(pid);
                let process = Process::new(pid, tracee)
                    .map_err(|error| Ending::warden("open the launcher's descriptor", error))?;
                self.launcher = Some(process);
                // It may show only after bwrap's end, if bwrap was killed while it
                // made it; then it waits for a word that never comes.
                let exit = self.bwrap.exit.map(|exit| exit.end);
                if let Some(end) = self.bwrap.end.or(exit) {
                    self.bwrap_lost = Some(end);
                }
                Ok(())
            }
        }
    }

    /// What the launcher's process said at its end: the exit event's word, or the
    /// wait status where there was no event.
    #[must_use]
    pub fn launcher_end(&self) -> Option<ProcessEnd> {
        let launcher = self.launcher.as_ref()?;
        let end = launcher.end?;
        Some(launcher.exit.map_or(end, |exit| exit.end))
    }

    /// All processes that were started and are known.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        std::iter::once(&self.bwrap).chain(&self.launcher)
    }
}

struct Streams {
    stdin: File,
    stdout: File,
    stderr: File,
}

fn inode_of(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<Inode> {
    let facts = File::from(fd.try_clone_to_owned()?).metadata()?;
    Ok((facts.dev(), facts.ino()))
}
