//! Limits on the memory and work of an HTTP/2 connection, in addition to those of hyper and h2.

pub(crate) mod budgets;
pub(crate) mod credit;
pub(crate) mod executor;
pub(crate) mod gather;
pub(crate) mod held;
mod hpack;
pub(crate) mod inspector;
pub(crate) mod interim;
pub(crate) mod tags;
pub(crate) mod tunnel;
