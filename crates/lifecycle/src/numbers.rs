//! Numbers that only grow, and priorities.
//!
//! Each fits a signed 64-bit column. Arithmetic never wraps: at the end of the range there is no
//! next number, and the caller refuses.

use std::fmt;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The first number of all.
            pub const FIRST: Self = Self(1);

            /// The number, if it is in the range.
            pub const fn new(number: u64) -> Option<Self> {
                if number <= i64::MAX.cast_unsigned() { Some(Self(number)) } else { None }
            }

            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The next number, if there is one.
            pub const fn next(self) -> Option<Self> {
                Self::new(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

counters! {
    /// The epoch of the Root; a rotation makes the next one.
    Epoch;
    /// The revision of a Goal; each change makes the next one.
    Revision;
    /// The generation of a package's pointer; each change of the pointer makes the next one.
    Generation;
    /// The number that makes every older holder's write fail.
    Fence;
}

impl Generation {
    /// The generation of a pointer that has never been set.
    pub const ZERO: Self = Self(0);
}

/// How urgent a task is: 0 to 9, and 9 goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// What a task has if nothing is said.
    pub const DEFAULT: Self = Self(5);

    /// The priority, if it is in the range.
    pub const fn new(number: u8) -> Option<Self> {
        if number <= 9 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_ends_and_never_wraps() {
        let last = i64::MAX.cast_unsigned();
        assert_eq!(Fence::new(last).map(Fence::get), Some(last));
        assert_eq!(Fence::new(last).and_then(Fence::next), None);
        assert_eq!(Fence::new(last + 1), None);
        assert_eq!(Generation::ZERO.next(), Some(Generation::FIRST));
    }

    #[test]
    fn a_priority_is_one_digit() {
        assert_eq!(Priority::new(9).map(Priority::get), Some(9));
        assert_eq!(Priority::new(10), None);
    }
}
