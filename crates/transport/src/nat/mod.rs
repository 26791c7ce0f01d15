//! Direct paths between two ends behind NATs: candidates, rounds of probes, permits.
//! draft-seemann-quic-nat-traversal-02, in the variant of the field.
//!
//! The ends are connected over a relay. The server announces addresses at which it may be reached (ADD_ADDRESS). The
//! client starts rounds: it sends its own addresses (REACH_OUT), and both ends send PATH_CHALLENGE to the addresses of
//! the other at the same time, so that their NATs let the packets of the other in. The client opens a path to each
//! address that answers.
//!
//! [`Traversal`] decides who is probed when. It owns no path: the connection sends the probes, each with an ID that no other
//! path carries, and opens the paths. A connection whose ends have not agreed on the extension has no such state.

mod addresses;
mod error;
mod own;
mod permits;
mod responses;
mod round;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use courser_base::{Side, Time};
use courser_wire::{AddAddress, PathId, ReachOut, RemoveAddress};

use self::addresses::OwnAddresses;
pub use self::error::CandidateError;
use self::own::OwnCandidates;
use self::permits::ConnectionPermits;
pub(crate) use self::permits::EndpointPermits;
use self::responses::Responses;
use self::round::Round;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::path::Place;
use crate::space::sent::SentFrame;

/// The most candidates of each end (limit K285).
pub(crate) const MAX_CANDIDATES: u8 = 8;

/// The state of an end that looks for direct paths.
#[derive(Debug)]
pub(crate) struct Traversal {
    side: Side,
    /// The number of addresses that this end accepts.
    own_limit: usize,
    own: OwnCandidates,
    addresses: OwnAddresses,
    /// The candidates of the server, on a client.
    remote: Vec<Remote>,
    round: Round,
    responses: Responses,
    permits: ConnectionPermits,
    /// The connection IDs of the peer that probes carry, and their paths.
    probe_ids: Vec<ProbeId>,
    /// The frame of the packet that is being built, and the number of its connection ID.
    outgoing: Option<Outgoing>,
    outgoing_id: Option<u64>,
    found: Vec<Found>,
    schedule: Schedule,
    stats: CandidateStats,
    /// Bytes of probes to addresses that have not answered.
    unanswered_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Remote {
    sequence: u64,
    address: SocketAddr,
}

/// A connection ID of the peer that is reserved for probes of one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProbeId {
    pub(crate) path: PathId,
    pub(crate) sequence: u64,
    target: SocketAddr,
}

/// A single frame to an address that is no path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outgoing {
    /// A challenge for a target of the round.
    Challenge([u8; 8]),
    /// The response to a challenge from elsewhere.
    Response([u8; 8]),
}

/// An address that has answered a probe of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) address: SocketAddr,
    pub(crate) state: FoundState,
}

/// The progress of a path to an address that has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FoundState {
    /// The path is to be opened when IDs and limits permit.
    Waiting,
    /// The path is being validated, or open as backup.
    Opened(PathId),
    /// The path was preferred to the one over the relay.
    Preferred(PathId),
}

/// The times of the rounds of a client.
#[derive(Debug)]
struct Schedule {
    next: Option<Time>,
    pause: Duration,
    last_begun: Option<Time>,
}

/// Counters of the search for direct paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CandidateStats {
    /// Rounds that were begun.
    pub rounds: u64,
    /// Probes that were sent.
    pub probes_sent: u64,
    /// Addresses of the peer that no probe may be sent to: see [`Candidates::offer`](crate::Candidates::offer).
    pub addresses_refused: u64,
    /// Probes that were answered.
    pub probes_answered: u64,
    /// Frames of the peer that contradict earlier ones, or are beyond the limit.
    pub frames_ignored: u64,
}

impl Traversal {
    /// Creates the state of an end that accepts `own_limit` addresses, and whose peer accepts `peer_limit`.
    pub(crate) fn new(side: Side, own_limit: u8, peer_limit: u8) -> Self {
        Self {
            side,
            own_limit: usize::from(own_limit),
            own: OwnCandidates::new(usize::from(peer_limit.min(MAX_CANDIDATES))),
            addresses: OwnAddresses::default(),
            remote: Vec::new(),
            round: Round::default(),
            responses: Responses::default(),
            permits: ConnectionPermits::default(),
            probe_ids: Vec::new(),
            outgoing: None,
            outgoing_id: None,
            found: Vec::new(),
            schedule: Schedule {
                next: None,
                pause: FIRST_PAUSE,
                last_begun: None,
            },
            stats: CandidateStats::default(),
            unanswered_bytes: 0,
        }
    }

    /// Offers an address of this end to the peer. Returns false if it was offered before.
    pub(crate) fn offer(&mut self, now: Time, address: SocketAddr) -> Result<bool, CandidateError> {
        let is_new = self.own.offer(address, self.side)?;
        if is_new {
            self.addresses.add(address);
            self.on_change(now);
        }
        Ok(is_new)
    }

    /// Withdraws an address of this end. Returns false if it was not offered.
    pub(crate) fn withdraw(&mut self, address: SocketAddr) -> bool {
        let was_offered = self.own.withdraw(address, self.side);
        if was_offered {
            self.addresses.remove(address);
        }
        was_offered
    }

    /// Adds a network of this machine, whose private addresses may be probed.
    pub(crate) fn add_network(&mut self, network: IpAddr, prefix: u8) {
        self.addresses.add_network(network, prefix);
    }

    /// Returns the addresses that this end offers.
    pub(crate) fn offered(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.own.iter()
    }

    /// Returns the addresses that the server has announced.
    pub(crate) fn announced(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.remote.iter().map(|remote| remote.address)
    }

    /// Returns the addresses that have answered, and the paths to them.
    pub(crate) fn found(&self) -> &[Found] {
        &self.found
    }

    pub(crate) fn found_mut(&mut self) -> &mut [Found] {
        &mut self.found
    }

    pub(crate) fn stats(&self) -> CandidateStats {
        self.stats
    }

    /// Looks for a direct path again after one was closed.
    pub(crate) fn on_path_closed(&mut self, now: Time, path: PathId) {
        let before = self.found.len();
        self.found.retain(|it| {
            !matches!(it.state, FoundState::Opened(id) | FoundState::Preferred(id) if id == path)
        });
        if self.found.len() < before {
            self.on_change(now);
        }
    }

    /// Schedules a round of a client whose candidates have changed.
    fn on_change(&mut self, now: Time) {
        if self.side.is_client() && !self.remote.is_empty() {
            self.schedule.pause = FIRST_PAUSE;
            let earliest = self.schedule.last_begun.map(|at| at + FIRST_PAUSE);
            let at = earliest.map_or(now, |at| at.max(now));
            self.schedule.next = Some(self.schedule.next.map_or(at, |next| next.min(at)));
        }
    }

    /// Starts a round as soon as the last one is five seconds old.
    pub(crate) fn request_round(&mut self, now: Time) -> Result<(), CandidateError> {
        if self.side.is_server() {
            return Err(CandidateError::NotClient);
        }
        let mut remote = self.remote.iter();
        if !remote.any(|it| self.addresses.may_probe(it.address)) {
            return Err(CandidateError::NoCandidates);
        }
        self.on_change(now);
        Ok(())
    }

    fn begin_round(&mut self, now: Time) {
        self.schedule.last_begun = Some(now);
        self.schedule.next = None;
        self.stats.rounds += 1;
        self.round.begin(self.round.number() + 1);
        self.own.reach_out();
        let mut targets: Vec<SocketAddr> = self.announced().collect();
        targets.retain(|address| self.addresses.may_probe(*address));
        self.stats.addresses_refused += (self.remote.len() - targets.len()) as u64;
        targets.sort_by_key(|address| self.addresses.rank(*address));
        for target in targets.into_iter().take(MAX_TARGETS) {
            self.round.add(target, now);
        }
    }

    /// Processes ADD_ADDRESS.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION at a server.
    pub(crate) fn on_add_address(
        &mut self,
        now: Time,
        frame: AddAddress,
    ) -> Result<(), TransportError> {
        self.check_side(Side::Client)?;
        let is_known = |it: &Remote| it.sequence == frame.sequence || it.address == frame.address;
        if self.remote.iter().any(is_known) || self.remote.len() >= self.own_limit {
            let same = Remote {
                sequence: frame.sequence,
                address: frame.address,
            };
            self.stats.frames_ignored += u64::from(!self.remote.contains(&same));
            return Ok(());
        }
        self.remote.push(Remote {
            sequence: frame.sequence,
            address: frame.address,
        });
        if self.found.is_empty() {
            self.on_change(now);
        }
        Ok(())
    }

    /// Processes REMOVE_ADDRESS. An unknown number is ignored.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION at a server.
    pub(crate) fn on_remove_address(&mut self, frame: RemoveAddress) -> Result<(), TransportError> {
        self.check_side(Side::Client)?;
        let mut remote = self.remote.iter();
        if let Some(at) = remote.position(|it| it.sequence == frame.sequence) {
            let removed = self.remote.swap_remove(at);
            self.round.remove(removed.address);
        }
        Ok(())
    }

    /// Processes REACH_OUT: an address of the client that this server should probe.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION at a client, and for more addresses in a round than this end accepts.
    pub(crate) fn on_reach_out(
        &mut self,
        now: Time,
        frame: ReachOut,
    ) -> Result<(), TransportError> {
        self.check_side(Side::Server)?;
        if frame.round < self.round.number() {
            return Ok(());
        }
        if frame.round > self.round.number() || self.schedule.last_begun.is_none() {
            // Rounds that follow too early wait, so that a peer cannot direct probes at will (limit K285).
            self.schedule.last_begun = Some(match self.schedule.last_begun {
                None => now,
                Some(begins) if begins > now => begins,
                Some(begun) => (begun + FIRST_PAUSE).max(now),
            });
            self.stats.rounds += 1;
            self.round.begin(frame.round);
        }
        if self.round.has(frame.address) {
            return Ok(());
        }
        if self.round.len() >= self.own_limit {
            let reason = format!("more than {} addresses in one round", self.own_limit);
            return Err(TransportError::protocol_violation(reason));
        }
        let begins = self.schedule.last_begun.unwrap_or(now);
        if self.addresses.may_probe(frame.address) {
            self.round.add(frame.address, begins.max(now));
        } else {
            self.stats.addresses_refused += 1;
            self.round.add_refused(frame.address);
        }
        Ok(())
    }

    fn check_side(&self, receiver: Side) -> Result<(), TransportError> {
        if self.side == receiver {
            return Ok(());
        }
        let reason = match receiver {
            Side::Client => "ADD_ADDRESS or REMOVE_ADDRESS from a client",
            Side::Server => "REACH_OUT from a server",
        };
        Err(TransportError::protocol_violation(reason))
    }

    /// Processes a challenge from an address that is no path. It is answered there.
    pub(crate) fn on_challenge(&mut self, now: Time, place: Place, data: [u8; 8]) {
        self.responses.push(place, data);
        let from = place.tuple.peer;
        // The NAT of the server uses another port towards us than it has announced.
        if self.side.is_client()
            && !self.round.is_over(now)
            && self.round.len() < MAX_TARGETS
            && !self.round.has(from)
            && self.addresses.may_probe(from)
        {
            self.round.add(from, now);
        }
    }

    /// Processes a response. Returns true if it answers a probe of the round from the address that was asked.
    pub(crate) fn on_response(&mut self, from: SocketAddr, data: [u8; 8]) -> bool {
        if !self.round.on_response(from, data) {
            return false;
        }
        self.stats.probes_answered += 1;
        self.unanswered_bytes = 0;
        let is_known = self.found.iter().any(|found| found.address == from);
        if self.side.is_client() && !is_known && self.found.len() < usize::from(MAX_CANDIDATES) {
            self.found.push(Found {
                address: from,
                state: FoundState::Waiting,
            });
        }
        true
    }

    /// Returns the time of the first timer.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        Time::earliest(self.schedule.next, self.round.next_timeout())
    }

    /// Runs the timers. Returns true if the round has ended, so that the IDs of its probes are to be retired.
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        let has_ended = self.round.end_if_over(now);
        if has_ended && self.side.is_client() && self.found.is_empty() {
            let begun = self.schedule.last_begun.unwrap_or(now);
            let at = (begun + self.schedule.pause).max(now);
            self.schedule.pause = (self.schedule.pause * 2).min(LONGEST_PAUSE);
            self.schedule.next.get_or_insert(at);
        }
        if self.schedule.next.is_some_and(|at| at <= now) {
            self.begin_round(now);
            return true;
        }
        has_ended
    }

    /// Returns the address of the next probe that is due, for the permits of the endpoint. `received` are the bytes that
    /// have arrived on the paths of the connection.
    pub(crate) fn next_probe(&mut self, now: Time, received: u64) -> Option<SocketAddr> {
        let target = self.round.next_due(now)?;
        let limit = received.saturating_mul(3);
        let may_send = self.unanswered_bytes + PROBE_SIZE <= limit;
        let wait = match self.permits.wait(now) {
            Some(until) => Some(until),
            None if may_send => None,
            None => Some(now + SHORT_WAIT),
        };
        match wait {
            None => Some(target),
            Some(until) => {
                self.round.postpone(target, until);
                None
            }
        }
    }

    /// Postpones a probe that the endpoint does not permit now.
    pub(crate) fn postpone(&mut self, now: Time, target: SocketAddr) {
        self.round.postpone(target, now + SHORT_WAIT);
    }

    /// Prepares the probe of a target, for which the endpoint has given a permit.
    pub(crate) fn begin_probe(&mut self, now: Time, target: SocketAddr, data: [u8; 8]) {
        self.permits.take(now);
        self.round.on_sent(now, target, data);
        self.stats.probes_sent += 1;
        self.unanswered_bytes += PROBE_SIZE;
        self.outgoing = Some(Outgoing::Challenge(data));
    }

    /// Prepares the next response to a challenge from elsewhere, and returns where it goes.
    pub(crate) fn begin_response(&mut self) -> Option<Place> {
        let (place, data) = self.responses.pop()?;
        self.outgoing = Some(Outgoing::Response(data));
        Some(place)
    }

    /// Writes the frame that was prepared.
    pub(crate) fn write_outgoing(&mut self, packet: &mut PacketBuilder<'_>) {
        use courser_wire::{PathChallenge, PathResponse};
        match self.outgoing.take() {
            Some(Outgoing::Challenge(data)) => {
                PathChallenge { data }.encode(packet.writer());
                packet.record(SentFrame::PathChallenge);
            }
            Some(Outgoing::Response(data)) => {
                PathResponse { data }.encode(packet.writer());
                packet.record(SentFrame::PathResponse);
            }
            None => {}
        }
    }

    /// Returns the connection IDs that are reserved for probes, each with its path.
    pub(crate) fn probe_ids(&mut self) -> &mut Vec<ProbeId> {
        &mut self.probe_ids
    }

    /// Chooses the connection ID for a datagram to `target` in the name of `path`. `reserve` reserves one that no other
    /// path carries. If the peer has issued too few, targets share one.
    pub(crate) fn choose_id(
        &mut self,
        path: PathId,
        target: SocketAddr,
        mut reserve: impl FnMut() -> Option<u64>,
    ) {
        let ids = &mut self.probe_ids;
        let own = |id: &&ProbeId| id.path == path && id.target == target;
        let mut chosen = ids.iter().find(own).map(|id| id.sequence);
        if chosen.is_none() && ids.len() < MAX_PROBE_IDS {
            chosen = reserve();
            ids.extend(chosen.map(|sequence| ProbeId {
                path,
                sequence,
                target,
            }));
        }
        let of_path = |id: &&ProbeId| id.path == path;
        self.outgoing_id = chosen.or_else(|| ids.iter().find(of_path).map(|id| id.sequence));
    }

    /// Returns the number of the connection ID that was chosen.
    pub(crate) fn outgoing_id(&self) -> Option<u64> {
        self.outgoing_id
    }

    /// Returns true if the address is probed in the round.
    pub(crate) fn is_target(&self, address: SocketAddr) -> bool {
        self.round.has(address)
    }

    /// Returns true while packets from unknown addresses may be those of a round.
    pub(crate) fn expects_probes(&self, now: Time) -> bool {
        self.side.is_server() || !self.round.is_over(now)
    }

    /// Returns true if a frame or a response waits.
    pub(crate) fn has_frames_to_send(&self) -> bool {
        self.own.has_frames_to_send()
    }

    pub(crate) fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        self.own
            .write_frames(self.side, self.round.number(), packet);
    }

    pub(crate) fn on_acked(&mut self, frame: SentFrame) {
        self.own.on_acked(frame, self.round.number());
    }

    pub(crate) fn on_lost(&mut self, frame: SentFrame) {
        self.own.on_lost(frame, self.round.number());
    }
}

/// Connection IDs that are reserved for probes. The peer issues three spare ones (limit K04): one stays for a move.
const MAX_PROBE_IDS: usize = 2;

/// Addresses that are probed in one round (limit K285).
const MAX_TARGETS: usize = 16;

/// The pause between the first rounds, and the least time between two rounds (limit K285).
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause between rounds.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The time for which a probe waits that its endpoint does not permit.
const SHORT_WAIT: Duration = Duration::from_millis(100);

/// The bytes that a probe counts as, at least as many as it has.
const PROBE_SIZE: u64 = 100;

#[cfg(test)]
mod tests;
