//! The steps of a run, each with a time limit.

pub(crate) mod first;
pub(crate) mod further;
pub(crate) mod outside;
pub(crate) mod versions;
