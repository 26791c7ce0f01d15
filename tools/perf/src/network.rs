//! The features of QUIC and of sockets that a measurement used.

use courser::{Connection, Endpoint};
use serde::Serialize;

/// The features in use between this end and the server.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
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
        }
    }
}
