//! The durable table of tasks, packages and sessions, in one SQLite file.

#![forbid(unsafe_code)]
