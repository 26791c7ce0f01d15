//! The parts of quinn that differ between the libraries with its method names.

use bytes::Bytes;
use peers_common::{Failure, PathCounts};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream};

pub(crate) use crate::endpoint::{client, server};

pub(crate) fn version() -> String {
    peers_common::locked_version("quinn")
}

pub(crate) fn with_config(mut endpoint: Endpoint, config: ClientConfig) -> Endpoint {
    endpoint.set_default_client_config(config);
    endpoint
}

/// Reads what has come, `None` at the end.
pub(crate) async fn read(
    receive: &mut RecvStream,
    chunks: &mut [Bytes],
) -> Result<Option<usize>, Failure> {
    Ok(receive.read_chunks(chunks).await?)
}

pub(crate) fn counts(connection: &Connection) -> PathCounts {
    let stats = connection.stats();
    let path = stats.path;
    PathCounts {
        packets_sent: path.sent_packets,
        packets_lost: path.lost_packets,
        packets_spuriously_lost: 0,
        datagrams_received: stats.udp_rx.datagrams,
        congestion_events: path.congestion_events,
        datagram: path.current_mtu,
        rtt_ms: path.rtt.as_secs_f64() * 1e3,
    }
}
