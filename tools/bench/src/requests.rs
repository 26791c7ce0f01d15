//! Requests on streams, one after the other.

use courser_transport::{ReadError, Streams};
use courser_wire::{Direction, StreamId};

use crate::meter::Meter;
use crate::pair::Pair;
use crate::path::Path;

/// Runs the requests, and returns their number.
pub(crate) fn run(meter: &Meter) -> u64 {
    let client = (Path::RequestClient, Path::RequestClient);
    let mut pair = Pair::connected(meter, client, (Path::RequestServer, Path::RequestServer));
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            meter.start();
        }
        let stream = meter.count(Path::RequestClient, || request(pair.client.streams()));
        pair.client_to_server();
        meter.count(Path::RequestServer, || {
            pair.server.take_events();
            answer(pair.server.streams());
        });
        pair.server_to_client();
        meter.count(Path::RequestClient, || {
            pair.client.take_events();
            read_all(pair.client.streams(), stream);
        });
    }
    u64::from(ROUNDS)
}

fn request(streams: &mut Streams) -> StreamId {
    let stream = streams.open(Direction::Bidirectional);
    let stream = stream.expect("earlier requests are over");
    write_all(streams, stream);
    stream
}

fn answer(streams: &mut Streams) {
    let stream = streams.accept(Direction::Bidirectional);
    let stream = stream.expect("the request has arrived");
    read_all(streams, stream);
    write_all(streams, stream);
}

fn write_all(streams: &mut Streams, stream: StreamId) {
    let written = streams.write(stream, &[7; LENGTH]);
    assert_eq!(written.ok(), Some(LENGTH));
    streams.finish(stream).expect("the stream is open");
}

/// Reads a message that has arrived in full.
fn read_all(streams: &mut Streams, stream: StreamId) {
    let read = streams.read_chunk_and_end(stream);
    let (data, is_end) = read.unwrap_or_else(|error: ReadError| panic!("{error}"));
    assert_eq!((data.map(|data| data.len()), is_end), (Some(LENGTH), true));
}

/// Bytes of a request, and of its response.
const LENGTH: usize = 100;
const WARM_UP: u32 = 500;
const ROUNDS: u32 = 1000;
