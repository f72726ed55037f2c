//! The refusal that is nobody's fault in the tree: something outside is missing.
//!
//! Blocked is not failed: nothing was substituted, nothing was half done, and
//! the text says what was tried and what would help. It is exit code 3.

use std::fmt;

/// What could not be had, everything that was tried, and what to do.
#[derive(Debug)]
pub struct Blocked {
    /// One line: what is missing.
    pub what: String,
    /// Each thing that was tried, with its cause of failure.
    pub tried: Vec<String>,
    /// What somebody can do about it.
    pub hints: Vec<String>,
}

impl fmt::Display for Blocked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Blocked: {}", self.what)?;
        for line in &self.tried {
            write!(formatter, "\n  tried {line}")?;
        }
        for line in &self.hints {
            write!(formatter, "\n  hint: {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Blocked {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_everything_that_was_tried_and_what_helps() {
        let blocked = Blocked {
            what: "libcap-2.75.tar.xz cannot be had".to_owned(),
            tried: vec![
                "cache: not there".to_owned(),
                "release: could not resolve host".to_owned(),
            ],
            hints: vec!["give --source-dir DIR".to_owned()],
        };
        assert_eq!(
            blocked.to_string(),
            "Blocked: libcap-2.75.tar.xz cannot be had\n  tried cache: not there\n  tried release: \
             could not resolve host\n  hint: give --source-dir DIR"
        );
    }
}
