//! What `fstat` says of a descriptor.
//!
//! Facts are taken from descriptors only, never from paths: a path may name
//! something else by the time it is used. Two facts of one file that are equal say
//! that nobody changed its content, names, mode or owner in between, as far as the
//! file system's time stamps are fine enough to tell.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

/// What kind of thing an inode is. It never changes during an inode's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link itself.
    SymbolicLink,
    /// A named pipe.
    Fifo,
    /// A UNIX-domain socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// Anything else.
    Other,
}

impl FileKind {
    fn of(metadata: &Metadata) -> Self {
        let kind = metadata.file_type();
        if kind.is_file() {
            Self::Regular
        } else if kind.is_dir() {
            Self::Directory
        } else if kind.is_symlink() {
            Self::SymbolicLink
        } else if kind.is_fifo() {
            Self::Fifo
        } else if kind.is_socket() {
            Self::Socket
        } else if kind.is_char_device() {
            Self::CharacterDevice
        } else if kind.is_block_device() {
            Self::BlockDevice
        } else {
            Self::Other
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regular => "regular file",
            Self::Directory => "directory",
            Self::SymbolicLink => "symbolic link",
            Self::Fifo => "FIFO",
            Self::Socket => "socket",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
            Self::Other => "file of unknown kind",
        })
    }
}

/// What was known of an inode at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The kind of inode.
    pub kind: FileKind,
    /// Permission bits, setuid, setgid and sticky included (07777).
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// How many names the inode has.
    pub links: u64,
    /// The size that the file system states, in bytes. Never trusted alone.
    pub size_bytes: u64,
    /// The device that the inode is on.
    pub device: u64,
    /// The inode's number on that device.
    pub inode: u64,
    /// Last change of the content: seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Last change of the inode: seconds and nanoseconds.
    pub changed: (i64, i64),
}

impl FileFacts {
    /// Takes the facts of an open descriptor.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::of_metadata(&metadata))
    }

    pub(crate) fn of_metadata(metadata: &Metadata) -> Self {
        Self {
            kind: FileKind::of(metadata),
            mode: metadata.mode() & 0o7777,
            uid: metadata.uid(),
            gid: metadata.gid(),
            links: metadata.nlink(),
            size_bytes: metadata.size(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether both describe one inode, whatever happened to it in between.
    #[must_use]
    pub fn same_inode(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode && self.kind == other.kind
    }
}
