//! Counters of endpoints and connections.

use std::time::Duration;

use courser_quic as quic;

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections that the application has accepted.
    pub accepted_handshakes: u64,
    /// Connections that the endpoint has started.
    pub outgoing_handshakes: u64,
    /// Clients that were refused.
    pub refused_handshakes: u64,
    /// Clients that got no answer.
    pub ignored_handshakes: u64,
}

impl From<quic::EndpointStats> for EndpointStats {
    fn from(stats: quic::EndpointStats) -> Self {
        Self {
            accepted_handshakes: stats.accepted,
            outgoing_handshakes: stats.connected,
            refused_handshakes: stats.refused,
            ignored_handshakes: stats.ignored,
        }
    }
}

/// Datagrams of UDP in one direction.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct UdpStats {
    /// The number of datagrams.
    pub datagrams: u64,
    /// The sum of their payloads in bytes.
    pub bytes: u64,
    /// Batches of datagrams: calls of the system, with segmentation offload.
    pub ios: u64,
}

impl From<quic::UdpStats> for UdpStats {
    fn from(stats: quic::UdpStats) -> Self {
        Self {
            datagrams: stats.datagrams,
            bytes: stats.bytes,
            ios: stats.batches,
        }
    }
}

/// Frames in one direction, by type. courser counts both directions of MAX_STREAMS, and of STREAMS_BLOCKED,
/// together: they are in the fields that end with `_bidi`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each field is named after its frame")]
pub struct FrameStats {
    pub acks: u64,
    pub ack_frequency: u64,
    pub crypto: u64,
    pub connection_close: u64,
    pub data_blocked: u64,
    pub datagram: u64,
    pub handshake_done: u8,
    pub immediate_ack: u64,
    pub max_data: u64,
    pub max_stream_data: u64,
    pub max_streams_bidi: u64,
    pub max_streams_uni: u64,
    pub new_connection_id: u64,
    pub new_token: u64,
    pub path_challenge: u64,
    pub path_response: u64,
    pub ping: u64,
    pub reset_stream: u64,
    pub retire_connection_id: u64,
    pub stream_data_blocked: u64,
    pub streams_blocked_bidi: u64,
    pub streams_blocked_uni: u64,
    pub stop_sending: u64,
    pub stream: u64,
}

impl From<quic::FrameCounts> for FrameStats {
    fn from(counts: quic::FrameCounts) -> Self {
        // Without `..`, so that a new frame must be counted here.
        let quic::FrameCounts {
            ping,
            ack,
            reset_stream,
            reset_stream_at,
            stop_sending,
            crypto,
            new_token,
            stream,
            max_data,
            max_stream_data,
            max_streams,
            data_blocked,
            stream_data_blocked,
            streams_blocked,
            new_connection_id,
            retire_connection_id,
            path_challenge,
            path_response,
            connection_close,
            handshake_done,
            immediate_ack,
            ack_frequency,
            datagram,
        } = counts;
        Self {
            acks: ack,
            ack_frequency,
            crypto,
            connection_close,
            data_blocked,
            datagram,
            handshake_done: u8::try_from(handshake_done).unwrap_or(u8::MAX),
            immediate_ack,
            max_data,
            max_stream_data,
            max_streams_bidi: max_streams,
            max_streams_uni: 0,
            new_connection_id,
            new_token,
            path_challenge,
            path_response,
            ping,
            reset_stream: reset_stream + reset_stream_at,
            retire_connection_id,
            stream_data_blocked,
            streams_blocked_bidi: streams_blocked,
            streams_blocked_uni: 0,
            stop_sending,
            stream,
        }
    }
}

/// The state of the path in use.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PathStats {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The smallest round-trip time.
    pub min_rtt: Duration,
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// Cuts of the congestion window, on all paths.
    pub congestion_events: u64,
    /// Packets declared lost, on all paths.
    pub lost_packets: u64,
    /// Stream bytes that were retransmitted, on all paths.
    pub lost_bytes: u64,
    /// Packets sent, on all paths.
    pub sent_packets: u64,
    /// Always 0: courser does not count probes of the path MTU.
    pub sent_plpmtud_probes: u64,
    /// Always 0: courser does not count probes of the path MTU.
    pub lost_plpmtud_probes: u64,
    /// Always 0: courser does not count falls of the path MTU.
    pub black_holes_detected: u64,
    /// The payload of full datagrams in bytes.
    pub current_mtu: u16,
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// The counters of sent datagrams.
    pub udp_tx: UdpStats,
    /// The counters of received datagrams.
    pub udp_rx: UdpStats,
    /// The counters of sent frames.
    pub frame_tx: FrameStats,
    /// The counters of received frames.
    pub frame_rx: FrameStats,
    /// The path in use.
    pub path: PathStats,
}

impl From<quic::ConnectionStats> for ConnectionStats {
    fn from(stats: quic::ConnectionStats) -> Self {
        Self {
            udp_tx: stats.udp_sent.into(),
            udp_rx: stats.udp_received.into(),
            frame_tx: stats.frames_sent.into(),
            frame_rx: stats.frames_received.into(),
            path: PathStats {
                rtt: stats.path.rtt,
                min_rtt: stats.path.min_rtt,
                cwnd: stats.path.congestion_window,
                congestion_events: stats.congestion_events,
                lost_packets: stats.packets_lost,
                lost_bytes: stats.data_retransmitted,
                sent_packets: stats.packets_sent,
                current_mtu: stats.path.mtu,
                ..PathStats::default()
            },
        }
    }
}
