//! The datagram size of the path in use: probes, and their results. RFC 9000 §14.3, §14.4.

use std::time::Duration;

use courser_base::Time;
use courser_recovery::{BASE_MTU, Controller};

use super::{Built, LossRecovery, Phase};

impl LossRecovery {
    /// Sets the UDP payload of the largest datagram that the interface towards the peer sends.
    pub(crate) fn set_interface_mtu(&mut self, size: u16) {
        let path = self.paths.active_mut();
        path.search.set_interface_mtu(size);
        path.follow_search();
    }

    /// Returns true once if the search has begun and the MTU of the interface is unknown. Probes follow later,
    /// because data comes first at the beginning of slow start.
    pub(crate) fn needs_interface_mtu(&mut self) -> bool {
        let search = &mut self.paths.active_mut().search;
        search.wants_probe() && search.needs_interface_mtu()
    }

    /// Returns true once if datagrams may be too large for the interface, whose MTU is unknown.
    pub(crate) fn is_size_unconfirmed(&mut self) -> bool {
        let search = &mut self.paths.active_mut().search;
        search.mtu() > BASE_MTU && search.needs_interface_mtu()
    }

    /// Returns true if a probe may be due.
    pub(crate) fn awaits_size_probe(&self) -> bool {
        self.phase == Phase::Confirmed && self.paths.active().search.wants_probe()
    }

    /// Returns the size of the next MTU probe, when one is due.
    ///
    /// A probe is sent only if its loss has no effect on the connection: after the handshake, on a validated
    /// path, and if it fits into the window. At the beginning of slow start data comes
    /// first.
    pub(crate) fn next_size_probe(
        &mut self,
        now: Time,
        is_validated: bool,
        has_stream_data: bool,
    ) -> Option<u16> {
        let path = self.paths.active_mut();
        if !path.search.wants_probe() || path.is_hurried(has_stream_data) {
            return None;
        }
        let space = &self.spaces.application.space;
        // A timeout permits two packets. On an idle connection the permit for the second one is left after
        // the first was answered. Data that was lost goes first.
        let is_probing = space.probes > 0 && (has_stream_data || self.probe_timer.count() > 0);
        let may_send = self.phase == Phase::Confirmed
            && is_validated
            && !is_probing
            && !space.sent.is_full()
            && self.paced_until.is_none();
        if !may_send {
            return None;
        }
        let room = path.congestion_room();
        let delivered = path.delivery.delivered();
        path.search.next_probe(now, room, delivered)
    }

    /// Begins a probe of this size and returns its number.
    pub(crate) fn begin_size_probe(&mut self, size: u16) -> u32 {
        self.paths.active_mut().search.on_probe_sent(size)
    }

    /// Processes the sending of an MTU probe.
    pub(crate) fn on_size_probe_sent(&mut self, now: Time, built: &Built) {
        let path = self.paths.active_mut();
        let bytes = built.len as u64;
        let congestion = &mut path.congestion;
        congestion.on_sent(now, bytes, built.number, path.bytes_in_flight);
        path.pacer.on_sent(bytes);
    }

    /// Returns true while an MTU probe waits for data in flight to be acknowledged.
    pub(crate) fn makes_room_for_probe(&self, has_stream_data: bool) -> bool {
        self.paths.active().makes_room_for_probe(has_stream_data)
    }

    /// Sets the beginning of the search on a connection whose handshake is confirmed. Without
    /// datagrams of the application it is delayed by [`SEARCH_DELAY`].
    pub(super) fn schedule_search(&mut self, now: Time, uses_datagrams: bool) {
        if self.config.mtu_discovery {
            let delay = match uses_datagrams {
                true => Duration::ZERO,
                false => SEARCH_DELAY,
            };
            self.search_at = Some(now + delay);
        }
    }

    /// Returns the time at which the search of a connection that sends little begins.
    pub(crate) fn search_at(&self) -> Option<Time> {
        self.search_at
    }

    /// Begins the search if it is due. Returns true once if the MTU of the interface is unknown: it saves
    /// probes.
    #[inline]
    pub(crate) fn begin_search(&mut self, now: Time) -> bool {
        if self.search_at.is_none_or(|at| at > now) {
            return false;
        }
        self.search_at = None;
        self.paths.active_mut().search.on_path_used(now);
        self.needs_interface_mtu()
    }

    /// Records that the application sends datagrams, whose size is limited by the path: the search begins
    /// without a delay. Returns true like [`LossRecovery::begin_search`].
    #[inline]
    pub(crate) fn on_datagrams_used(&mut self, now: Time) -> bool {
        let Some(at) = &mut self.search_at else {
            return false;
        };
        *at = now;
        self.begin_search(now)
    }

    /// Begins a search that may be due again, because packets arrive: after the base size was fallen back to,
    /// on a new path, or after the raise timer. An idle connection is never woken for it. Senders of full
    /// datagrams begin it themselves, at a time that suits them.
    #[inline]
    pub(super) fn resume_search(&mut self, now: Time) {
        let is_open = self.phase == Phase::Confirmed && self.search_at.is_none();
        let path = self.paths.active_mut();
        if is_open && path.app_limited {
            path.search.on_path_used(now);
        }
    }

    /// Records that a datagram of nearly full size is due: larger ones would be useful.
    pub(crate) fn on_full_datagram_needed(&mut self, now: Time) {
        self.paths.active_mut().search.on_full_datagram_sent(now);
    }

    /// Tries smaller packets after several probe timeouts in a row.
    pub(super) fn on_silence(&mut self) {
        let count = self.probe_timer.count();
        let path = self.paths.active_mut();
        if path.search.on_probe_timeout(count) {
            path.follow_search();
        }
    }
}

/// The time between the confirmation of the handshake and the search on a connection that sends little
/// (limit K510). Most connections for a single request are over by then and send no probes.
const SEARCH_DELAY: Duration = Duration::from_millis(100);
