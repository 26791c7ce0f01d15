//! The version of a connection and its negotiation. RFC 9368, RFC 9369 §4.

use courser_base::Side;
use courser_wire::packet::{Packet, PacketKind};
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{TransportErrorCode, Version, VersionInformation, Versions};

use crate::error::TransportError;

/// The versions of one connection.
///
/// A server negotiates when it has the client's transport parameters. A client reads the result from long
/// headers (RFC 9369 §4):
///
/// ```text
///             another version, or CRYPTO data
///   undecided ───────────────────────────────► settled
///       │ ▲
///       └─┘ Version Negotiation, once
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Negotiation {
    side: Side,
    /// Versions that this end supports, most preferred first.
    supported: Versions,
    /// True on a server that moves clients to the version that it prefers.
    moves_clients: bool,
    /// The version of the client's first flight.
    original: Version,
    /// The version in which this end sends.
    current: Version,
    is_settled: bool,
    /// True on a client that has restarted after a Version Negotiation packet.
    has_reacted: bool,
}

/// The reaction of a client to a Version Negotiation packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reaction {
    /// The packet is ignored.
    Ignore,
    /// No version of the list is supported: the connection fails.
    Fail,
    /// A new first flight in this version follows.
    Restart(Version),
}

impl Negotiation {
    /// Creates the versions of a client that begins with `first`, or else with the first one of the list.
    pub(crate) fn of_client(supported: Versions, first: Option<Version>) -> Self {
        let first = first.or(supported.first()).unwrap_or(Version::V1);
        Self {
            side: Side::Client,
            supported,
            moves_clients: false,
            original: first,
            current: first,
            is_settled: supported.iter().count() < 2,
            has_reacted: false,
        }
    }

    /// Creates the versions of a server whose client began with `original`.
    pub(crate) fn of_server(supported: Versions, moves_clients: bool, original: Version) -> Self {
        Self {
            side: Side::Server,
            supported,
            moves_clients,
            original,
            current: original,
            is_settled: false,
            has_reacted: false,
        }
    }

    /// Returns the versions that this end supports, most preferred first.
    pub(crate) fn supported(&self) -> Versions {
        self.supported
    }

    /// Returns the version in which this end sends.
    pub(crate) fn current(&self) -> Version {
        self.current
    }

    /// Returns the version of packets of one kind. Early data stays in the version in which the
    /// client began (RFC 9369 §4.1).
    pub(crate) fn of_kind(&self, kind: PacketKind) -> Version {
        match kind {
            PacketKind::ZeroRtt => self.original,
            _ => self.current,
        }
    }

    /// Returns the parameter to send with the chosen version. An end that supports version 1 only
    /// sends none.
    pub(crate) fn information(&self, chosen: Version) -> Option<VersionInformation> {
        let is_needed = self.supported.iter().any(|version| version != Version::V1);
        is_needed.then(|| VersionInformation::new(chosen, self.supported))
    }

    /// Returns true if a server may change the version, so that its first flight depends on the client's
    /// transport parameters.
    pub(crate) fn depends_on_client(&self) -> bool {
        self.moves_clients && self.supported.first() != Some(self.original)
    }

    /// Returns true if packets of this version and kind may arrive. All others are dropped
    /// (RFC 9369 §4.1).
    pub(crate) fn accepts(&self, packet: &Packet) -> bool {
        if packet.kind == PacketKind::OneRtt {
            return true;
        }
        let Some(version) = Version::from_value(packet.version) else {
            return false;
        };
        match (packet.kind, self.side) {
            (PacketKind::Retry | PacketKind::ZeroRtt, _) => version == self.original,
            // The keys of the version in which the client began stay until its Handshake packets
            // have arrived.
            (PacketKind::Initial, Side::Server) => {
                version == self.original || version == self.current
            }
            (_, Side::Client) if !self.is_settled => self.supported.contains(version),
            _ => version == self.current,
        }
    }

    /// Returns the version of a packet that needs Initial keys of another version than ours: the
    /// server has moved the connection, or the packet is forged.
    pub(crate) fn other(&self, packet: &Packet) -> Option<Version> {
        let is_candidate =
            packet.kind == PacketKind::Initial && self.side.is_client() && !self.is_settled;
        Version::from_value(packet.version)
            .filter(|&version| is_candidate && version != self.current)
    }

    /// Processes an authentic Initial of the server. Returns true if it is the first one of another version,
    /// which is then the negotiated one.
    pub(crate) fn on_server_packet(&mut self, packet: &Packet) -> bool {
        let Some(version) = self.other(packet) else {
            return false;
        };
        self.current = version;
        self.is_settled = true;
        true
    }

    /// Processes CRYPTO data of the server, which it sends only in the negotiated version.
    pub(crate) fn on_crypto(&mut self) {
        self.is_settled = true;
    }

    /// Processes a Version Negotiation packet that is the first response to a client's Initial.
    pub(crate) fn on_version_negotiation(
        &mut self,
        offered: impl Iterator<Item = u32> + Clone,
    ) -> Reaction {
        let offers = |version: Version| offered.clone().any(|it| it == version.value());
        if self.has_reacted || offers(self.original) {
            return Reaction::Ignore;
        }
        match self.supported.choose(|&version| offers(version)) {
            None => Reaction::Fail,
            Some(version) => {
                self.has_reacted = true;
                (self.original, self.current) = (version, version);
                Reaction::Restart(version)
            }
        }
    }

    /// Returns the version that a server chooses for a client with these versions.
    pub(crate) fn choose(&self, client: Option<&VersionInformation>) -> Version {
        let Some(client) = client.filter(|_| self.moves_clients) else {
            return self.original;
        };
        let is_possible = |&it: &Version| it == self.original || client.available().contains(it);
        self.supported.choose(is_possible).unwrap_or(self.original)
    }

    /// Processes the peer's parameters. Returns true on a server that switches to another version.
    ///
    /// # Errors
    ///
    /// VERSION_NEGOTIATION_ERROR if the ends disagree on the version, as if an attacker had
    /// interfered (RFC 9368 §4).
    pub(crate) fn on_parameters(
        &mut self,
        peer: &TransportParameters,
    ) -> Result<bool, TransportError> {
        let information = peer.version_information.as_ref();
        if self.side.is_client() {
            self.is_settled = true;
            self.check_server(information)?;
            return Ok(false);
        }
        if information.is_some_and(|it| it.chosen() != self.original.value()) {
            return Err(disagreement(
                "the chosen version is not the one of the first flight",
            ));
        }
        self.current = self.choose(information);
        self.is_settled = true;
        Ok(self.current != self.original)
    }

    /// Checks that the server has chosen the version of its packets, and that the client would have
    /// reacted to it in the same way as to the Version Negotiation packet that it received.
    fn check_server(&self, server: Option<&VersionInformation>) -> Result<(), TransportError> {
        let Some(server) = server else {
            let was_moved = self.current != self.original;
            // Such a server is treated as if it supported version 1 only (RFC 9368 §8).
            if was_moved || self.has_reacted && self.current != Version::V1 {
                return Err(disagreement("version_information is missing"));
            }
            return Ok(());
        };
        if server.chosen() != self.current.value() {
            return Err(disagreement(
                "the chosen version is not the one of the packets",
            ));
        }
        if !self.has_reacted {
            return Ok(());
        }
        let is_available = |&it: &Version| it == self.current || server.available().contains(it);
        if server.is_empty() || self.supported.choose(is_available) != Some(self.original) {
            return Err(disagreement(
                "the server supports a better version than Version Negotiation offered",
            ));
        }
        Ok(())
    }
}

fn disagreement(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::VERSION_NEGOTIATION_ERROR, reason)
}

#[cfg(test)]
mod tests;
