//! One record of each kind, with one frame of each kind.

use std::time::Duration;

use courser_base::{EcnCounts, FourTuple, Rate};
use courser_telemetry::*;
use courser_wire::packet::PacketKind;
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{ApplicationErrorCode, ConnectionId, Direction, StreamId, TransportErrorCode};

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).expect("the bytes fit into a connection ID")
}

fn path() -> FourTuple {
    FourTuple {
        peer: "[::1]:443".parse().expect("the address is valid"),
        local: Some([127, 0, 0, 1].into()),
    }
}

pub(crate) fn records() -> Vec<Record> {
    let mut all = connectivity();
    all.extend(silence());
    all.extend(transport());
    all.extend(recovery());
    all.extend(http3().map(Record::Http3));
    all.push(Record::Qpack(QpackRecord::StreamStateUpdated {
        stream: 0,
        is_blocked: true,
    }));
    all.push(Record::RecordsMissed(RecordsMissed { count: 3 }));
    all
}

fn silence() -> [Record; 2] {
    [(true, 3), (false, 0)].map(|(is_silent, probe_timeouts)| {
        Record::PathSilenceUpdated(PathSilenceUpdated {
            is_silent,
            probe_timeouts,
        })
    })
}

fn http3() -> impl Iterator<Item = Http3Record> {
    let parameters = Http3Parameters::default();
    let mut section = FieldSection::default();
    section.push(b":status", b"200", false);
    section.push(b"set-cookie", b"\xff", false);
    section.push(b"x-bytes", b"\xff", false);
    let stream_types = [
        Http3StreamType::Request,
        Http3StreamType::Control,
        Http3StreamType::Push,
        Http3StreamType::QpackEncoder,
        Http3StreamType::QpackDecoder,
        Http3StreamType::Other(0x21),
        Http3StreamType::Other(0x54),
    ];
    let frames = [
        Http3Frame::Data { len: 5 },
        Http3Frame::Headers { len: 9, section },
        Http3Frame::CancelPush { push: 1 },
        Http3Frame::Settings {
            settings: vec![(1, 0), (0x21, 1), (0x99, 2)],
        },
        Http3Frame::GoAway { id: 4 },
        Http3Frame::MaxPushId { push: 1 },
        Http3Frame::PriorityUpdate {
            stream: 0,
            value: "u=1".to_owned(),
        },
        Http3Frame::Origin { len: 9, origins: 1 },
        Http3Frame::Other {
            frame_type: 0x21,
            len: 0,
        },
        Http3Frame::Other {
            frame_type: 0x99,
            len: 1,
        },
    ];
    let (stream, by_peer) = (0, true);
    let streams = stream_types.map(|stream_type| Http3Record::StreamTypeSet {
        by_peer,
        stream,
        stream_type,
    });
    let frames = frames.into_iter().flat_map(move |frame| {
        let created = Http3Record::FrameCreated {
            stream,
            frame: frame.clone(),
        };
        [created, Http3Record::FrameParsed { stream, frame }]
    });
    let others = [
        Http3Record::ParametersSet {
            by_peer,
            parameters,
        },
        Http3Record::ParametersRestored { parameters },
        Http3Record::PriorityUpdated {
            stream,
            new: String::new(),
            by_peer,
        },
        Http3Record::DatagramCreated { stream, len: 1 },
        Http3Record::DatagramParsed { stream, len: 1 },
    ];
    streams.into_iter().chain(frames).chain(others)
}

fn connectivity() -> Vec<Record> {
    let mut all = vec![Record::ConnectionStarted(ConnectionStarted {
        path: path(),
        local_id: ConnectionId::EMPTY,
        peer_id: id(&[9; 20]),
    })];
    let states = [
        "handshaking",
        "complete",
        "confirmed",
        "closing",
        "draining",
        "drained",
    ];
    let mut old = None;
    for state in states {
        all.push(Record::StateChanged(StateChanged { old, state }));
        old = Some(state);
    }
    let causes = [
        CloseCause::Transport {
            code: TransportErrorCode::PROTOCOL_VIOLATION,
        },
        CloseCause::Transport {
            code: TransportErrorCode::crypto(120),
        },
        CloseCause::Transport {
            code: TransportErrorCode::from_value(0x1234_5678),
        },
        CloseCause::Application {
            code: ApplicationErrorCode(7),
        },
        CloseCause::IdleTimeout,
        CloseCause::HandshakeTimeout,
        CloseCause::StatelessReset,
        CloseCause::VersionMismatch,
        CloseCause::PathSilent,
    ];
    for cause in causes {
        all.push(Record::ConnectionClosed(ConnectionClosed {
            by_peer: true,
            cause,
            reason: "odd \"text\"\n\u{1e}\u{0}".to_owned(),
        }));
    }
    all.push(Record::ConnectionIdUpdated(ConnectionIdUpdated {
        of_peer: true,
        old: Some(id(&[1])),
        new: id(&[2]),
    }));
    for state in [
        PathState::ProbingStarted,
        PathState::ProbingSuccessful,
        PathState::ProbingAbandoned,
        PathState::MigrationStarted,
        PathState::MigrationComplete,
        PathState::MigrationAbandoned,
    ] {
        let path = path();
        all.push(Record::PathUpdated(PathUpdated { state, path }));
    }
    all.push(Record::MtuUpdated(MtuUpdated {
        old: 1200,
        new: 1452,
        done: true,
    }));
    all.extend(features());
    all
}

fn features() -> [Record; 3] {
    let features = [
        PathFeature::Batches,
        PathFeature::EcnMarks,
        PathFeature::ClearedQuicBit,
    ];
    features.map(|feature| {
        let is_used = feature == PathFeature::EcnMarks;
        Record::PathFeatureUpdated(PathFeatureUpdated { feature, is_used })
    })
}

fn transport() -> Vec<Record> {
    let mut all = vec![
        Record::VersionChosen(VersionChosen { version: 1 }),
        Record::ProtocolChosen(ProtocolChosen {
            protocol: b"h3".to_vec(),
        }),
        Record::ProtocolChosen(ProtocolChosen {
            protocol: vec![0xff, 0],
        }),
        Record::TransportParametersSet(TransportParametersSet {
            by_peer: true,
            parameters: Box::new(TransportParameters {
                initial_source_connection_id: Some(id(&[1, 2])),
                stateless_reset_token: Some([0xee; 16]),
                ..TransportParameters::default()
            }),
        }),
    ];
    for kind in [
        PacketKind::Initial,
        PacketKind::ZeroRtt,
        PacketKind::Handshake,
        PacketKind::OneRtt,
    ] {
        let source = (kind != PacketKind::OneRtt).then_some(id(&[3; 8]));
        all.push(Record::PacketSent(PacketSent {
            kind,
            packet_number: (1 << 62) - 1,
            len: 1200,
            payload_len: 1150,
            ack_eliciting: true,
            is_mtu_probe: true,
            destination: id(&[4; 4]),
            source,
            version: 1,
            frames: frames().into_iter().chain(frames_of_extensions()).collect(),
        }));
        all.push(Record::PacketReceived(PacketReceived {
            kind,
            packet_number: 0,
            len: 60,
            payload_len: 30,
            destination: id(&[4; 4]),
            source,
            version: 1,
            frames: frames().into_iter().chain(frames_of_extensions()).collect(),
        }));
        all.push(Record::PacketBuffered(PacketBuffered { kind, len: 99 }));
        all.push(Record::KeyInstalled(KeyInstalled { kind }));
        all.push(Record::KeyDiscarded(KeyDiscarded { kind }));
    }
    for reason in [
        Reason::KeysUnavailable,
        Reason::NotAuthentic,
        Reason::Duplicate,
        Reason::Header,
        Reason::UnknownPath,
    ] {
        let (kind, len) = (PacketKind::OneRtt, 1200);
        all.push(Record::PacketDropped(PacketDropped { kind, len, reason }));
    }
    for by_peer in [false, true] {
        let key_phase = true;
        all.push(Record::KeyUpdated(KeyUpdated { key_phase, by_peer }));
    }
    all
}

fn recovery() -> Vec<Record> {
    let kind = PacketKind::OneRtt;
    let mut all = vec![
        Record::RecoveryParametersSet(RecoveryParametersSet {
            reordering_threshold: 3,
            time_threshold: 1.125,
            timer_granularity: Duration::from_millis(1),
            initial_rtt: Duration::from_millis(333),
            max_datagram_size: 1200,
            initial_congestion_window: 12_000,
            controller: "cubic",
        }),
        Record::MetricsUpdated(MetricsUpdated {
            smoothed_rtt: Duration::from_nanos(20_123_456),
            latest_rtt: Duration::from_millis(20),
            min_rtt: Duration::from_millis(19),
            rtt_variance: Duration::from_micros(500),
            congestion_window: u64::MAX,
            bytes_in_flight: 0,
            packets_in_flight: 3,
            ssthresh: Some(5),
            pacing_rate: Some(Rate::from_bytes_per_second(1000)),
            pto_count: 1,
        }),
        Record::SpuriousLoss(SpuriousLoss {
            kind,
            packet_number: 5,
        }),
        Record::EcnStateUpdated(EcnStateUpdated {
            old: EcnState::Testing,
            new: EcnState::Unknown,
        }),
        Record::EcnStateUpdated(EcnStateUpdated {
            old: EcnState::Capable,
            new: EcnState::Failed,
        }),
    ];
    for trigger in [None, Some("ecn"), Some("loss")] {
        all.push(Record::CongestionStateUpdated(CongestionStateUpdated {
            old: Some("slow_start"),
            new: "recovery",
            trigger,
        }));
    }
    for trigger in [
        None,
        Some(LossTrigger::ReorderingThreshold),
        Some(LossTrigger::TimeThreshold),
        Some(LossTrigger::ProbeTimeout),
    ] {
        all.push(Record::PacketLost(PacketLost {
            kind,
            packet_number: 4,
            len: 1200,
            trigger,
            is_mtu_probe: trigger.is_none(),
        }));
    }
    for timer in [Timer::LossDetection, Timer::Probe] {
        all.push(Record::TimerExpired(TimerExpired { timer, kind }));
    }
    for by in [
        SendLimit::Application,
        SendLimit::CongestionWindow,
        SendLimit::Pacer,
        SendLimit::FlowControl,
        SendLimit::Amplification,
    ] {
        all.push(Record::SendLimited(SendLimited { by }));
    }
    all
}

fn frames_of_extensions() -> [FrameRecord; 4] {
    [
        FrameRecord::Multipath(MultipathRecord::MaxPathId { maximum: 3 }),
        FrameRecord::Address(AddressRecord::Remove { sequence: 3 }),
        FrameRecord::ImmediateAck,
        FrameRecord::AckFrequency {
            sequence: 1,
            ack_eliciting_threshold: 9,
            max_ack_delay: Duration::from_millis(40),
            reordering_threshold: 1,
        },
    ]
}

fn frames() -> Vec<FrameRecord> {
    let id_of = StreamId::from_value;
    let mut all = vec![
        FrameRecord::Padding { len: 9 },
        FrameRecord::Ack {
            delay: Duration::from_micros(8),
            ranges: vec![5..=9, 1..=1],
            ecn: Some(EcnCounts {
                ect0: 1,
                ect1: 2,
                ce: 3,
            }),
        },
        FrameRecord::Crypto { offset: 5, len: 6 },
        FrameRecord::Stream {
            id: id_of(4),
            offset: 5,
            len: 6,
            fin: true,
        },
        FrameRecord::ResetStream {
            id: id_of(4),
            error_code: 1,
            final_size: 2,
        },
        FrameRecord::StopSending {
            id: id_of(4),
            error_code: 1,
        },
        FrameRecord::NewToken { len: 60 },
        FrameRecord::MaxData { maximum: 1 },
        FrameRecord::MaxStreamData {
            id: id_of(4),
            maximum: 1,
        },
        FrameRecord::DataBlocked { limit: 1 },
        FrameRecord::StreamDataBlocked {
            id: id_of(4),
            limit: 1,
        },
        FrameRecord::NewConnectionId {
            sequence: 2,
            retire_prior_to: 1,
            id: id(&[7; 8]),
        },
        FrameRecord::RetireConnectionId { sequence: 0 },
        FrameRecord::PathChallenge { data: [1; 8] },
        FrameRecord::PathResponse { data: [2; 8] },
    ];
    for direction in [Direction::Bidirectional, Direction::Unidirectional] {
        let (maximum, limit) = (3, 4);
        all.push(FrameRecord::MaxStreams { direction, maximum });
        all.push(FrameRecord::StreamsBlocked { direction, limit });
    }
    for (by_application, error_code) in [(true, 7), (false, 0x0a), (false, 0x178), (false, 0x999)] {
        all.push(FrameRecord::ConnectionClose {
            by_application,
            error_code,
            frame_type: 6,
            reason: "bye".to_owned(),
        });
    }
    all.push(FrameRecord::Datagram { len: 9 });
    // PING, HANDSHAKE_DONE, ACK_FREQUENCY.
    for frame_type in [0x01, 0x1e, 0xaf] {
        all.push(FrameRecord::Other { frame_type });
    }
    all
}
