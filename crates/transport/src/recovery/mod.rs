//! Loss recovery of a connection: which sent packets were acknowledged or lost, and what may be sent next.
//! RFC 9002.
//!
//! [`LossRecovery`] owns the sending half of each packet number space and the [`PathRecovery`] of each
//! path. It knows numbers, times and sizes. It does not interpret frames: it notifies
//! their [`FrameOwners`] of acknowledgements and losses.

pub(crate) mod ack_request;
mod acks;
mod application_space;
mod bandwidth;
mod built;
mod feature_use;
pub(crate) mod features;
mod filling;
mod losses;
mod numbers;
mod owners;
mod path_memory;
mod path_recovery;
mod path_table;
mod permit;
mod probe_timer;
mod probes;
mod refused;
mod router_reports;
mod sent_space;
mod sent_spaces;
mod size_probes;
pub(crate) mod stats;

use std::sync::Arc;
use std::time::Duration;

use courser_base::{Ecn, Side, Time};
use courser_recovery::{
    Algorithm, Controller, EcnState, LossTimer, LossTimerInputs, LostPacket, Sent,
};
use courser_telemetry::MetricsUpdated;

pub(crate) use self::acks::Acknowledged;
pub(crate) use self::built::Built;
pub(crate) use self::feature_use::FeatureUse;
pub(crate) use self::filling::Filling;
pub(crate) use self::owners::FrameOwners;
pub(crate) use self::path_recovery::{Flight, PathKey, PathRecovery};
pub(crate) use self::permit::{Demand, PacketNumber, SendPermit, SentBatch};
pub(crate) use self::router_reports::Quoted;

use self::ack_request::AckRequest;
use self::application_space::ApplicationSpace;
use self::features::Experience;
use self::numbers::FirstNumbers;
use self::path_table::PathTable;
use self::probe_timer::ProbeTimer;
use self::sent_space::SentSpace;
use self::sent_spaces::SentSpaces;
use self::stats::RecoveryStats;
use crate::config::TransportConfig;
use crate::frame_counts::FrameCounts;
use crate::rng::Rng;
use crate::space::SpaceId;
use crate::space::sent::{FrameLists, SentFrame, SentFrames};

/// The progress of the handshake, as far as loss recovery depends on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Phase {
    Handshaking,
    Complete,
    Confirmed,
}

/// The state of loss recovery.
#[derive(Debug)]
pub(crate) struct LossRecovery {
    config: Arc<TransportConfig>,
    side: Side,
    phase: Phase,
    spaces: SentSpaces,
    paths: PathTable,
    first_numbers: FirstNumbers,
    probe_timer: ProbeTimer,
    /// The frequency of acknowledgements that we request.
    ack_request: AckRequest,
    /// The peer's `ack_delay_exponent`, once its parameters are known.
    ack_delay_exponent: Option<u64>,
    lists: FrameLists,
    /// Packets that are being declared lost. Empty between calls, kept for its allocation.
    lost: Vec<(u64, Sent<SentFrames>)>,
    /// Lost packets for the controller. Kept for its allocation.
    lost_packets: Vec<LostPacket>,
    /// The time until which a batch waits for the pacer.
    paced_until: Option<Time>,
    /// The time at which the search for larger datagrams begins, whatever is sent.
    search_at: Option<Time>,
    /// True once packets of the handshake were repeated: those that follow use no optional feature.
    is_handshake_repeated: bool,
    /// The results of optional features on all paths of the endpoint.
    experience: Experience,
    stats: RecoveryStats,
}

impl LossRecovery {
    /// Creates the state of a connection that has sent nothing.
    pub(crate) fn new(
        now: Time,
        side: Side,
        config: Arc<TransportConfig>,
        experience: Experience,
        rng: &mut Rng,
    ) -> Self {
        let first_numbers = match config.random_packet_numbers {
            true => FirstNumbers::draw(rng),
            false => FirstNumbers::default(),
        };
        let first = first_numbers.of(SpaceId::Application);
        Self {
            side,
            phase: Phase::Handshaking,
            spaces: SentSpaces {
                initial: None,
                handshake: None,
                application: ApplicationSpace::new(&config, first, rng),
            },
            paths: PathTable::new(now, &config, &experience),
            first_numbers,
            probe_timer: ProbeTimer::new(now),
            ack_request: AckRequest::new(config.fixed_ack_terms()),
            ack_delay_exponent: None,
            lists: FrameLists::default(),
            lost: Vec::new(),
            lost_packets: Vec::new(),
            paced_until: None,
            search_at: None,
            is_handshake_repeated: false,
            experience,
            stats: RecoveryStats::default(),
            config,
        }
    }

    /// Creates the state of a further path of the same connection (RFC 10069), whose handshake is confirmed.
    pub(crate) fn of_path(&self, now: Time, rng: &mut Rng) -> Self {
        let mut recovery = Self::new(
            now,
            self.side,
            Arc::clone(&self.config),
            self.experience.clone(),
            rng,
        );
        // Packet numbers of further paths begin at 0 (RFC 10069 §2.4).
        recovery.first_numbers = FirstNumbers::default();
        recovery.spaces.application = ApplicationSpace::new(&self.config, 0, rng);
        recovery.phase = Phase::Confirmed;
        recovery.ack_request = self.ack_request.of_path();
        recovery.ack_delay_exponent = self.ack_delay_exponent;
        recovery.paths.set_peer_limit(self.paths.peer_limit());
        recovery
    }

    /// Passes the content of all packets in flight to other paths, and forgets the packets: nothing is
    /// sent on this path any more.
    pub(crate) fn give_up(&mut self, owners: &mut impl FrameOwners) {
        self.drop_sent(SpaceId::Application, |frame| {
            owners.on_frame_lost(SpaceId::Application, frame);
        });
        self.paced_until = None;
        self.search_at = None;
        self.probe_timer.end_backoff();
    }

    /// Queues the content of all packets in flight again that were not repeated before, because the path may be dead.
    /// Their acknowledgements still count.
    pub(crate) fn repeat_all(&mut self, owners: &mut impl FrameOwners) {
        let application = &mut self.spaces.application;
        let before = application.repeated;
        let eliciting = application.space.sent.iter().filter(|(number, sent)| {
            sent.ack_eliciting && before.is_none_or(|before| *number > before)
        });
        let all: Vec<_> = eliciting
            .map(|(number, sent)| (number, sent.frames))
            .collect();
        application.repeated = all.last().map(|(number, _)| *number).or(before);
        for (_, frames) in all {
            self.repeat(SpaceId::Application, frames, owners, |frame| {
                !frame.is_datagram()
            });
        }
    }

    /// Queues the content of packets in flight again that were not repeated before, oldest first and `budget` bytes at most, because
    /// another path delivers it sooner. Returns the bytes of the packets. Their acknowledgements still count.
    pub(crate) fn repeat_within(&mut self, budget: u64, owners: &mut impl FrameOwners) -> u64 {
        let application = &mut self.spaces.application;
        let before = application.repeated;
        let eliciting = application.space.sent.iter().filter(|(number, sent)| {
            sent.ack_eliciting && before.is_none_or(|before| *number > before)
        });
        let (mut all, mut bytes) = (Vec::new(), 0);
        for (number, sent) in eliciting {
            bytes += u64::from(sent.size);
            if bytes > budget {
                bytes -= u64::from(sent.size);
                break;
            }
            all.push(sent.frames);
            application.repeated = Some(number);
        }
        for frames in all {
            self.repeat(SpaceId::Application, frames, owners, |frame| {
                matches!(frame, SentFrame::Stream { .. })
            });
        }
        bytes
    }

    /// Creates a packet number space whose keys became available.
    pub(crate) fn open_space(&mut self, id: SpaceId) {
        let first = self.first_numbers.of(id);
        let new = || Box::new(SentSpace::new(&self.config, first));
        match id {
            SpaceId::Initial => {
                self.spaces.initial.get_or_insert_with(new);
            }
            SpaceId::Handshake => self.spaces.handshake = Some(new()),
            SpaceId::Application => {}
        }
    }

    /// Removes a packet number space whose keys are discarded (RFC 9002 §6.4).
    pub(crate) fn discard_space(&mut self, id: SpaceId) {
        self.drop_all_sent(id);
        match id {
            SpaceId::Initial => self.spaces.initial = None,
            SpaceId::Handshake => self.spaces.handshake = None,
            SpaceId::Application => {}
        }
        self.probe_timer.end_backoff();
    }

    /// Drops the records of all packets, because the connection is over.
    pub(crate) fn forget_all(&mut self) {
        for id in SpaceId::ALL {
            self.drop_all_sent(id);
        }
    }

    /// Frees the records of packets. Counters and the state of the active path stay.
    pub(crate) fn free(&mut self) {
        self.forget_all();
        (self.spaces.initial, self.spaces.handshake) = (None, None);
        self.spaces.application.free();
        self.lists.free();
        (self.lost, self.lost_packets) = (Vec::new(), Vec::new());
        self.paths.free();
    }

    /// Frees spare capacity of the records.
    pub(crate) fn shrink(&mut self) {
        self.spaces.application.space.sent.shrink_to_fit();
        self.lists.shrink();
        (self.lost, self.lost_packets) = (Vec::new(), Vec::new());
        self.paths.shrink();
    }

    /// Resets loss recovery after a Retry. Packet numbers continue (RFC 9000 §17.2.5.3, RFC 9002 §6.3).
    ///
    /// The time that it took is the first estimate of the round trip, unless a probe timeout passed:
    /// then the Retry may be the response to any of several packets.
    pub(crate) fn on_retry(&mut self, now: Time, owners: &mut impl FrameOwners) {
        if self.probe_timer.count() == 0
            && let Some(space) = self.spaces.get(SpaceId::Initial)
            && let Some((_, first)) = space.sent.iter().next()
        {
            let answered_in = (now - first.time).max(MIN_FIRST_RTT);
            self.paths.active_mut().assume_rtt(answered_in);
        }
        self.drop_all_sent(SpaceId::Initial);
        self.drop_sent(SpaceId::Application, |frame| {
            owners.on_frame_lost(SpaceId::Application, frame);
        });
        self.probe_timer.end_backoff();
        self.probe_timer.on_activity(now);
    }

    /// Drops the records of 0-RTT packets that the server has rejected (RFC 9002 §6.4). Only their datagrams are
    /// reported as lost: their streams were removed.
    pub(crate) fn forget_early_data(&mut self, owners: &mut impl FrameOwners) {
        self.drop_sent(SpaceId::Application, |frame| {
            if frame.is_datagram() {
                owners.on_frame_lost(SpaceId::Application, frame);
            }
        });
        self.probe_timer.end_backoff();
    }

    /// Processes the peer's parameters.
    pub(crate) fn on_peer_parameters(
        &mut self,
        now: Time,
        parameters: &courser_wire::transport_parameters::TransportParameters,
    ) {
        let limit = u16::try_from(parameters.max_udp_payload_size).unwrap_or(u16::MAX);
        self.paths.set_peer_limit(limit);
        self.ack_request.on_peer_parameters(
            Duration::from_millis(parameters.max_ack_delay),
            parameters.min_ack_delay.map(Duration::from_micros),
            self.config.ack_frequency,
        );
        self.ack_delay_exponent = Some(parameters.ack_delay_exponent);
        self.probe_timer.on_activity(now);
    }

    /// Processes the end of the handshake: probes may be sent for 1-RTT packets.
    ///
    /// Even if early data fills the window of a client, its Finished is sent. Otherwise both ends could deadlock:
    /// the server's acknowledgements of early data may be lost, and without the Finished it sends no probes (RFC
    /// 9002 §6.2.1).
    pub(crate) fn on_handshake_complete(&mut self) {
        self.phase = Phase::Complete;
        let has_early_data =
            self.side.is_client() && self.spaces.application.space.ack_eliciting > 0;
        if let Some(handshake) = &mut self.spaces.handshake
            && has_early_data
        {
            handshake.probes = handshake.probes.max(1);
        }
    }

    /// Processes the confirmation of the handshake: from now on the peer obeys its `max_ack_delay` (RFC 9002
    /// §5.3), and MTU probes may be sent.
    pub(crate) fn on_handshake_confirmed(&mut self, now: Time, uses_datagrams: bool) {
        self.phase = Phase::Confirmed;
        self.schedule_search(now, uses_datagrams);
    }

    /// Adds the state of a new path.
    pub(crate) fn open_path(&mut self, now: Time) -> PathKey {
        self.paths.open(now, &self.config, &self.experience)
    }

    /// Records that a path of its own path ID is validated. Challenges without an answer, from the time while its link was
    /// down, are no sign of congestion.
    pub(crate) fn on_path_opened(&mut self, now: Time) {
        if !self.paths.active().rtt.has_sample() {
            // The acknowledgement of the challenge may be lost, and the choice of a path depends on the round trip.
            self.request_ping(SpaceId::Application);
        }
        let unanswered = self.spaces.application.space.ack_eliciting;
        if unanswered <= 1 && self.stats.packets_lost == 0 {
            return;
        }
        self.drop_all_sent(SpaceId::Application);
        self.probe_timer = ProbeTimer::new(now);
        self.paths
            .active_mut()
            .restart_congestion(now, &self.config);
    }

    /// Drops the state of a path that was removed.
    pub(crate) fn close_path(&mut self, key: PathKey) {
        self.paths.close(key);
    }

    /// Continues on another path, whose support of ECN is unknown.
    pub(crate) fn activate_path(&mut self, key: PathKey) {
        self.paths.activate(key);
        let path = self.paths.active_mut();
        path.search.on_peer_address_changed();
        // Only packets on the path in use count, so the result of an earlier trial stays unknown.
        path.features.on_forgotten();
        if self.config.ecn {
            self.spaces.application.space.ecn.restart();
        }
    }

    /// Records that the system does not mark packets on the path in use.
    pub(crate) fn on_marks_refused(&mut self) {
        for id in SpaceId::ALL {
            if let Some(space) = self.spaces.get_mut(id) {
                space.ecn.on_marks_refused();
            }
        }
    }

    /// Returns the state of the path in use.
    #[inline]
    pub(crate) fn path(&self) -> &PathRecovery {
        self.paths.active()
    }

    /// Returns the state of the path in use, for tests that change it.
    #[cfg(test)]
    pub(crate) fn path_mut(&mut self) -> &mut PathRecovery {
        self.paths.active_mut()
    }

    /// Returns the datagram size of a path; `None` once it is closed.
    pub(crate) fn mtu_of(&mut self, key: PathKey) -> Option<u16> {
        self.paths.get_mut(key).map(|path| path.mtu)
    }

    /// Continues with another congestion controller on the path in use, and on those that open later.
    pub(crate) fn switch_controller(&mut self, now: Time, algorithm: Algorithm) {
        let is_same = self.config.congestion == algorithm;
        if !is_same || self.config.controller_factory.is_some() {
            let config = Arc::make_mut(&mut self.config);
            config.congestion = algorithm;
            config.controller_factory = None;
        }
        let path = self.paths.active_mut();
        path.switch_controller(now, algorithm);
        if !self.config.capacity_rise {
            path.congestion.ignore_capacity_rise();
        }
    }

    /// The peer's `ack_delay_exponent`, once its parameters are known.
    #[inline]
    pub(crate) fn ack_delay_exponent(&self) -> Option<u64> {
        self.ack_delay_exponent
    }

    /// Returns true if a PING or ACK_FREQUENCY is due in a 1-RTT packet.
    #[inline]
    pub(crate) fn has_frames_to_send(&self) -> bool {
        self.spaces.application.space.ping || self.ack_request.has_frames_to_send()
    }

    /// Returns the probe timeout of the path in use without backoff. It includes the longest time by which the
    /// peer delays an ACK.
    pub(crate) fn pto(&self) -> Duration {
        self.paths.active().pto(self.ack_request.max_ack_delay())
    }

    /// Returns the probe timeout of a peer that acknowledges at once.
    pub(crate) fn pto_without_delay(&self) -> Duration {
        self.paths.active().pto(Duration::ZERO)
    }

    /// Returns the probe timeout with the acknowledgement delays that both ends announced: `own` and that of the
    /// peer. Requests for earlier acknowledgements (ACK_FREQUENCY) do not shorten it.
    pub(crate) fn announced_pto(&self, own: Duration) -> Duration {
        let delay = own.max(self.ack_request.announced_max_ack_delay());
        self.paths.active().pto(delay)
    }

    /// Returns the memory of the records of sent packets, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.spaces.application.space.sent.memory()
    }

    /// Returns the counters since the connection began.
    pub(crate) fn stats(&self) -> &RecoveryStats {
        &self.stats
    }

    /// Returns the numbers of frames sent since the connection began.
    pub(crate) fn frames_sent(&self) -> FrameCounts {
        self.lists.counts()
    }

    /// Returns the ECN mark for a packet of a space.
    pub(crate) fn mark(&self, id: SpaceId) -> Option<Ecn> {
        match self.are_marks_withheld() {
            true => Some(Ecn::NotEct),
            false => self.mark_of(id),
        }
    }

    /// Returns the ECN mark for a packet of a space according to ECN validation only.
    fn mark_of(&self, id: SpaceId) -> Option<Ecn> {
        let codepoint = self.paths.active().ecn_codepoint();
        Some(self.spaces.get(id)?.ecn.mark(codepoint))
    }

    /// Returns true if a packet of any space may have this mark.
    pub(crate) fn marks_all(&self, ecn: Ecn) -> bool {
        let marks = |id| self.mark(id).is_none_or(|mark| mark == ecn);
        ecn == Ecn::NotEct || SpaceId::ALL.into_iter().all(marks)
    }

    /// Returns the state of ECN validation.
    pub(crate) fn ecn_state(&self) -> EcnState {
        match self.spaces.application.space.ecn.state() {
            EcnState::Testing | EcnState::Capable if self.withheld().ecn => EcnState::Unknown,
            state => state,
        }
    }

    /// Returns true if the path is silent: several probe timeouts in a row passed after the end of the
    /// handshake, and no packet was acknowledged since.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.probe_timer.is_silent()
    }

    /// Returns the number of probe timeouts in a row that brought no acknowledgement.
    pub(crate) fn unanswered(&self) -> u32 {
        self.probe_timer.unanswered()
    }

    /// Returns the number of probe timeouts since the last acknowledgement.
    #[inline]
    pub(crate) fn unanswered_timeouts(&self) -> u32 {
        self.probe_timer.count()
    }

    /// Returns the settings of the connection.
    pub(crate) fn config(&self) -> &TransportConfig {
        &self.config
    }

    /// Returns the largest path ID that the peer may use at first, if several paths are offered.
    pub(crate) fn initial_max_path_id(&self) -> Option<courser_wire::PathId> {
        self.config.initial_max_path_id()
    }

    /// Creates the scheduler of several paths.
    pub(crate) fn path_scheduler(&self) -> Box<dyn courser_recovery::PathScheduler> {
        self.config.path_scheduler.make()
    }

    /// Returns true if there were as many probe timeouts in a row as the configuration allows.
    pub(crate) fn has_too_many_ptos(&self) -> bool {
        let limit = self.config.max_ptos;
        limit.is_some_and(|limit| self.unanswered() >= limit)
    }

    /// Returns the name of the congestion controller's state.
    pub(crate) fn congestion_state(&self) -> &'static str {
        self.paths.active().congestion.state()
    }

    /// Returns the metrics that a sink records.
    pub(crate) fn metrics(&self) -> MetricsUpdated {
        let path = self.paths.active();
        let spaces = SpaceId::ALL
            .into_iter()
            .filter_map(|id| self.spaces.get(id));
        MetricsUpdated {
            smoothed_rtt: path.rtt.smoothed(),
            latest_rtt: path.rtt.latest(),
            min_rtt: path.rtt.min(),
            rtt_variance: path.rtt.rttvar(),
            congestion_window: path.congestion.window(),
            bytes_in_flight: path.bytes_in_flight,
            packets_in_flight: spaces.map(|space| space.sent.len() as u64).sum(),
            ssthresh: path.congestion.ssthresh(),
            pacing_rate: path.pacing_rate(),
            pto_count: self.probe_timer.count(),
        }
    }

    /// Returns true if an ack-eliciting packet of a space is neither acknowledged nor lost.
    pub(crate) fn is_waiting(&self, id: SpaceId) -> bool {
        self.spaces.get(id).is_some_and(|it| it.ack_eliciting > 0)
    }

    /// Returns true if the peer is known to have validated our address. Otherwise it may be unable to send, and
    /// wait for us although nothing is in flight (RFC 9002 §6.2.2.1). Always true on a server; on a client after
    /// a Handshake packet was acknowledged or the handshake is complete.
    pub(super) fn is_validated_by_peer(&self) -> bool {
        let handshake = self.spaces.handshake.as_ref();
        self.side.is_server()
            || self.phase != Phase::Handshaking
            || handshake.is_some_and(|space| space.loss.largest_acked().is_some())
    }

    /// Returns the time at which the pacer allows the next batch.
    pub(crate) fn paced_until(&self) -> Option<Time> {
        self.paced_until
    }

    /// Returns the timer of loss detection and probes. `budget` is the number of bytes that may be sent to an
    /// unvalidated address.
    pub(crate) fn loss_timer(&self, budget: u64) -> Option<LossTimer> {
        let times = |id| self.spaces.get(id).map(SentSpace::times);
        LossTimer::next(&LossTimerInputs {
            spaces: SpaceId::ALL.map(|id| times(id).unwrap_or_default()),
            rtt: &self.paths.active().rtt,
            pto: self.probe_timer.backoff(),
            max_ack_delay: self.ack_request.max_ack_delay(),
            last_activity: self.probe_timer.last_activity(),
            has_handshake_keys: self.spaces.handshake.is_some(),
            is_handshake_confirmed: self.phase == Phase::Confirmed,
            is_address_validated_by_peer: self.is_validated_by_peer(),
            is_at_amplification_limit: budget < self.smallest_probe(),
        })
    }

    /// Drops the records of the packets of a space.
    fn drop_all_sent(&mut self, id: SpaceId) {
        self.drop_sent(id, |_| {});
    }

    /// Drops the records of the packets of a space, and calls `each` with their frames.
    fn drop_sent(&mut self, id: SpaceId, mut each: impl FnMut(SentFrame)) {
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        space.sent.take_all(|_, sent| {
            if sent.in_flight
                && let Some(path) = self.paths.get_mut(sent.path)
            {
                path.bytes_in_flight = path.bytes_in_flight.saturating_sub(u64::from(sent.size));
            }
            sent.frames.for_each(&self.lists, &mut each);
            sent.frames.release(&mut self.lists);
        });
        space.ack_eliciting = 0;
        self.lists.shrink();
        self.paths.active_mut().features.on_forgotten();
    }
}

#[cfg(test)]
impl LossRecovery {
    /// Returns the number of lists of frames in use.
    pub(crate) fn lists_in_use(&self) -> usize {
        self.lists.in_use()
    }

    /// Returns the 1-RTT packet number that is skipped next.
    pub(crate) fn skip_at(&self) -> u64 {
        self.spaces.application.skip_at()
    }

    /// Returns the number of the first 1-RTT packet.
    pub(crate) fn first_number(&self) -> u64 {
        self.first_numbers.of(SpaceId::Application)
    }

    /// Returns the first skipped number in a range.
    pub(crate) fn skipped_in(&self, range: &std::ops::RangeInclusive<u64>) -> Option<u64> {
        self.spaces.application.space.sent.skipped_in(range)
    }

    /// Returns the longest time by which the peer delays an ACK.
    pub(crate) fn max_ack_delay(&self) -> Duration {
        self.ack_request.max_ack_delay()
    }

    /// Returns the number of newer packets after which a 1-RTT packet is declared lost.
    pub(crate) fn packet_threshold(&self) -> u64 {
        self.spaces.application.space.loss.packet_threshold()
    }

    /// Continues with this number in 1-RTT packets.
    pub(crate) fn skip_to_number(&mut self, number: u64) {
        self.spaces.application.space.next_number = number;
    }

    /// Returns the number of probe timeouts in a row.
    pub(crate) fn pto_count(&self) -> u32 {
        self.probe_timer.count()
    }

    /// Returns true while there are records of lost packets.
    pub(crate) fn remembers_losses(&self) -> bool {
        self.spaces.application.remembers_losses()
    }

    /// Returns how many slots of the ring of 1-RTT packets were examined.
    pub(crate) fn steps(&self) -> u64 {
        self.spaces.application.space.sent.steps()
    }

    /// Returns the bytes in flight on all paths.
    pub(crate) fn bytes_in_flight_of_all_paths(&self) -> u64 {
        self.paths.bytes_in_flight()
    }
}

/// The shortest round trip that is assumed from the time to a Retry. With it a server on the same machine has
/// 30 ms for its handshake before the client sends a probe.
const MIN_FIRST_RTT: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
