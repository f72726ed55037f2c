//! File systems that keep their promises, by `statfs` magic.
//!
//! What Lazaret relies on: exclusive creation, atomic rename, one inode number per
//! inode, change times, and fsync that means it. Network file systems and user-space
//! ones break one or the other (DESIGN.md section 3, step 3); they are refused by
//! name, and so is what nobody has judged.
//!
//! The table is data. A type is added to it only with the facts that make it fit.

use std::os::fd::AsFd;

use nix::sys::statfs::fstatfs;

use crate::error::{CustodyError, Refusal};
use crate::held::HeldDir;
use crate::resolve::io_error;

/// What is known of a file system type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Local, with inodes of its own.
    Fit(&'static str),
    /// Known to break a promise.
    Unfit(&'static str),
    /// Not in the table.
    Unknown,
}

/// Magic numbers of linux/magic.h and of the file systems' own headers.
const TABLE: &[(u64, Verdict)] = &[
    (0xEF53, Verdict::Fit("ext2/ext3/ext4")),
    (0x5846_5342, Verdict::Fit("xfs")),
    (0x9123_683E, Verdict::Fit("btrfs")),
    (0xF2F5_2010, Verdict::Fit("f2fs")),
    (0xCA45_1A4E, Verdict::Fit("bcachefs")),
    (0x2FC1_2FC1, Verdict::Fit("zfs")),
    (0x0102_1994, Verdict::Fit("tmpfs")),
    (0x8584_58F6, Verdict::Fit("ramfs")),
    (0x794C_7630, Verdict::Fit("overlayfs")),
    (0x3153_464A, Verdict::Fit("jfs")),
    (0x5265_4973, Verdict::Fit("reiserfs")),
    // Read-only images: nothing is written there, a closure may lie there.
    (0x7371_7368, Verdict::Fit("squashfs")),
    (0xE0F5_E1E2, Verdict::Fit("erofs")),
    // The server decides about rename, locks and times.
    (0x6969, Verdict::Unfit("NFS")),
    (0x517B, Verdict::Unfit("SMB")),
    (0xFF53_4D42, Verdict::Unfit("CIFS")),
    (0xFE53_4D42, Verdict::Unfit("SMB2")),
    (0x0102_1997, Verdict::Unfit("9p")),
    (0x00C3_6400, Verdict::Unfit("Ceph")),
    (0x5346_414F, Verdict::Unfit("AFS")),
    (0x6B41_4653, Verdict::Unfit("AFS")),
    (0x7375_7245, Verdict::Unfit("Coda")),
    (0x564C, Verdict::Unfit("NCP")),
    (0x0BD0_0BD0, Verdict::Unfit("Lustre")),
    (0x0116_1970, Verdict::Unfit("GFS2")),
    (0x7461_636F, Verdict::Unfit("OCFS2")),
    // A process answers; virtiofs has the same number.
    (0x6573_5546, Verdict::Unfit("FUSE or virtiofs")),
    (0x786F_4256, Verdict::Unfit("a VirtualBox shared folder")),
    (0xBACB_ACBC, Verdict::Unfit("a VMware shared folder")),
    // No owners, no modes, no links.
    (0x4D44, Verdict::Unfit("FAT")),
    (0x2011_BAB0, Verdict::Unfit("exFAT")),
    (0x5346_544E, Verdict::Unfit("NTFS")),
    (0x7366_746E, Verdict::Unfit("NTFS")),
    // Not files in the sense meant here.
    (0x9FA0, Verdict::Unfit("procfs")),
    (0x6265_6572, Verdict::Unfit("sysfs")),
    (0x0027_E0EB, Verdict::Unfit("cgroup")),
    (0x6367_7270, Verdict::Unfit("cgroup2")),
];

/// Judges a magic number. Only its low 32 bits are looked at: the field is signed
/// and of another width elsewhere, and no type has more.
#[must_use]
pub fn judge(magic: u64) -> Verdict {
    let magic = magic & 0xFFFF_FFFF;
    TABLE
        .iter()
        .find(|(known, _)| *known == magic)
        .map_or(Verdict::Unknown, |(_, verdict)| *verdict)
}

/// The name of the file system that a held directory is on, if it is a fit one.
///
/// # Errors
/// [`Refusal::Filesystem`], [`Refusal::FilesystemUnknown`], or what statfs(2) says.
pub fn require_fit(dir: &HeldDir) -> Result<&'static str, CustodyError> {
    let magic = magic_of(dir)
        .map_err(|errno| CustodyError::new(dir.path(), io_error("statfs", errno.into())))?;
    match judge(magic) {
        Verdict::Fit(name) => Ok(name),
        Verdict::Unfit(name) => Err(CustodyError::new(dir.path(), Refusal::Filesystem(name))),
        Verdict::Unknown => Err(CustodyError::new(
            dir.path(),
            Refusal::FilesystemUnknown(magic & 0xFFFF_FFFF),
        )),
    }
}

#[cfg(target_os = "linux")]
fn magic_of(dir: &HeldDir) -> nix::Result<u64> {
    // The field's width and sign differ between C libraries; the low 32 bits do not.
    let kind = fstatfs(dir.as_fd())?.filesystem_type().0;
    #[allow(
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "a bit pattern, not a number; its type depends on the C library"
    )]
    Ok(kind as u64)
}

/// Other systems name their file systems instead; the local ones are few.
#[cfg(not(target_os = "linux"))]
fn magic_of(dir: &HeldDir) -> nix::Result<u64> {
    const TMPFS: u64 = 0x0102_1994;
    let found = fstatfs(dir.as_fd())?;
    match found.filesystem_type_name() {
        "apfs" | "hfs" | "ufs" | "zfs" | "tmpfs" => Ok(TMPFS),
        "nfs" => Ok(0x6969),
        "smbfs" => Ok(0x517B),
        _ => Ok(0),
    }
}

/// Whether programs may not be started from the file system of `dir`.
///
/// # Errors
/// What statvfs(3) says.
pub fn is_noexec(dir: &HeldDir) -> Result<bool, CustodyError> {
    let found = nix::sys::statvfs::fstatvfs(dir.as_fd())
        .map_err(|errno| CustodyError::new(dir.path(), io_error("statvfs", errno.into())))?;
    #[cfg(target_os = "linux")]
    return Ok(found
        .flags()
        .contains(nix::sys::statvfs::FsFlags::ST_NOEXEC));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = found;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ancestry::Trust;

    #[test]
    fn network_and_user_space_file_systems_are_refused_by_name() {
        for (magic, name) in [
            (0x6969, "NFS"),
            (0xFF53_4D42, "CIFS"),
            (0xFE53_4D42, "SMB2"),
            (0x6573_5546, "FUSE or virtiofs"),
            (0x0102_1997, "9p"),
        ] {
            assert_eq!(judge(magic), Verdict::Unfit(name));
        }
    }

    #[test]
    fn a_sign_extended_magic_is_the_same_type() {
        assert_eq!(judge(0xFFFF_FFFF_9123_683E), Verdict::Fit("btrfs"));
    }

    #[test]
    fn an_unknown_type_is_refused() {
        assert_eq!(judge(0x1234_5678), Verdict::Unknown);
    }

    #[test]
    fn every_magic_is_listed_once() {
        let mut seen = std::collections::BTreeSet::new();
        assert!(TABLE.iter().all(|(magic, _)| seen.insert(*magic)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn procfs_is_refused_by_asking_the_kernel() {
        let held = HeldDir::open_trusted(std::path::Path::new("/proc"), Trust::acting()).unwrap();
        let error = require_fit(&held).unwrap_err();
        assert!(
            matches!(error.refusal, Refusal::Filesystem("procfs")),
            "{error}"
        );
    }
}
