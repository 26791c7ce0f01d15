//! The features of QUIC and of sockets that a measurement used.

use courser::{Connection, Endpoint, PathInfo, PathPreference};
use serde::Serialize;

/// The features in use between this end and the server.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Network {
    /// The negotiated version of QUIC: `1` or `2`.
    pub quic_version: String,
    /// Maximum of datagrams in one send call (generic segmentation offload, GSO); 1 if the system does not
    /// support it, the user turned it off, or the path loses batches.
    pub gso_segments: usize,
    /// True if received datagrams may arrive merged (generic receive offload, GRO).
    pub gro: bool,
    /// True if packets are sent with ECN marks. It becomes false if the path does not deliver them
    /// (RFC 9000 §13.4.2).
    pub ecn: bool,
    /// The paths of the first connection at the end, if it may have several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<NetworkPath>,
}

/// A path at the end of a measurement.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct NetworkPath {
    /// The path ID (RFC 10069 §1.2).
    pub id: u32,
    /// The address of this end, if the system reports it.
    pub local: Option<String>,
    /// The address of the server.
    pub remote: String,
    /// What it is used for: `data`, `backup`, `silent` while it does not answer, `opening` or `closing`.
    pub state: &'static str,
    /// The smoothed round-trip time in microseconds.
    pub rtt_us: f64,
    /// The congestion window in bytes.
    pub congestion_window: u64,
    /// The size of the largest datagrams in bytes.
    pub mtu: u16,
    /// Bytes of UDP payload sent by this end.
    pub sent_bytes: u64,
    /// Bytes of UDP payload received by this end.
    pub received_bytes: u64,
    /// Packets of this end that were declared lost.
    pub packets_lost: u64,
    /// Its part of all bytes in both directions of the paths that are listed: 0 to 1.
    pub share: f64,
}

impl NetworkPath {
    /// Describes all paths of a connection.
    fn all(paths: &[PathInfo]) -> Vec<Self> {
        let bytes = |info: &PathInfo| info.traffic.bytes_sent + info.traffic.bytes_received;
        let all: u64 = paths.iter().map(bytes).sum();
        let share = |info| bytes(info) as f64 / all.max(1) as f64;
        paths
            .iter()
            .map(|info| Self::new(info, share(info)))
            .collect()
    }

    fn new(info: &PathInfo, share: f64) -> Self {
        let state = match (info.is_closing, info.is_validated, info.is_suspect) {
            (true, ..) => "closing",
            (false, false, _) => "opening",
            (false, true, true) => "silent",
            _ if info.peer_status == PathPreference::Backup => "backup",
            _ if info.own_status == PathPreference::Backup => "backup",
            _ => "data",
        };
        Self {
            id: info.id.value(),
            local: info.addresses.local.map(|ip| ip.to_string()),
            remote: info.addresses.peer.to_string(),
            state,
            rtt_us: info.stats.rtt.as_secs_f64() * 1e6,
            congestion_window: info.stats.congestion_window,
            mtu: info.stats.mtu,
            sent_bytes: info.traffic.bytes_sent,
            received_bytes: info.traffic.bytes_received,
            packets_lost: info.packets_lost,
            share,
        }
    }
}

impl Network {
    /// Returns the features that a connection uses now.
    pub(crate) fn new(endpoint: &Endpoint, connection: &Connection, is_segmenting: bool) -> Self {
        let capabilities = endpoint.capabilities();
        let stats = connection.stats();
        let marks = stats.ecn_sent;
        let marked = marks.ect0 + marks.ect1 + marks.ce;
        Self {
            quic_version: stats.version.to_string(),
            gso_segments: if is_segmenting && !stats.path.withheld.batches {
                capabilities.gso_segments
            } else {
                1
            },
            gro: capabilities.gro,
            // After a failed validation, only the first packets had a mark.
            ecn: capabilities.ecn && !stats.path.withheld.ecn && marked > stats.packets_sent / 2,
            paths: NetworkPath::all(&connection.paths()),
        }
    }
}
