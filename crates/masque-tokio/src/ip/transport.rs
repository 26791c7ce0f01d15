//! Parameters of connections with IP tunnels.

use std::time::Duration;

use courser_quic::TransportConfig;

/// Returns transport parameters that suit a connection with IP tunnels, of a client or a proxy.
///
/// Packets wait for the path like in the queue of a router: up to 512 of them, and for long no more than 5 ms, so that connections
/// inside slow down before their packets are late by seconds. The connection stays open without packets, and looks
/// for a larger path MTU again soon after a path has lost many packets.
///
/// [`IpClient::builder`](crate::IpClient::builder) uses them. A connection for [`IpClient::over`](crate::IpClient::over) has to be made
/// with them, and a server with an [`IpProxy`](crate::IpProxy) should be.
///
/// ```
/// # mod courser { pub use courser_masque_tokio as masque; pub use courser_quic::*; }
/// use courser::{TransportConfig, masque};
///
/// let config = masque::ip_transport_config(TransportConfig::default());
/// assert_eq!(config.datagram_send_queue, 512);
/// ```
pub fn ip_transport_config(base: TransportConfig) -> TransportConfig {
    TransportConfig {
        datagram_send_queue: QUEUE,
        datagram_send_buffer_size: QUEUE_BYTES,
        datagram_send_delay: Some(QUEUE_DELAY),
        datagram_receive_queue: RECEIVED,
        datagram_receive_buffer_size: Some(RECEIVED_BYTES),
        keep_alive_interval: base.keep_alive_interval.or(Some(KEEP_ALIVE)),
        mtu_black_hole_delay: Some(SEARCH_DELAY),
        mtu_raise_interval: RAISE_INTERVAL,
        ..base
    }
}

/// Packets that wait for the path (limit K575).
const QUEUE: usize = 512;

/// Bytes of these packets (limit K575).
const QUEUE_BYTES: usize = 1024 * 1024;

/// Time for which packets may wait for long (limit K575), which RFC 8289 §4.4 recommends.
const QUEUE_DELAY: Duration = Duration::from_millis(5);

/// Packets that have arrived and wait for the device (limit K644), while the task that writes them has no core. With 1024, 9 %
/// of a download were dropped here on a busy machine, and 1 to 4 % of a call beside it.
pub(crate) const RECEIVED: usize = 4096;

/// Bytes of these packets (limit K644).
pub(crate) const RECEIVED_BYTES: usize = 4 * 1024 * 1024;

/// Time without packets after which the other end is asked whether it is there: half of the 30 seconds after which many
/// address translators forget a flow (RFC 4787 §4.3 asks for two minutes).
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Time before the search for a larger path MTU begins again after many losses, which look like a path that drops large
/// packets.
const SEARCH_DELAY: Duration = Duration::from_secs(1);

/// Time before the search tries larger sizes again that were lost. A path of a mobile host changes, and a search of twenty
/// packets costs 3 kbit/s.
const RAISE_INTERVAL: Duration = Duration::from_secs(60);
