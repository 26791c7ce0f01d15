//! Converts observations to verdicts, without access to the network.

mod connection;
mod handshake;
mod requests;

use crate::finding::Finding;
use crate::probe::facts::Facts;

/// Returns the aspects of a server in the order of a report. If an observation is missing because a step
/// failed, the aspect is unknown.
pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let first = match &facts.first {
        Ok(first) => first,
        Err(error) => {
            let why = "without a handshake, there is no connection";
            return vec![Finding::bad("handshake", error.clone(), why).costs(100)];
        }
    };
    let mut found = handshake::judge(facts, first);
    found.extend(connection::judge(facts, first));
    found.extend(requests::judge(facts, first));
    found
}

#[cfg(test)]
mod tests;
