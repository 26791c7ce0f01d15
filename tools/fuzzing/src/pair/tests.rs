//! Checks that the seeds reach the states that they were written for.

use courser_transport::EarlyData;

use super::Pair;
use crate::seeds;

/// Runs a seed to its end, and returns the state of early data at both ends after its steps, and true
/// if the first stream of an end began in early data.
fn early_data(seed: &str) -> [(EarlyData, bool); 2] {
    let mut pair = Pair::run(&seeds::read("pair", seed));
    let reached = pair.ends.each_mut().map(|end| end.early_data());
    pair.finish_transfers();
    pair.close();
    reached
}

#[test]
fn a_seed_writes_early_data_that_is_accepted() {
    assert_eq!(early_data("early_data"), [(EarlyData::Accepted, true); 2]);
}

#[test]
fn a_seed_writes_early_data_that_is_accepted_after_losses() {
    assert_eq!(
        early_data("early_data_losses"),
        [(EarlyData::Accepted, true); 2]
    );
}

#[test]
fn a_seed_writes_early_data_that_is_refused_and_writes_again() {
    let expected = [(EarlyData::Rejected, false), (EarlyData::None, false)];
    assert_eq!(early_data("early_data_refused"), expected);
}
