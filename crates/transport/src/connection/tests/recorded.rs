//! Replays recordings of honest peers, packet by packet, to a server. All stay far below the limits.
//!
//! `interop/recordings/record` produces the texts from real programs. A line has the milliseconds since the
//! first packet and the frames of one packet. Packets that only acknowledge new packets are left out,
//! because they can only offset others. An `ACK` acknowledges nothing new.

use courser_base::Ecn;
use courser_wire::StreamId;
use courser_wire::frame::{self, Frame};

use super::*;
use crate::connection::watchdog::suspicion::{BURST, REPEATS};
use crate::stream::ReadError;
use crate::testing::forge::{encode, forge};
use crate::testing::{Setup, client_address, server_address, steady};

/// The maximum that a recording has used: frames without progress (K17), repeated frames (K83).
type Used = (u32, u64);

/// A server that receives recorded packets, and the client whose keys seal them.
struct Replay {
    pair: Pair,
    begun: Time,
    /// The client's streams: bidirectional and unidirectional ones.
    opened: [u64; 2],
    /// The streams that the server has accepted and not answered.
    unanswered: Vec<StreamId>,
    used: Used,
}

impl Replay {
    fn new() -> Self {
        let mut setup = Setup::default();
        let transport = TransportConfig {
            max_bidi_streams: 256,
            ..steady()
        };
        setup.server.transport = Arc::new(transport);
        let mut pair = Pair::with(setup);
        pair.connect();
        Self {
            begun: pair.now,
            pair,
            opened: [0; 2],
            unanswered: Vec::new(),
            used: (0, 0),
        }
    }

    fn packet(&mut self, line: &str) {
        let mut words = line.split(' ');
        let at = words.next().expect("a time").parse().expect("milliseconds");
        let at = self.begun + Duration::from_millis(at);
        if at > self.pair.now {
            self.pair.run_for(at - self.pair.now);
        }
        let payload: Vec<u8> = words.flat_map(|word| self.frame(word)).collect();
        let bytes = forge(&mut self.pair.client, SpaceId::Application, &payload);
        self.pair.deliver(Datagram {
            from: client_address(),
            to: server_address(),
            ecn: Ecn::NotEct,
            bytes,
        });
        self.pair.drive();
        self.answer();
        let server = &mut self.pair.server;
        let is_lost = |event: &Event| matches!(event, Event::Lost(_));
        let lost = server.events.iter().find(|event| is_lost(event));
        assert!(lost.is_none(), "{:?} at {line}: {lost:?}", self.used);
        let (frames, repeats) = self.pair.server.connection().watchdog.suspicion().used();
        self.used = (self.used.0.max(frames), self.used.1.max(repeats));
    }

    /// Returns the bytes of a recorded frame.
    fn frame(&mut self, word: &str) -> Vec<u8> {
        let (name, numbers) = word.split_once(':').unwrap_or((word, ""));
        let direction = match numbers.split(':').next() {
            Some("uni") => Direction::Unidirectional,
            _ => Direction::Bidirectional,
        };
        let is_fin = numbers.ends_with(":fin");
        let numbers: Vec<u64> = numbers
            .split(':')
            .filter_map(|it| it.parse().ok())
            .collect();
        let stream = |number: u64| StreamId::from_value(number);
        let data;
        let frame = match (name, &numbers[..]) {
            // The first packet of the handshake's end.
            ("ACK", _) => return vec![0x02, 0, 0, 0, 0],
            ("PING", _) => Frame::Ping,
            ("STREAM", &[id, offset, len]) => {
                self.open(stream(id));
                data = vec![0; usize::try_from(len).expect("a packet")];
                Frame::Stream(frame::Stream {
                    id: stream(id),
                    offset,
                    data: &data,
                    fin: is_fin,
                })
            }
            ("RESET_STREAM", &[id, error_code, final_size]) => {
                self.open(stream(id));
                Frame::ResetStream(frame::ResetStream {
                    id: stream(id),
                    error_code,
                    final_size,
                })
            }
            ("STOP_SENDING", &[id, error_code]) => {
                self.open(stream(id));
                Frame::StopSending(frame::StopSending {
                    id: stream(id),
                    error_code,
                })
            }
            ("MAX_DATA", &[limit]) => Frame::MaxData(frame::MaxData { limit }),
            ("MAX_STREAM_DATA", &[id, limit]) => {
                self.open(stream(id));
                Frame::MaxStreamData(frame::MaxStreamData {
                    id: stream(id),
                    limit,
                })
            }
            ("MAX_STREAMS", &[limit]) => Frame::MaxStreams(frame::MaxStreams { direction, limit }),
            ("DATA_BLOCKED", &[limit]) => Frame::DataBlocked(frame::DataBlocked { limit }),
            ("STREAM_DATA_BLOCKED", &[id, limit]) => {
                self.open(stream(id));
                Frame::StreamDataBlocked(frame::StreamDataBlocked {
                    id: stream(id),
                    limit,
                })
            }
            ("STREAMS_BLOCKED", &[limit]) => {
                Frame::StreamsBlocked(frame::StreamsBlocked { direction, limit })
            }
            _ => panic!("{word} is unknown"),
        };
        encode(&frame)
    }

    /// Opens the streams of the client up to this one, after the server has granted them as it did in the
    /// recording.
    fn open(&mut self, id: StreamId) {
        if id.initiator().is_server() {
            return;
        }
        let opened = usize::from(id.direction() == Direction::Unidirectional);
        for _ in 0..100 {
            let streams = self.pair.client.connection().streams();
            while self.opened[opened] <= id.index() && streams.open(id.direction()).is_some() {
                self.opened[opened] += 1;
            }
            if self.opened[opened] > id.index() {
                return;
            }
            self.pair.run_for(RTT);
            self.answer();
        }
        panic!("{id:?} is never granted");
    }

    /// Reads all streams of the client, and answers those that have ended.
    fn answer(&mut self) {
        let streams = self.pair.server.connection().streams();
        for direction in [Direction::Unidirectional, Direction::Bidirectional] {
            while let Some(id) = streams.accept(direction) {
                self.unanswered.push(id);
            }
        }
        let mut buffer = [0; 4096];
        self.unanswered.retain(|&id| {
            loop {
                match streams.read(id, &mut buffer) {
                    Ok(Some(_)) => {}
                    Err(ReadError::Blocked) => return true,
                    Ok(None) | Err(_) => {
                        // It may be stopped, or have one direction only.
                        if streams.write(id, b"an answer").is_ok() {
                            streams.finish(id).expect("open");
                        } else {
                            let _ = streams.reset(id, 0);
                        }
                        return false;
                    }
                }
            }
        });
        self.pair.server.touch();
        self.pair.drive();
    }
}

fn replay(text: &str) -> Used {
    let mut replay = Replay::new();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.for_each(|line| replay.packet(line));
    replay.used
}

macro_rules! recordings {
    ($($name:literal: $used:expr,)*) => {
        [$(($name, include_str!(concat!("recorded/", $name, ".txt")), $used),)*]
    };
}

/// K17, K83: the table "Honest peers" of docs/LIMITS.md has the largest numbers.
#[test]
fn honest_peers_stay_far_from_every_limit() {
    let recordings = recordings! {
        "chromium-images-300": (0, 0),
        "chromium-images-900": (0, 0),
        "chromium-images-3000": (0, 0),
        "chromium-tabs": (1, 0),
        "chromium-search": (0, 0),
        "chromium-scroll": (1, 0),
        "chromium-poll": (0, 0),
        "chromium-wake": (0, 0),
        "firefox-images-300": (0, 0),
        "firefox-images-900": (1, 0),
        "firefox-images-3000": (0, 0),
        "firefox-tabs": (0, 0),
        "firefox-search": (1, 0),
        "firefox-scroll": (1, 0),
        "firefox-poll": (1, 0),
        "firefox-wake": (0, 0),
        "curl": (1, 0),
        "quic-go": (1, 0),
    };
    let seen = recordings.map(|(name, text, _)| (name, replay(text)));
    assert_eq!(seen, recordings.map(|(name, _, expected)| (name, expected)));
    // None uses more than half of the burst.
    for (name, (frames, repeats)) in seen {
        assert!(frames <= BURST / 2 && repeats <= REPEATS / 2, "{name}");
    }
}
