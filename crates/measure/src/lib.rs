//! What the measuring tools of courser share.
//!
//! [`CpuClock`] counts the CPU time of a thread or a process. [`pin_to`] keeps a thread on one core, so
//! that it is not moved while it is measured.

mod cpu;

pub use self::cpu::{CpuClock, allowed_cores, pin_to};
