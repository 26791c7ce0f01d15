//! Limits on what an HTTP/2 connection holds and does, around hyper and h2.

pub(crate) mod budgets;
pub(crate) mod credit;
pub(crate) mod executor;
pub(crate) mod gather;
pub(crate) mod held;
