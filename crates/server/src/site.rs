//! The parts of a server that all connections share, independently of protocol and address.

use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::canonical;
use courser_quic::Endpoint;
use courser_quic::hooks::EndpointHooks as _;

use crate::certificates::Resolver;
use crate::events::Events;
use crate::exchange::misdirected::Names;
use crate::limits::Limits;
use crate::limits::gate::Gate;
use crate::limits::refused_clients::RefusedClients;
use crate::phase::{Phase, Phases};
use crate::tally::Tally;
use crate::tasks::Tasks;

/// The shared parts of a server, referenced by QUIC, TCP and the handle of the server.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) limits: Limits,
    pub(crate) tally: Arc<Tally>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) refused_clients: RefusedClients,
    pub(crate) resolver: Arc<Resolver>,
    /// True if requests for hosts other than the names of the certificate are refused.
    pub(crate) only_names: bool,
    /// True if services can send interim responses.
    pub(crate) sends_interim: bool,
    /// True if HTTP/2 clients may send extended CONNECT.
    pub(crate) http2_connect: bool,
    pub(crate) events: Events,
    pub(crate) phases: Phases,
    pub(crate) tasks: Arc<Tasks>,
}

impl Site {
    /// Returns the hosts to which a connection is restricted, if any. `requested` is the name that the client
    /// requested (SNI), and `local` the address to which it has connected.
    pub(crate) fn names_for(
        &self,
        requested: Option<&str>,
        local: Option<SocketAddr>,
    ) -> Option<Names> {
        if !self.only_names {
            return None;
        }
        let local = local.map(|local| canonical(local).ip());
        Names::new(self.resolver.names_for(requested), local)
    }

    /// Makes an endpoint refuse or admit new clients. A draining server always refuses them.
    pub(crate) fn set_admission(&self, endpoint: &Endpoint) {
        let drains = self.phases.phase() >= Phase::Draining;
        endpoint.set_refusal(match self.gate.is_busy() {
            _ if drains => Some(SHUTTING_DOWN),
            true => Some("the server is busy"),
            false => None,
        });
    }

    /// Adds an endpoint to this server: its budget includes the memory of requests, and it applies the same
    /// admission as the others.
    pub(crate) fn add_endpoint(&self, endpoint: &Endpoint) {
        endpoint.share_memory(self.tally.holders.memory().used().clone());
        endpoint.set_address_filter(self.gate.filter());
        self.set_admission(endpoint);
    }
}

/// The reason that clients receive which come during a drain.
pub(crate) const SHUTTING_DOWN: &str = "the server is shutting down";
