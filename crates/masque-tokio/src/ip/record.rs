//! Records of IP tunnels that have ended, for logs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use courser_masque::Prefix;

use crate::record::RecordedEnd;

/// An IP tunnel that has ended, on a proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct IpTunnelRecord {
    /// The addresses that the client had at the end.
    pub addresses: Vec<Prefix>,
    /// Time from the response until the end.
    pub took: Duration,
    /// Packets of the client that the network has accepted.
    pub packets_to_network: u64,
    /// Bytes of packets of the client that may pass.
    pub bytes_to_network: u64,
    /// Packets to the client, with ICMP messages of the proxy.
    pub packets_from_network: u64,
    /// Bytes of packets to the client.
    pub bytes_from_network: u64,
    /// Packets of the client that were dropped: malformed, with other sources or to prohibited destinations, or for lack of
    /// room.
    pub dropped_to_network: u64,
    /// Packets to the client that were dropped: for lack of room, or longer than the path carries.
    pub dropped_from_network: u64,
    /// The reason of the end. `Cut` is also that of a network that has failed.
    pub end: RecordedEnd,
}

/// An extension of requests to an [`IpProxy`](crate::IpProxy), which is called with the record of the tunnel when it has
/// ended. A layer in front of the proxy inserts it. It must not block.
///
/// ```
/// # mod courser { pub use courser_masque_tokio as masque; }
/// use courser::masque::OnIpEnd;
///
/// # let mut request = http::Request::new(());
/// let on_end = OnIpEnd::new(|record| eprintln!("{:?}: {} bytes", record.addresses, record.bytes_to_network));
/// request.extensions_mut().insert(on_end);
/// ```
#[derive(Clone)]
pub struct OnIpEnd(Arc<dyn Fn(&IpTunnelRecord) + Send + Sync>);

impl OnIpEnd {
    /// Creates the extension.
    pub fn new(call: impl Fn(&IpTunnelRecord) + Send + Sync + 'static) -> Self {
        Self(Arc::new(call))
    }

    pub(crate) fn call(&self, record: &IpTunnelRecord) {
        (self.0)(record);
    }
}

impl fmt::Debug for OnIpEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnIpEnd").finish_non_exhaustive()
    }
}
