//! The bounds of a UDP proxy.

use std::time::Duration;

/// What the clients of a UDP proxy may use.
///
/// ```
/// use std::time::Duration;
/// use courser_masque::Limits;
/// let limits = Limits {
///     tunnels_per_client: 16,
///     idle: Duration::from_secs(300),
///     ..Limits::default()
/// };
/// assert_eq!(limits.tunnels, 65_536);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Tunnels of one client at a time (limit K621). Default 256.
    pub tunnels_per_client: usize,
    /// Tunnels of all clients at a time (limit K621). Each has a socket, and over HTTP/1.1 a connection. On Linux, both
    /// use at most nine tenths of the file descriptors of the process. Each socket has a port of the machine, of which
    /// Linux assigns 28 232 by default (`net.ipv4.ip_local_port_range`). Default 65 536.
    pub tunnels: usize,
    /// Time without a packet in either direction after which a tunnel ends (limit K621). RFC 9298 §3.1 asks for at
    /// least two minutes (RFC 4787 §4.3). Default 120 s.
    pub idle: Duration,
    /// Datagrams and their bytes that are kept while a name is resolved (limit K622). Default 8 and 12 KiB.
    pub early_datagrams: usize,
    /// See [`early_datagrams`](Self::early_datagrams).
    pub early_bytes: usize,
    /// Bytes to a target that has never answered (limit K623). Default 64 KiB.
    pub unanswered_bytes: u64,
    /// Bytes per second beyond that (limit K623). Default 1024.
    pub unanswered_rate: u64,
    /// Time to resolve a name (limit K624). Default 5 s.
    pub resolution: Duration,
    /// Addresses of a name that are judged (limit K624). Default 16.
    pub answers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tunnels_per_client: TUNNELS_PER_CLIENT,
            tunnels: TUNNELS,
            idle: IDLE,
            early_datagrams: EARLY_DATAGRAMS,
            early_bytes: EARLY_BYTES,
            unanswered_bytes: UNANSWERED_BYTES,
            unanswered_rate: UNANSWERED_RATE,
            resolution: RESOLUTION,
            answers: ANSWERS,
        }
    }
}

/// Tunnels of a client (limit K621).
const TUNNELS_PER_CLIENT: usize = 256;
/// Tunnels of a proxy (limit K621).
const TUNNELS: usize = 65_536;
/// Time without a packet (limit K621).
const IDLE: Duration = Duration::from_secs(120);
/// Datagrams that wait for the address of their target (limit K622).
const EARLY_DATAGRAMS: usize = 8;
/// Bytes of these datagrams (limit K622).
const EARLY_BYTES: usize = 12 * 1024;
/// Bytes to a target that has never answered (limit K623).
const UNANSWERED_BYTES: u64 = 64 * 1024;
/// Bytes per second to a target that has never answered (limit K623).
const UNANSWERED_RATE: u64 = 1024;
/// Time to resolve a name (limit K624).
const RESOLUTION: Duration = Duration::from_secs(5);
/// Addresses of a name that are judged (limit K624).
const ANSWERS: usize = 16;
