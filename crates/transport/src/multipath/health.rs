//! Which paths answer: probes of those that do not, the statuses that follow, and the end of their patience.
//! RFC 10069 §5.7, §5.9.

use std::time::Duration;

use courser_base::Time;
use courser_wire::PathId;

use super::Multipath;
use super::control::{Control, PathPreference, Phase};
use super::silence::{Health, HealthChange, Silence};

impl Multipath {
    /// Records whether a path answers. Returns what changes.
    pub(crate) fn on_health(&mut self, now: Time, health: &Health) -> Option<HealthChange> {
        let has_others = self.controls.len() > 1;
        let control = self.control_mut(health.id)?;
        if !has_others {
            // The timers of the connection suffice for a single path.
            control.silence = None;
            return None;
        }
        if control.phase != Phase::Open || control.silence.is_some() == health.is_silent {
            return None;
        }
        if !health.is_silent {
            control.silence = None;
            // Paths that share the fate of this one have time to answer too.
            for other in self
                .controls
                .iter_mut()
                .filter_map(|it| it.silence.as_mut())
            {
                other.give_up_at = other.give_up_at.max(now + PATIENCE);
            }
            return Some(HealthChange::Answers);
        }
        control.silence = Some(Silence {
            probe_at: now + PROBE_INTERVAL,
            give_up_at: now + PATIENCE.max(health.pto.saturating_mul(PATIENCE_PTOS)),
        });
        Some(HealthChange::Suspect)
    }

    /// Returns true if packets on the path are acknowledged in time, as far as any are sent.
    pub(crate) fn answers(&self, id: PathId) -> bool {
        let control = self.control(id);
        control.is_some_and(|it| it.phase == Phase::Open && it.silence.is_none())
    }

    /// Returns the path with the smallest ID that answers, apart from `id`.
    pub(crate) fn other_that_answers(&self, id: PathId) -> Option<PathId> {
        let mut others = self.controls.iter().filter(|it| it.id != id);
        others.find(|it| self.answers(it.id)).map(|it| it.id)
    }

    /// Returns a path that has not answered for too long while another one does (limit K278).
    pub(crate) fn next_to_give_up(&self, now: Time) -> Option<PathId> {
        let mut silent = self
            .controls
            .iter()
            .filter(|it| self.is_given_up_by(it.id, now));
        silent.next().map(|it| it.id)
    }

    fn is_given_up_by(&self, id: PathId, now: Time) -> bool {
        let at = self.give_up_at(id);
        at.is_some_and(|at| at <= now)
    }

    fn give_up_at(&self, id: PathId) -> Option<Time> {
        let silence = self.control(id)?.silence?;
        self.other_that_answers(id).map(|_| silence.give_up_at)
    }

    /// Returns a path that is to be probed, because it has not answered for a while. The backoff of its probe timeout
    /// would find a link that returns much later.
    pub(crate) fn take_probe(&mut self, now: Time) -> Option<PathId> {
        let open = self
            .controls
            .iter_mut()
            .filter(|it| it.phase == Phase::Open);
        for control in open {
            if let Some(silence) = control.silence.as_mut().filter(|it| it.probe_at <= now) {
                silence.probe_at = now + PROBE_INTERVAL;
                return Some(control.id);
            }
        }
        None
    }

    /// Announces paths that do not answer as backups, and a backup path as available while it replaces them, so that the peer
    /// follows. The statuses of the application return one `interval` later at the earliest.
    pub(crate) fn adjust_statuses(&mut self, now: Time, interval: Duration) {
        let works = |it: &&Control| it.phase == Phase::Open && it.silence.is_none();
        let mut working = self.controls.iter().filter(works);
        let has_available = working.clone().any(Control::is_available);
        let has_working = working.next().is_some();
        for control in self
            .controls
            .iter_mut()
            .filter(|it| it.phase == Phase::Open)
        {
            let wanted = match control.silence {
                Some(_) if has_working => PathPreference::Backup,
                None if !has_available => PathPreference::Available,
                _ => control.own_status(),
            };
            control.announce(now, wanted, interval);
        }
    }

    /// Returns the time of the next probe, status or end of patience.
    pub(crate) fn next_health_timeout(&self) -> Option<Time> {
        let mut next = None;
        for control in self.controls.iter().filter(|it| it.phase == Phase::Open) {
            let probe_at = control.silence.map(|silence| silence.probe_at);
            next = [probe_at, self.give_up_at(control.id), control.announce_at()]
                .into_iter()
                .fold(next, Time::earliest);
        }
        next
    }
}

/// The time for which a path may be silent before it is given up while others answer, at least (limit K278), and the same in
/// probe timeouts.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_PTOS: u32 = 3;

/// The longest time between two probes of a silent path, so that a link that returns is used soon.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
