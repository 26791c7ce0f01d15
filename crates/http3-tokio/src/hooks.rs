//! Operations for the server and the client of courser.
//!
//! None of this is part of the public API, and it changes without notice.

pub use courser_http3::hooks::{CancellationBudget, FrameBudget};
use http::Response;

pub use crate::first_poll::{First, FirstPolls};

use crate::{Interim, OnInterim};

/// Returns the [`Interim`] of a request whose protocol cannot send interim responses here.
pub fn unsupported_interim() -> Interim {
    Interim::unsupported()
}

/// Passes an interim response to the function in `on_interim`.
pub fn call(on_interim: &OnInterim, response: Response<()>) {
    on_interim.call(response);
}
