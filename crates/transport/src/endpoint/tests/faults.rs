//! Tests panics in code of users: each ends its own connection, and no other.

use std::panic::resume_unwind;
use std::thread::panicking;

use courser_telemetry::{Record, Sink};

use super::*;
use crate::build::transmit::TransmitBuffer;
use crate::config::ClientConfig;
use crate::testing::server_address;

/// A sink that panics when it is used.
struct PanicsOnRecord;

impl Sink for PanicsOnRecord {
    fn record(&mut self, _: Time, _: &Record) {
        resume_unwind(Box::new("a sink of the test"));
    }
}

/// A sink that panics when it is dropped.
struct PanicsOnDrop;

impl Sink for PanicsOnDrop {
    fn record(&mut self, _: Time, _: &Record) {}
}

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        if !panicking() {
            resume_unwind(Box::new("a sink of the test"));
        }
    }
}

fn start() -> Time {
    Time::ZERO + Duration::from_secs(10)
}

fn endpoint(memory_budget: u64) -> Endpoint {
    let mut config = EndpointConfig::from_seed([3; 32]);
    config.memory_budget = memory_budget;
    Endpoint::new(config, None, [4; 32])
}

fn connect(endpoint: &mut Endpoint) -> ConnectionHandle {
    let config = ClientConfig::new(Setup::default().client_tls);
    endpoint
        .connect(start(), &config, server_address(), "localhost")
        .expect("a valid configuration")
}

fn attach(endpoint: &mut Endpoint, handle: ConnectionHandle, sink: impl Sink + 'static) {
    let connection = endpoint.connection_mut(handle).expect("open");
    connection.tap().set(Some(Box::new(sink)));
}

/// Polls all datagrams of a connection, after which its memory and its timer are updated.
fn send(endpoint: &mut Endpoint, handle: ConnectionHandle) {
    let mut buffer = TransmitBuffer::new(1);
    while endpoint
        .poll_transmit(start(), handle, &mut buffer)
        .is_some()
    {}
}

fn is_alive(endpoint: &Endpoint, handle: ConnectionHandle) -> bool {
    let connection = endpoint.connection(handle);
    connection.is_some_and(|it| !it.is_closed())
}

/// Time passes while the socket of the driver accepts no datagrams. A waiting sender is drained, and its
/// sink panics when it is dropped.
#[test]
fn panic_in_settle_senders_ends_only_its_sender() {
    let mut endpoint = endpoint(1 << 30);
    let (over, other) = (connect(&mut endpoint), connect(&mut endpoint));
    attach(&mut endpoint, over, PanicsOnDrop);
    send(&mut endpoint, over);
    send(&mut endpoint, other);
    let connection = endpoint.connection_mut(over).expect("open");
    connection.close(start(), 0, b"");
    send(&mut endpoint, over);
    endpoint.release(over);
    let mut now = start();
    while endpoint.connection(over).is_some_and(|it| !it.is_drained()) {
        now += Duration::from_millis(100);
        endpoint.handle_timeout(now);
        assert!(now < start() + Duration::from_secs(9), "never drained");
    }
    endpoint.queue_sender(over);
    assert!(endpoint.connection_mut(other).is_some(), "it is used last");
    endpoint.settle_senders(now);
    assert_eq!(endpoint.stats().faults, 1);
    assert!(endpoint.connection(over).is_none());
    assert!(is_alive(&endpoint, other) && endpoint.fault(other).is_none());
    assert_eq!(endpoint.connections(), 1);
}

/// A connection that is closed for lack of memory panics while another one is settled.
#[test]
fn panic_of_a_connection_closed_for_memory_leaves_the_settled_one() {
    let mut endpoint = endpoint(1 << 30);
    let (settled, heavy) = (connect(&mut endpoint), connect(&mut endpoint));
    send(&mut endpoint, heavy);
    attach(&mut endpoint, heavy, PanicsOnRecord);
    let used = endpoint.stats().memory_used;
    let shared = endpoint.admission.shared().clone();
    let memory = Memory::new(used + used / 2, endpoint.shard.id(), shared);
    endpoint.table.set_memory(memory);
    endpoint.table.settle_memory(start(), heavy);
    send(&mut endpoint, settled);
    assert!(endpoint.fault(heavy).is_some() && endpoint.fault(settled).is_none());
    assert!(is_alive(&endpoint, settled));
    let scheduled = endpoint.table.entry(settled).and_then(|it| it.scheduled);
    assert!(scheduled.is_some(), "it has a timer");
}
