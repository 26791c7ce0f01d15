//! Checks that the seeds reach the states that they were written for.

use courser_transport::EarlyData;

use super::World;
use crate::seeds;

/// Runs a seed and returns the state of early data of the victim's only connection, and true if it
/// has a stream that began in early data.
fn early_data(seed: &str) -> (EarlyData, bool) {
    let mut world = World::run(&seeds::read("endpoint", seed));
    let reached = world.victim.early_data();
    world.end();
    assert_eq!(reached.len(), 1, "{reached:?}");
    reached[0]
}

#[test]
fn a_seed_sends_early_data_that_a_server_accepts() {
    assert_eq!(early_data("early_data"), (EarlyData::Accepted, true));
}

#[test]
fn a_seed_sends_early_data_after_a_retry() {
    assert_eq!(early_data("early_data_retry"), (EarlyData::Accepted, true));
}

#[test]
fn a_seed_sends_early_data_that_a_server_refuses() {
    assert_eq!(early_data("early_data_refused"), (EarlyData::None, false));
}

#[test]
fn a_seed_makes_a_client_send_early_data_that_is_accepted() {
    assert_eq!(early_data("early_data_client"), (EarlyData::Accepted, true));
}

#[test]
fn a_seed_makes_a_client_send_early_data_that_is_refused() {
    assert_eq!(
        early_data("early_data_client_refused"),
        (EarlyData::Rejected, false)
    );
}
