//! The time limit of one request.

use std::time::Duration;

/// The time limit of one request, in the extensions of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestTimeout(pub Duration);
