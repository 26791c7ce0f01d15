//! The capsules of an IP tunnel, and the size that IPv6 needs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_http3_tokio::Code;
use courser_masque::ip::limits::SMALLEST_MTU;
use courser_masque::ip::{AssignedAddress, Capsule, CapsuleError, Event, RequestedAddress};
use courser_quic::runtime;

use super::core::Shared;
use crate::tunnel::{Control, Ended, Fault, Protocol, Tunnel};

/// Acts on the capsules of the other end.
pub(crate) struct Configuration {
    shared: Arc<Shared>,
    /// Assigns addresses that the other end wants.
    addresses: Arc<dyn Addresses>,
    /// Ends with the size of a path that is too narrow for IPv6. `None` while no end has an address of IPv6.
    guard: Option<Pin<Box<dyn Future<Output = usize> + Send>>>,
}

/// The addresses of the other end.
pub(crate) trait Addresses: Send + Sync {
    /// Returns all addresses of the other end after a request, and the parts of the request that were refused.
    fn on_request(
        &self,
        wanted: &[RequestedAddress],
    ) -> (Vec<AssignedAddress>, Vec<RequestedAddress>);
}

/// A client assigns no addresses.
pub(crate) struct NoAddresses;

impl Addresses for NoAddresses {
    fn on_request(
        &self,
        wanted: &[RequestedAddress],
    ) -> (Vec<AssignedAddress>, Vec<RequestedAddress>) {
        (Vec::new(), wanted.to_vec())
    }
}

impl Configuration {
    /// Returns the protocol of a tunnel whose first capsules are these.
    pub(crate) fn protocol(
        shared: Arc<Shared>,
        addresses: Arc<dyn Addresses>,
        first: &[Capsule],
    ) -> Protocol {
        let control = Self {
            shared,
            addresses,
            guard: None,
        };
        Protocol::Ip {
            control: Box::new(control),
            first: first.iter().map(encoded).collect(),
        }
    }

    fn act(&self, tunnel: &Tunnel, kind: u64, value: &[u8]) -> Result<(), CapsuleError> {
        let capsule = Capsule::decode(kind, value)?;
        let mut end = self.shared.end.lock();
        match end.on_capsule(capsule)? {
            Event::Assigned => {
                let assigned = end.assigned().to_vec();
                drop(end);
                set(&self.shared.assigned, assigned);
            }
            Event::Routes => {
                let routes = end.routes().ranges().to_vec();
                drop(end);
                set(&self.shared.routes, routes);
            }
            Event::Requested(wanted) => {
                drop(end);
                let (given, refused) = self.addresses.on_request(&wanted);
                let capsule = self.shared.end.lock().assign(given, &refused);
                let (kind, value) = encoded(&capsule);
                tunnel.send_capsule(kind, value);
            }
        }
        Ok(())
    }
}

impl Control for Configuration {
    fn on_capsule(&mut self, tunnel: &Tunnel, kind: u64, value: &[u8]) -> Result<(), Fault> {
        let acted = self.act(tunnel, kind, value);
        acted.map_err(|error| Fault(Ended::Capsule(error), error.code()))
    }

    fn poll(&mut self, cx: &mut Context<'_>, tunnel: &Tunnel) -> Poll<Fault> {
        if !self.shared.end.lock().has_ipv6() {
            self.guard = None;
            return Poll::Pending;
        }
        let guard = self
            .guard
            .get_or_insert_with(|| Box::pin(narrow_size(tunnel.clone())));
        let size = std::task::ready!(guard.as_mut().poll(cx));
        self.guard = None;
        Poll::Ready(Fault(Ended::Narrow(size), Code::CONNECT_ERROR))
    }
}

/// Waits until the path carries less than IPv6 needs. The search for its MTU has some time to find more.
async fn narrow_size(tunnel: Tunnel) -> usize {
    runtime::sleep(LONGEST_SEARCH).await;
    let mut size = tunnel.max_size();
    while size >= SMALLEST_MTU {
        size = tunnel.size_changed(size).await;
    }
    size
}

/// Returns the type and the value of a capsule.
fn encoded(capsule: &Capsule) -> (u64, Vec<u8>) {
    let mut value = Vec::new();
    capsule.encode(&mut value);
    (capsule.kind(), value)
}

/// Sets a value that is watched, if it is another one.
fn set<T: PartialEq>(sender: &tokio::sync::watch::Sender<T>, value: T) {
    sender.send_if_modified(|present| {
        let is_new = *present != value;
        *present = value;
        is_new
    });
}

/// Time for the search for the MTU of the path, before a tunnel with addresses of IPv6 ends because the path carries too
/// little (limit K635).
const LONGEST_SEARCH: Duration = Duration::from_secs(5);
