//! Behaviour between two ends, in virtual time.

use std::time::Duration;

use courser_wire::Direction;

use super::*;
use crate::testing::{Pair, RTT};

mod transfer;

#[test]
fn handshake_takes_one_round_trip_and_is_confirmed_after_the_next() {
    let mut pair = Pair::new();
    pair.start();
    let begun = pair.now;
    assert!(pair.run_until(Duration::from_secs(5), |pair| pair.client.has(&Event::Connected)));
    assert_eq!(pair.now - begun, RTT, "one round trip to the server's Finished");
    assert!(pair.run_until(Duration::from_secs(5), |pair| pair.server.has(&Event::Connected)));
    assert_eq!(pair.now - begun, RTT * 3 / 2);
    assert!(pair.run_until(Duration::from_secs(5), |pair| pair.client.has(&Event::Confirmed)));
    assert_eq!(pair.now - begun, RTT * 2);
}
