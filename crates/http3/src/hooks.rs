//! Internal parts for the server of courser, which applies the same limits to HTTP/2.
//!
//! They are not part of the public API and may change at any time.

pub use crate::budget::{CancellationBudget, FrameBudget};
pub use crate::fields::{Target, is_connection_specific, must_be_escaped, put_escaped};
