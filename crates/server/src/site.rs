//! The parts of a server that its connections share, whatever their protocol and address.

use std::sync::Arc;

use courser_quic::Endpoint;
use courser_quic::hooks::EndpointHooks as _;

use crate::certificates::Resolver;
use crate::events::Events;
use crate::exchange::misdirected::Names;
use crate::limits::Limits;
use crate::limits::gate::Gate;
use crate::limits::refused_clients::RefusedClients;
use crate::phase::{Conductor, Phase};
use crate::tally::Tally;
use crate::tasks::Tasks;

/// The shared parts of a server. QUIC, TCP and the handle of the server each hold a reference to it.
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
    pub(crate) events: Events,
    pub(crate) conductor: Conductor,
    pub(crate) tasks: Arc<Tasks>,
}

impl Site {
    /// Returns the only names that a connection serves, if they are restricted. `asked` is the name that
    /// the client has asked for (SNI).
    pub(crate) fn names_for(&self, asked: Option<&str>) -> Option<Names> {
        if !self.only_names {
            return None;
        }
        Names::new(self.resolver.names_for(asked))
    }

    /// Has an endpoint refuse new clients, or admit them. A draining server refuses them in any case.
    pub(crate) fn set_admission(&self, endpoint: &Endpoint) {
        let drains = self.conductor.phase() >= Phase::Draining;
        endpoint.set_busy(self.gate.is_busy() || drains);
    }

    /// Makes an endpoint one of this server: its memory counts with that of requests, and its clients are
    /// admitted as those of the others.
    pub(crate) fn adopt(&self, endpoint: &Endpoint) {
        endpoint.share_memory(self.tally.memory.used().clone());
        endpoint.set_address_filter(self.gate.filter());
        self.set_admission(endpoint);
    }
}
