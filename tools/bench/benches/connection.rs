//! Connections of the core without TLS and without sockets: handshakes, data in order and out of order.

use std::cell::RefCell;

use bytes::Bytes;
use courser_bench::{Batch, Meter, Pair, Path};
use courser_transport::{ReadError, WriteError};
use courser_wire::{Direction, StreamId};
use divan::Bencher;
use divan::counter::BytesCount;

fn main() {
    divan::main();
}

/// Establishes and closes a connection.
#[divan::bench]
fn establish_and_close(bencher: Bencher<'_, '_>) {
    let meter = Meter::new(Path::Send);
    let mut pair = Pair::new(&meter, PATHS, PATHS);
    bencher.bench_local(|| {
        pair.connect();
        pair.close();
    });
}

/// Sends data of one stream in batches of so many datagrams. A batch has at most 65 507 bytes, which are 54 datagrams.
#[divan::bench(args = [10, 20, 40, 64, 128], sample_count = ROUNDS, sample_size = 1)]
fn send(bencher: Bencher<'_, '_>, batch: usize) {
    let meter = Meter::new(Path::Send);
    let mut pair = Pair::connected(&meter, PATHS, PATHS);
    let stream = pair.client.streams().open(Direction::Unidirectional);
    let stream = stream.expect("the server allows streams");
    pair.client.set_max_segments(batch);
    // The pair, and what the client has sent.
    let state = RefCell::new((pair, Vec::new()));
    let write = || {
        let (pair, sent): &mut (Pair<'_>, Vec<Batch>) = &mut state.borrow_mut();
        if !sent.is_empty() {
            let from = pair.client.address();
            for batch in sent.drain(..) {
                pair.server.deliver(pair.now, from, batch);
            }
            read(pair, stream);
            pair.server_to_client();
            pair.client.take_events();
        }
        let mut data = Bytes::from_static(&[7; BULK]);
        let written = pair.client.streams().write_chunk(stream, &mut data);
        assert!(matches!(written, Ok(_) | Err(WriteError::Blocked)));
    };
    let transmit = |()| {
        let (pair, sent) = &mut *state.borrow_mut();
        *sent = pair.client.transmit(pair.now);
    };
    // Until the windows have room for a round.
    for _ in 0..100 {
        write();
        transmit(());
    }
    bencher
        .counter(BytesCount::new(BULK))
        .with_inputs(write)
        .bench_local_values(transmit);
    let (pair, _) = &mut *state.borrow_mut();
    assert_eq!(pair.client.connection().stats().packets_lost, 0);
}

/// Data of one stream arrive in order.
#[divan::bench(sample_count = ROUNDS, sample_size = 1)]
fn receive_in_order(bencher: Bencher<'_, '_>) {
    receive(bencher, |_| {});
}

/// The datagrams of each round trip arrive backwards, so that each opens a gap.
#[divan::bench(sample_count = ROUNDS, sample_size = 1)]
fn reassemble_backwards(bencher: Bencher<'_, '_>) {
    receive(bencher, |datagrams| datagrams.reverse());
}

/// The first datagram of each round trip arrives last.
#[divan::bench(sample_count = ROUNDS, sample_size = 1)]
fn reassemble_behind_one_gap(bencher: Bencher<'_, '_>) {
    receive(bencher, |datagrams| datagrams.rotate_left(1));
}

/// Measures the receiver of a round trip of data whose datagrams `reorder` has put into another order.
fn receive(bencher: Bencher<'_, '_>, reorder: impl Fn(&mut [Batch])) {
    let meter = Meter::new(Path::Send);
    let pair = RefCell::new(Pair::connected(&meter, PATHS, PATHS));
    let stream = pair
        .borrow_mut()
        .client
        .streams()
        .open(Direction::Unidirectional);
    let stream = stream.expect("the server allows streams");
    bencher
        .counter(BytesCount::new(ROUND))
        .with_inputs(|| {
            let pair = &mut *pair.borrow_mut();
            // What was received before is acknowledged.
            pair.server_to_client();
            pair.client.take_events();
            let mut data = Bytes::from_static(&[7; ROUND]);
            let written = pair.client.streams().write_chunk(stream, &mut data);
            assert_eq!(written, Ok(ROUND));
            let sent = pair.client.transmit(pair.now);
            let mut datagrams: Vec<Batch> = sent
                .iter()
                .flat_map(|batch| batch.datagrams().map(Batch::from))
                .collect();
            reorder(&mut datagrams);
            datagrams
        })
        .bench_local_values(|datagrams| {
            let pair = &mut *pair.borrow_mut();
            let from = pair.client.address();
            for datagram in datagrams {
                pair.server.deliver(pair.now, from, datagram);
            }
            assert_eq!(read(pair, stream), ROUND);
        });
}

/// Reads all that has arrived, and returns its length.
fn read(pair: &mut Pair<'_>, stream: StreamId) -> usize {
    pair.server.take_events();
    let streams = pair.server.streams();
    let _ = streams.accept(Direction::Unidirectional);
    let mut len = 0;
    loop {
        match streams.read_chunk(stream, usize::MAX) {
            Ok(data) => len += data.expect("the stream goes on").len(),
            Err(ReadError::Blocked) => return len,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Arbitrary paths, because these benches measure time and count nothing.
const PATHS: (Path, Path) = (Path::Send, Path::Send);
/// Bytes of a round trip: less than the initial window.
const ROUND: usize = 10_000;
/// Bytes of a round trip that is sent in batches, 105 packets.
const BULK: usize = 120_000;
/// Each round trip needs the acknowledgments of the one before, so each is a sample of its own.
const ROUNDS: u32 = 1000;
