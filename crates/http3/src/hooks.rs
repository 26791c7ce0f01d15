//! Parts for the server of courser, which has the same limits over HTTP/2.
//!
//! None of this is part of the public API, and it changes without notice.

pub use crate::budget::{CancellationBudget, FrameBudget};
