//! Records of tunnels that have ended, for logs.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A tunnel that has ended, on a proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TunnelRecord {
    /// The address to which the socket was connected.
    pub address: SocketAddr,
    /// Time from the response until the end.
    pub took: Duration,
    /// UDP packets to the target.
    pub packets_to_target: u64,
    /// Bytes of UDP payloads to the target.
    pub bytes_to_target: u64,
    /// UDP packets from the target.
    pub packets_from_target: u64,
    /// Bytes of UDP payloads from the target.
    pub bytes_from_target: u64,
    /// Packets to the target that were dropped, as in [`ProxyStats::dropped`](crate::ProxyStats::dropped), and datagrams from
    /// the client for which the tunnel had no room.
    pub dropped_to_target: u64,
    /// Packets from the target that were dropped: too large for the path to the client, or no room in its queue.
    pub dropped_from_target: u64,
    /// The reason of the end.
    pub end: RecordedEnd,
}

/// The reason why a tunnel has ended, on a proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecordedEnd {
    /// The client has ended the tunnel, or its connection was lost.
    Client,
    /// The system reported that the target cannot be reached, for example by an ICMP message.
    Target,
    /// No packet has passed for [`Limits::idle`](crate::Limits::idle).
    Idle,
    /// The proxy has ended the tunnel: see [`Gate::close`](crate::Gate::close).
    Cut,
}

impl RecordedEnd {
    /// Returns a name without spaces: `client`, `target`, `idle` or `cut`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Target => "target",
            Self::Idle => "idle",
            Self::Cut => "cut",
        }
    }
}

/// An extension of requests to a [`UdpProxy`](crate::UdpProxy), which is called with the record of the tunnel when it has
/// ended. A layer in front of the proxy inserts it. It must not block.
///
/// ```
/// # mod courser { pub use courser_masque_tokio as masque; }
/// use courser::masque::OnEnd;
///
/// # let mut request = http::Request::new(());
/// let on_end = OnEnd::new(|record| eprintln!("{} bytes to {}", record.bytes_to_target, record.address));
/// request.extensions_mut().insert(on_end);
/// ```
#[derive(Clone)]
pub struct OnEnd(Arc<dyn Fn(&TunnelRecord) + Send + Sync>);

impl OnEnd {
    /// Creates the extension.
    pub fn new(call: impl Fn(&TunnelRecord) + Send + Sync + 'static) -> Self {
        Self(Arc::new(call))
    }

    pub(crate) fn call(&self, record: &TunnelRecord) {
        (self.0)(record);
    }
}

impl fmt::Debug for OnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnEnd").finish_non_exhaustive()
    }
}
