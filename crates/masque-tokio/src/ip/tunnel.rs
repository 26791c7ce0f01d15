//! The handle of one end of an IP tunnel.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use courser_http3_tokio as h3;
use courser_masque::ip::{AddressRange, Reason};
use courser_masque::{Carrier, Prefix};
use courser_quic::runtime;

use super::core::Core;
use super::stats::IpTunnelStats;
use super::watch::Watch;
use crate::ended::Ended;
use crate::socket::SendError;

/// One end of an IP tunnel: a link that carries whole IP packets. Clones share it; the tunnel ends when the last one is
/// dropped.
///
/// Packets of both directions are judged: headers, sources that were assigned, destinations inside of routes. Those that
/// may not pass are dropped and [counted](Self::stats), and answered with ICMP where that is allowed: the answer to a
/// packet that was sent is the next packet to be received.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/ip_pair.rs"));
/// use courser::masque::{IpClient, IpRequest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result {
/// # let Started { template, root } = start().await?;
/// let client = IpClient::builder(&template)?.roots([root]).connect().await?;
/// let tunnel = client.open(IpRequest::default()).await?;
/// tunnel.configured().await?;
/// println!("addresses: {:?}, routes: {:?}", tunnel.assigned().get(), tunnel.routes().get());
/// # let [source, _] = tunnel.assigned().get()[..] else { return Err("two addresses".into()) };
/// # let packet = courser_masque::ip::icmp::echo_request(source.first(), "192.0.2.1".parse()?, b"ping").unwrap();
/// // A packet for 192.0.2.1, which answers.
/// tunnel.send(packet.into())?;
/// let mut packets = Vec::new();
/// tunnel.recv_many(&mut packets, 64).await?;
/// assert_eq!(packets[0][12..16], [192, 0, 2, 1]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct IpTunnel(Arc<Inner>);

struct Inner {
    core: Core,
    carrier: Carrier,
    /// Keeps the connection to the proxy.
    _connection: Option<h3::Client>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.core.tunnel.close();
    }
}

impl fmt::Debug for IpTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.core.shared.end.lock();
        f.debug_struct("IpTunnel")
            .field("carrier", &self.0.carrier)
            .field("assigned", &end.assigned())
            .field("routes", &end.routes().ranges())
            .finish_non_exhaustive()
    }
}

impl IpTunnel {
    pub(crate) fn new(core: Core, carrier: Carrier, connection: Option<h3::Client>) -> Self {
        Self(Arc::new(Inner {
            core,
            carrier,
            _connection: connection,
        }))
    }

    /// Sends an IP packet without waiting.
    ///
    /// # Errors
    /// Returns an error if the packet is longer than [`max_packet_size`](Self::max_packet_size), may not pass, or the
    /// tunnel has ended. For the first two, an ICMP error may wait to be received.
    pub fn send(&self, packet: Bytes) -> Result<(), SendError> {
        match self.0.core.send_one(packet) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(end)) => Err(end.into()),
            Err(Reason::TooBig { size, max }) => Err(match self.0.core.tunnel.ended() {
                Some(end) => end.into(),
                None => SendError::TooLarge { size, max },
            }),
            Err(reason) => Err(SendError::Dropped(reason)),
        }
    }

    /// Sends IP packets without waiting, and empties the list. Returns the number of those that were sent; the others
    /// were dropped, and the ICMP errors about them wait to be received. A batch costs less than its packets one by one.
    ///
    /// # Errors
    /// Returns the end of the tunnel. The list is empty then too.
    pub fn send_many(&self, packets: &mut Vec<Bytes>) -> Result<usize, Ended> {
        self.0.core.send(packets)
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
        assert!(limit > 0, "a batch of no packets");
        let begin = packets.len();
        let core = &self.0.core;
        let mut answers = Vec::new();
        poll_fn(|cx| core.poll_receive(cx, packets, &mut answers, limit)).await?;
        packets.append(&mut answers);
        Ok(packets.len() - begin)
    }

    /// Returns the addresses that this end may use as sources, which the other end has assigned. Empty until it has.
    pub fn assigned(&self) -> Watch<Vec<Prefix>> {
        let core = &self.0.core;
        Watch::new(core.shared.assigned.subscribe(), core.clone())
    }

    /// Uses only these addresses from now on, as far as they are assigned. Packets to others are dropped, as are those from
    /// others. A host without a network behind it uses single addresses of an assigned prefix: the other end could otherwise
    /// send packets to addresses that the host has for other networks.
    ///
    pub fn use_addresses(&self, addresses: &[Prefix]) {
        self.0.core.shared.end.lock().choose(addresses);
    }

    /// Returns the destinations to which this end may send packets, which the other end has advertised. Empty until it has.
    pub fn routes(&self) -> Watch<Vec<AddressRange>> {
        let core = &self.0.core;
        Watch::new(core.shared.routes.subscribe(), core.clone())
    }

    /// Waits until the other end has assigned an address and advertised a route, which a proxy does at once. A request for
    /// addresses has a second to be answered, because the answer may exchange the first address for the one that was wanted.
    ///
    /// # Errors
    /// Returns the end of the tunnel.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn configured(&self) -> Result<(), Ended> {
        let (mut assigned, mut routes) = (self.assigned(), self.routes());
        while assigned.get().is_empty() {
            assigned.changed().await?;
        }
        while routes.get().is_empty() {
            routes.changed().await?;
        }
        let core = &self.0.core;
        let mut answered = Watch::new(core.shared.answered.subscribe(), core.clone());
        let answer = async {
            while !answered.get() {
                answered.changed().await?;
            }
            Ok(())
        };
        // Some proxies assign addresses and read no requests.
        let waited = runtime::timeout(LONGEST_ANSWER, answer).await;
        waited.unwrap_or(Ok(()))
    }

    /// Returns the longest packet that can be sent now, in bytes: the MTU of the link. Over HTTP/3 it is what a QUIC
    /// packet carries, and grows as the path MTU is found; over HTTP/2 and HTTP/1.1 it is 65 575. Packets of IPv6, and those of
    /// IPv4 that may be fragmented, can always have 1280 bytes: they leave in capsules while the path carries less.
    pub fn max_packet_size(&self) -> usize {
        self.0.core.tunnel.max_size()
    }

    /// Waits until [`max_packet_size`](Self::max_packet_size) differs from `known`, and returns it.
    ///
    /// # Errors
    /// Returns the end of the tunnel.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn max_packet_size_changed(&self, known: usize) -> Result<usize, Ended> {
        let tunnel = &self.0.core.tunnel;
        let mut changed = pin!(tunnel.size_changed(known));
        let mut closed = pin!(tunnel.closed());
        poll_fn(|cx| match changed.as_mut().poll(cx) {
            Poll::Ready(size) => Poll::Ready(Ok(size)),
            Poll::Pending => closed.as_mut().poll(cx).map(Err),
        })
        .await
    }

    /// Returns the version of HTTP that carries the tunnel.
    pub fn carrier(&self) -> Carrier {
        self.0.carrier
    }

    /// Waits until the tunnel has ended.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn closed(&self) -> Ended {
        self.0.core.tunnel.closed().await
    }

    /// Ends the tunnel. The other end takes its addresses back.
    pub fn close(&self) {
        self.0.core.tunnel.close();
    }

    /// Returns the counters of this end.
    pub fn stats(&self) -> IpTunnelStats {
        self.0.core.stats()
    }
}

/// Time for the answer to a request for addresses.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);
