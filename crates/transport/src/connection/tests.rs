//! Tests of two connected ends, in virtual time.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use courser_wire::{ConnectionId, Direction};

use super::*;
use crate::config::TransportConfig;
use crate::testing::link::Datagram;
use crate::testing::{Pair, RTT};

mod ack_frequency;
mod acks;
mod candidates;
mod cids;
mod close;
mod counts;
mod credit;
mod crypto;
mod datagrams;
mod early_data;
mod frames;
mod handshake;
mod headers;
mod hostile;
mod keys;
mod migrations;
mod mtu;
mod multipath;
mod numbers;
mod observed;
mod offload;
mod packet_too_big;
mod parameters;
mod paths;
mod pings;
mod recorded;
mod recovery;
mod spin;
mod streams;
mod trace;
mod transfer;
mod unguessable;
mod unreachable;
mod unread;
mod versions;

#[test]
fn handshake_takes_one_round_trip_and_is_confirmed_after_the_next() {
    let mut pair = Pair::new();
    pair.start();
    let begun = pair.now;
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Connected)
    }));
    assert_eq!(
        pair.now - begun,
        RTT,
        "one round trip to the server's Finished"
    );
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.server.has(&Event::Connected)
    }));
    assert_eq!(pair.now - begun, RTT * 3 / 2);
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    assert_eq!(pair.now - begun, RTT * 2);
}

#[test]
fn flood_of_frames_without_progress_ends_the_connection() {
    let mut pair = Pair::connected();
    for _ in 0..=super::watchdog::suspicion::BURST {
        pair.forge_to_server(SpaceId::Application, &[1]);
    }
    assert_eq!(pair.server_error(), Some(0x0a), "limit K17, RFC 9000 §21.9");
}

/// Creates a pair whose server has answered without the client receiving it. Both have Initial keys.
fn with_initial_keys() -> Pair {
    let mut pair = Pair::new();
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    pair
}

/// Creates a pair whose client has completed the handshake without the server receiving it. Both have
/// Handshake keys.
fn with_handshake_keys() -> Pair {
    let mut pair = Pair::new();
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    pair
}

/// Holds the chosen datagrams back on the link, for the test to deliver.
fn hold(
    pair: &mut Pair,
    mut chosen: impl FnMut(&Datagram) -> bool + 'static,
) -> Rc<RefCell<Vec<Datagram>>> {
    let held = Rc::new(RefCell::new(Vec::new()));
    let keep = Rc::clone(&held);
    pair.link.filter = Some(Box::new(move |_, datagram| {
        let is_chosen = chosen(datagram);
        if is_chosen {
            keep.borrow_mut().push(datagram.clone());
        }
        !is_chosen
    }));
    held
}
