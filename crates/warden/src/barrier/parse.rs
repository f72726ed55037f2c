//! The kernel's texts under /proc/PID, turned into values. Pure.
//!
//! A text of another form is an error, never a guess: a field that is missing,
//! doubled or not a number refuses the run.

use std::collections::BTreeMap;

use crate::limits::Resource;

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {detail}")]
pub struct ParseError {
    /// Which file of /proc/PID.
    pub file: &'static str,
    /// What is wrong with it.
    pub detail: String,
}

fn error(file: &'static str, detail: impl Into<String>) -> ParseError {
    ParseError {
        file,
        detail: detail.into(),
    }
}

/// /proc/PID/status: fields by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status<'a>(BTreeMap<&'a str, &'a str>);

/// Reads /proc/PID/status.
///
/// # Errors
/// [`ParseError`] for a line without a colon or a field that comes twice.
pub fn status(text: &str) -> Result<Status<'_>, ParseError> {
    let mut fields = BTreeMap::new();
    for line in text.lines() {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| error("status", "a line has no colon"))?;
        if fields.insert(name, value.trim()).is_some() {
            return Err(error("status", format!("field {name} comes twice")));
        }
    }
    Ok(Status(fields))
}

impl<'a> Status<'a> {
    /// A field that may be missing on some kernels.
    #[must_use]
    pub fn optional(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// A field that has to be there.
    ///
    /// # Errors
    /// [`ParseError`] if it is not.
    pub fn field(&self, name: &str) -> Result<&'a str, ParseError> {
        self.optional(name)
            .ok_or_else(|| error("status", format!("field {name} is missing")))
    }

    /// A field of one decimal number.
    ///
    /// # Errors
    /// [`ParseError`] if it is missing or something else.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, ParseError> {
        self.field(name)?
            .parse()
            .map_err(|_| error("status", format!("field {name} is not a number")))
    }

    /// A field of decimal numbers, possibly none.
    ///
    /// # Errors
    /// [`ParseError`] if it is missing or something else.
    pub fn numbers<T: std::str::FromStr>(&self, name: &str) -> Result<Vec<T>, ParseError> {
        self.field(name)?
            .split_whitespace()
            .map(|word| {
                word.parse()
                    .map_err(|_| error("status", format!("field {name} is not numbers")))
            })
            .collect()
    }

    /// A field of one hexadecimal number.
    ///
    /// # Errors
    /// [`ParseError`] if it is missing or something else.
    pub fn bits(&self, name: &str) -> Result<u64, ParseError> {
        u64::from_str_radix(self.field(name)?, 16)
            .map_err(|_| error("status", format!("field {name} is not hexadecimal")))
    }

    /// A field of one number of kibibytes, in bytes.
    #[must_use]
    pub fn kibibytes(&self, name: &str) -> Option<u64> {
        let number: u64 = self
            .optional(name)?
            .strip_suffix(" kB")?
            .trim()
            .parse()
            .ok()?;
        number.checked_mul(1024)
    }
}

/// What is used of /proc/PID/stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Field 1.
    pub pid: i32,
    /// Field 6: the session.
    pub session: i32,
    /// Field 7: the controlling terminal; 0 if none.
    pub terminal: i32,
    /// Field 22: when it started, in clock ticks since boot.
    pub start_time_ticks: u64,
}

/// Reads /proc/PID/stat. The name in it may hold anything, blanks and parentheses
/// included, so the fields are counted from its last closing parenthesis.
///
/// # Errors
/// [`ParseError`] for another form.
pub fn stat(text: &str) -> Result<Stat, ParseError> {
    let bad = |detail: &str| error("stat", detail);
    let (pid, _) = text.split_once(' ').ok_or_else(|| bad("no fields"))?;
    let (_, rest) = text.rsplit_once(") ").ok_or_else(|| bad("no name"))?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // `rest` begins with field 3.
    let field = |number: usize| {
        fields
            .get(number - 3)
            .copied()
            .ok_or_else(|| bad("too few fields"))
    };
    Ok(Stat {
        pid: pid.parse().map_err(|_| bad("pid is not a number"))?,
        session: field(6)?
            .parse()
            .map_err(|_| bad("session is not a number"))?,
        terminal: field(7)?
            .parse()
            .map_err(|_| bad("terminal is not a number"))?,
        start_time_ticks: field(22)?
            .parse()
            .map_err(|_| bad("start time is not a number"))?,
    })
}

/// The names of the rows of /proc/PID/limits, in the order of [`Resource::ALL`].
const LIMIT_NAMES: [&str; 16] = [
    "Max cpu time",
    "Max file size",
    "Max data size",
    "Max stack size",
    "Max core file size",
    "Max resident set",
    "Max processes",
    "Max open files",
    "Max locked memory",
    "Max address space",
    "Max file locks",
    "Max pending signals",
    "Max msgqueue size",
    "Max nice priority",
    "Max realtime priority",
    "Max realtime timeout",
];

/// Soft and hard value of one limit; none is *unlimited*.
pub type LimitRow = (Resource, Option<u64>, Option<u64>);

/// Reads /proc/PID/limits: exactly the sixteen rows, in their order.
///
/// # Errors
/// [`ParseError`] for another row or value.
pub fn limits(text: &str) -> Result<Vec<LimitRow>, ParseError> {
    let mut rows = text.lines().skip(1);
    let mut found = Vec::with_capacity(16);
    for (resource, name) in Resource::ALL.into_iter().zip(LIMIT_NAMES) {
        let bad = || error("limits", format!("no row {name:?} in its place"));
        let row = rows
            .next()
            .and_then(|row| row.strip_prefix(name))
            .ok_or_else(bad)?;
        let mut values = row.split_whitespace();
        let mut value = || match values.next() {
            Some("unlimited") => Ok(None),
            Some(number) => number.parse().map(Some).map_err(|_| bad()),
            None => Err(bad()),
        };
        found.push((resource, value()?, value()?));
    }
    match rows.next() {
        None => Ok(found),
        Some(_) => Err(error("limits", "more rows than known")),
    }
}

/// One line of /proc/PID/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its id.
    pub id: u32,
    /// The id of the mount that it lies on.
    pub parent: u32,
    /// Where it is mounted, seen from the process's root.
    pub point: String,
    /// Its own options, sorted.
    pub options: Vec<String>,
    /// Tags of propagation (`shared:N`, `master:N`, …).
    pub propagation: Vec<String>,
    /// Type of the file system.
    pub file_system: String,
}

/// Reads /proc/PID/mountinfo (proc_pid_mountinfo(5)).
///
/// # Errors
/// [`ParseError`] for a line of another form.
pub fn mounts(text: &str) -> Result<Vec<Mount>, ParseError> {
    text.lines().map(mount).collect()
}

fn mount(line: &str) -> Result<Mount, ParseError> {
    let bad = |detail: &str| error("mountinfo", detail);
    let mut words = line.split(' ');
    let mut next = || {
        words
            .next()
            .filter(|w| !w.is_empty())
            .ok_or_else(|| bad("too few fields"))
    };
    let id = next()?.parse().map_err(|_| bad("id is not a number"))?;
    let parent = next()?.parse().map_err(|_| bad("parent is not a number"))?;
    let (_device, _root) = (next()?, next()?);
    let point = unescape(next()?).ok_or_else(|| bad("mount point is badly escaped"))?;
    let mut options: Vec<String> = next()?.split(',').map(str::to_owned).collect();
    options.sort();
    let mut propagation = Vec::new();
    loop {
        match next()? {
            "-" => break,
            tag => propagation.push(tag.to_owned()),
        }
    }
    let file_system = next()?.to_owned();
    Ok(Mount {
        id,
        parent,
        point,
        options,
        propagation,
        file_system,
    })
}

/// Blank, tab, line feed and backslash stand as three octal digits.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'\\' {
            let (digits, tail) = tail.split_at_checked(3)?;
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 8).ok()?);
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Reads /proc/PID/uid_map or gid_map: inside, outside, count.
///
/// # Errors
/// [`ParseError`] for a line that is not three numbers.
pub fn id_map(text: &str) -> Result<Vec<[u32; 3]>, ParseError> {
    text.lines()
        .map(|line| {
            let numbers: Vec<u32> = line
                .split_whitespace()
                .map_while(|word| word.parse().ok())
                .collect();
            match <[u32; 3]>::try_from(numbers) {
                Ok(numbers) if line.split_whitespace().count() == 3 => Ok(numbers),
                _ => Err(error("uid_map", "a line is not three numbers")),
            }
        })
        .collect()
}

/// Reads the names of the interfaces out of /proc/PID/net/dev, sorted.
///
/// # Errors
/// [`ParseError`] for a line without a colon.
pub fn interfaces(text: &str) -> Result<Vec<String>, ParseError> {
    let mut names = text
        .lines()
        .skip(2)
        .map(|line| {
            line.split_once(':')
                .map(|(name, _)| name.trim().to_owned())
                .ok_or_else(|| error("net/dev", "a line has no colon"))
        })
        .collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn our_own_files_are_understood() {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap();
        let text = read("status");
        let status = status(&text).unwrap();
        assert_eq!(status.number::<u32>("Tgid").unwrap(), std::process::id());
        assert_eq!(status.numbers::<u32>("Uid").unwrap().len(), 4);
        assert!(status.bits("CapBnd").is_ok());
        assert!(status.kibibytes("VmHWM").unwrap() > 0);
        assert_eq!(
            stat(&read("stat")).unwrap().pid.cast_unsigned(),
            std::process::id()
        );
        assert_eq!(limits(&read("limits")).unwrap().len(), 16);
        assert!(
            mounts(&read("mountinfo"))
                .unwrap()
                .iter()
                .any(|mount| mount.point == "/")
        );
        assert!(!id_map(&read("uid_map")).unwrap().is_empty());
        assert!(
            interfaces(&read("net/dev"))
                .unwrap()
                .contains(&"lo".to_owned())
        );
    }

    #[test]
    fn a_process_name_cannot_forge_fields() {
        let plain = "7 (a) S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0";
        let forged = plain.replace("(a)", "(a) S 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 (b)");
        assert_eq!(stat(plain), stat(&forged));
        let found = stat(plain).unwrap();
        assert_eq!((found.pid, found.session, found.terminal), (7, 3, 0));
        assert_eq!(found.start_time_ticks, 4242);
    }

    #[test]
    fn a_mount_point_is_unescaped_and_its_tags_are_kept() {
        let line = "36 35 98:0 /a\\040b /mnt\\040x\\134y rw,nosuid master:1 propagate_from:2 - ext4 /dev/x rw";
        let mount = mounts(line).unwrap().remove(0);
        assert_eq!(mount.point, "/mnt x\\y");
        assert_eq!(mount.options, ["nosuid", "rw"]);
        assert_eq!(mount.propagation, ["master:1", "propagate_from:2"]);
        assert_eq!(mount.file_system, "ext4");
        for bad in [
            "",
            "36 35",
            "36 35 98:0 / /m rw master:1",
            "x 35 98:0 / /m rw - e d rw",
        ] {
            assert!(mount_of(bad).is_err(), "{bad:?}");
        }
    }

    fn mount_of(line: &str) -> Result<Mount, ParseError> {
        super::mount(line)
    }

    #[test]
    fn a_doubled_or_missing_field_is_no_status() {
        assert!(status("Name:\tx\nSeccomp:\t2\nSeccomp:\t2\n").is_err());
        assert!(status("no colon").is_err());
        assert!(status("Name:\tx\n").unwrap().field("Seccomp").is_err());
        assert!(
            status("Threads:\t1x\n")
                .unwrap()
                .number::<u32>("Threads")
                .is_err()
        );
    }

    #[test]
    fn limits_in_another_order_or_number_are_refused() {
        let text = std::fs::read_to_string("/proc/self/limits").unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(1, 2);
        assert!(limits(&lines.join("\n")).is_err());
        assert!(limits(&format!("{text}Max new thing 1 1 x\n")).is_err());
        assert!(limits(&text.lines().take(16).collect::<Vec<_>>().join("\n")).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[ -~\n\\\\]{0,300}") {
            let _ = status(&text);
            let _ = stat(&text);
            let _ = limits(&text);
            let _ = mounts(&text);
            let _ = id_map(&text);
            let _ = interfaces(&text);
        }

        #[test]
        fn an_id_map_is_three_numbers_a_line(maps in proptest::collection::vec(any::<[u32; 3]>(), 0..5)) {
            let text: String = maps.iter().map(|[a, b, c]| format!("{a:>10} {b:>10} {c:>10}\n")).collect();
            prop_assert_eq!(id_map(&text).unwrap(), maps.clone());
            for bad in ["1 2\n", "1 2 3 4\n", "1 2 x\n"] {
                let longer = text.clone() + bad;
                prop_assert!(id_map(&longer).is_err());
            }
        }
    }
}
