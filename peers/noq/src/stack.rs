//! The parts of noq that differ between the libraries with quinn's method names.

use bytes::Bytes;
use noq::{ClientConfig, Connection, Endpoint, PathId, RecvStream};
use peers_common::{Failure, PathCounts};

pub(crate) use crate::endpoint::{client, server};

pub(crate) fn version() -> String {
    peers_common::locked_version("noq")
}

pub(crate) fn with_config(endpoint: Endpoint, config: ClientConfig) -> Endpoint {
    endpoint.set_default_client_config(config);
    endpoint
}

/// Reads what has come, `None` at the end.
pub(crate) async fn read(
    receive: &mut RecvStream,
    chunks: &mut [Bytes],
) -> Result<Option<usize>, Failure> {
    Ok(receive.read_many_chunks(chunks).await?)
}

pub(crate) fn counts(connection: &Connection) -> PathCounts {
    let stats = connection.stats();
    let path = connection.path_stats(PathId::ZERO).unwrap_or_default();
    PathCounts {
        packets_sent: stats.sent_packets,
        packets_lost: stats.lost_packets,
        packets_spuriously_lost: 0,
        datagrams_received: stats.udp_rx.datagrams,
        congestion_events: path.congestion_events,
        datagram: path.current_mtu,
        rtt_ms: path.rtt.as_secs_f64() * 1e3,
    }
}
