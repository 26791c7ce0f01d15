//! The capsules of an IP tunnel, and the size that IPv6 needs.

use std::sync::Arc;

use courser_masque::ip::limits::SMALLEST_MTU;
use courser_masque::ip::{AssignedAddress, Capsule, CapsuleError, Event, RequestedAddress};

use super::core::Shared;
use crate::ended::Ended;
use crate::protocol::{Control, Fault, Probe, Protocol};

/// Acts on the capsules of the other end.
pub(crate) struct Configuration {
    shared: Arc<Shared>,
    /// Assigns addresses that the other end wants.
    addresses: Arc<dyn Addresses>,
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
        let control = Self { shared, addresses };
        Protocol::Ip {
            control: Box::new(control),
            first: first.iter().map(encoded).collect(),
        }
    }

    fn act(&self, kind: u64, value: &[u8]) -> Result<Option<Capsule>, CapsuleError> {
        let capsule = Capsule::decode(kind, value)?;
        let mut end = self.shared.end.lock();
        match end.on_capsule(capsule)? {
            Event::Assigned => {
                let (assigned, is_answered) = (end.assigned().to_vec(), end.is_answered());
                drop(end);
                set(&self.shared.assigned, assigned);
                set(&self.shared.answered, is_answered);
                Ok(None)
            }
            Event::Routes => {
                let routes = end.routes().ranges().to_vec();
                drop(end);
                set(&self.shared.routes, routes);
                Ok(None)
            }
            Event::Requested(wanted) => {
                drop(end);
                let (given, refused) = self.addresses.on_request(&wanted);
                Ok(Some(self.shared.end.lock().assign(given, &refused)))
            }
        }
    }
}

impl Control for Configuration {
    fn on_capsule(&mut self, kind: u64, value: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Fault> {
        match self.act(kind, value) {
            Ok(answer) => Ok(answer.as_ref().map(encoded)),
            Err(error) => Err(Fault(Ended::Capsule(error), error.code())),
        }
    }

    fn smallest_payload(&self) -> usize {
        match self.shared.end.lock().has_ipv6() {
            true => SMALLEST_MTU,
            false => 0,
        }
    }

    fn probe(&self) -> Arc<dyn Probe> {
        self.shared.clone()
    }
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
