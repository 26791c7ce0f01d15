//! Systems without TUN devices.

use crate::{Config, Event, Failure, Plan};

/// Returns an error: there are no TUN devices here.
///
/// # Errors
/// Always.
pub async fn run(_: &Config, _: &mut dyn FnMut(Event)) -> Result<(), Failure> {
    Err(Failure::Unsupported)
}

/// Returns an error: there are no TUN devices here.
///
/// # Errors
/// Always.
pub async fn check(_: &Config) -> Result<Plan, Failure> {
    Err(Failure::Unsupported)
}
