//! One stream from the client to the server, as fast as the congestion window allows.

use bytes::Bytes;
use courser_transport::{ReadError, WriteError};
use courser_wire::{Direction, StreamId};

use crate::meter::Meter;
use crate::pair::{End, Pair};
use crate::path::Path;

/// Runs the transfer, and returns the number of packets of the path that is counted.
pub(crate) fn run(meter: &Meter) -> u64 {
    let client = (Path::Send, Path::AckReceive);
    let mut pair = Pair::connected(meter, client, (Path::AckSend, Path::Receive));
    let stream = pair.client.streams().open(Direction::Unidirectional);
    let stream = stream.expect("the server allows streams");
    let data = Bytes::from(vec![7; ROUND]);
    let (mut sent, mut answered) = (0, 0);
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            meter.start();
            (sent, answered) = (0, 0);
        }
        meter.count(Path::Send, || write(&mut pair.client, stream, data.clone()));
        sent += pair.client_to_server();
        meter.count(Path::Receive, || read(&mut pair.server, stream));
        answered += pair.server_to_client();
        meter.count(Path::AckReceive, || pair.client.take_events());
    }
    match meter.path() {
        Path::AckSend | Path::AckReceive => answered,
        _ => sent,
    }
}

/// Writes as much of `data` as flow control and buffers permit.
fn write(end: &mut End<'_>, stream: StreamId, mut data: Bytes) {
    let streams = end.streams();
    while !data.is_empty() {
        match streams.write_chunk(stream, &mut data) {
            Ok(_) => {}
            Err(WriteError::Blocked) => break,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads all that has arrived.
fn read(end: &mut End<'_>, stream: StreamId) {
    end.take_events();
    let streams = end.streams();
    let _ = streams.accept(Direction::Unidirectional);
    loop {
        match streams.read_chunk(stream, usize::MAX) {
            Ok(data) => drop(data.expect("the stream goes on")),
            Err(ReadError::Blocked) => break,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Bytes that are written in a round trip.
const ROUND: usize = 64 * 1024;
/// Round trips before the counted ones, after which windows and buffers have their size.
const WARM_UP: u32 = 100;
const ROUNDS: u32 = 100;
