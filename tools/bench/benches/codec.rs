//! Frames and packet headers, encoded and decoded.

use courser_base::{RangeSet, Side};
use courser_wire::{
    Ack, ConnectionId, Direction, Frame, Frames, LongHeader, MaxData, PacketKind, ShortHeader,
    Stream, StreamId, TransportParameters, VERSION_1, Writer, packet,
};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

#[divan::bench(args = [100, 1150])]
fn encode_stream_frame(bencher: Bencher<'_, '_>, len: usize) {
    let data = vec![7; len];
    let mut buffer = [0; 1500];
    bencher.bench_local(|| {
        stream(black_box(&data)).encode(&mut Writer::new(&mut buffer));
        black_box(&mut buffer);
    });
}

/// A packet with credit, an acknowledgment and data.
#[divan::bench]
fn decode_three_frames(bencher: Bencher<'_, '_>) {
    let mut buffer = [0; 1500];
    let mut writer = Writer::new(&mut buffer);
    Frame::MaxData(MaxData { limit: 1 << 20 }).encode(&mut writer);
    assert!(Ack::write(&mut writer, &ranges(1), 8, None, 64));
    stream(&[7; 1100]).encode(&mut writer);
    let payload = writer.written();
    assert_eq!(Frames::new(payload).filter(Result::is_ok).count(), 3);
    bencher.bench_local(|| {
        for frame in Frames::new(black_box(payload)) {
            let _ = black_box(frame);
        }
    });
}

#[divan::bench(args = [1, 32])]
fn encode_ack(bencher: Bencher<'_, '_>, count: u64) {
    let ranges = ranges(count);
    let mut buffer = [0; 1500];
    bencher.bench_local(|| {
        Ack::write(
            &mut Writer::new(&mut buffer),
            black_box(&ranges),
            8,
            None,
            64,
        )
    });
}

#[divan::bench(args = [1, 32])]
fn decode_ack(bencher: Bencher<'_, '_>, count: u64) {
    let mut buffer = [0; 1500];
    let mut writer = Writer::new(&mut buffer);
    assert!(Ack::write(&mut writer, &ranges(count), 8, None, 64));
    let payload = writer.written();
    bencher.bench_local(|| {
        let Some(Ok(Frame::Ack(ack))) = Frames::new(black_box(payload)).next() else {
            panic!("an ACK frame");
        };
        ack.ranges().map(|range| *range.start()).sum::<u64>()
    });
}

#[divan::bench]
fn encode_short_header(bencher: Bencher<'_, '_>) {
    let header = ShortHeader {
        destination: id(),
        spin: false,
        key_phase: false,
    };
    let mut buffer = [0; 32];
    bencher.bench_local(|| {
        black_box(&header).encode(&mut Writer::new(&mut buffer), 2);
        black_box(&mut buffer);
    });
}

#[divan::bench]
fn decode_short_header(bencher: Bencher<'_, '_>) {
    let mut datagram = [0x40; 1200];
    datagram[1..9].copy_from_slice(&id());
    bencher.bench_local(|| packet::decode(black_box(&datagram), 0, 8));
}

#[divan::bench]
fn decode_long_header(bencher: Bencher<'_, '_>) {
    let header = LongHeader {
        kind: PacketKind::Initial,
        version: VERSION_1,
        destination: id(),
        source: id(),
        token: &[1; 50],
    };
    let mut datagram = [0; 1200];
    let length_field = header.encode(&mut Writer::new(&mut datagram), 2);
    packet::patch_length(&mut datagram, length_field, 1200 - header.encoded_len());
    assert!(packet::decode(&datagram, 0, 8).is_ok());
    bencher.bench_local(|| packet::decode(black_box(&datagram), 0, 8));
}

#[divan::bench]
fn decode_transport_parameters(bencher: Bencher<'_, '_>) {
    let parameters = TransportParameters {
        initial_source_connection_id: Some(id()),
        initial_max_data: 1 << 20,
        initial_max_stream_data_uni: 1 << 18,
        ..TransportParameters::default()
    };
    let mut bytes = Vec::new();
    parameters.encode(&mut bytes, None);
    assert!(TransportParameters::decode(&bytes, Side::Client).is_ok());
    bencher.bench_local(|| TransportParameters::decode(black_box(&bytes), Side::Client));
}

fn stream(data: &[u8]) -> Stream<'_> {
    Stream {
        id: StreamId::new(Side::Client, Direction::Bidirectional, 1),
        offset: 1 << 20,
        data,
        fin: false,
    }
}

/// Returns as many ranges of ten packets, with one missing between each two.
fn ranges(count: u64) -> RangeSet {
    let mut ranges = RangeSet::new();
    (0..count).for_each(|at| ranges.insert(11 * at..11 * at + 10));
    ranges
}

fn id() -> ConnectionId {
    ConnectionId::new(&[5; 8]).expect("eight bytes")
}
