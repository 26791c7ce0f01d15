//! Reports to the application about a path that does not work. RFC 9002 §6.2, RFC 8085 §5.2.

use courser_base::{Time, Unreachable};
use courser_telemetry::{PathSilenceUpdated, Record};

use super::event::Event;
use super::trace::Trace;
use crate::recovery::LossRecovery;

/// The reports so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reports {
    is_silent: bool,
    is_unreachable: bool,
}

impl Reports {
    /// Returns true between [`Event::PathSilent`] and [`Event::PathAnswers`].
    #[inline]
    pub(super) fn is_silent(self) -> bool {
        self.is_silent
    }

    /// Reports that the path became silent, or answers again.
    #[cold]
    pub(super) fn on_silence(
        &mut self,
        now: Time,
        recovery: &LossRecovery,
        trace: &mut Trace,
    ) -> Event {
        self.is_silent = recovery.is_silent();
        let (is_silent, probe_timeouts) = (self.is_silent, recovery.unanswered());
        trace.record(now, || {
            Record::PathSilenceUpdated(PathSilenceUpdated {
                is_silent,
                probe_timeouts,
            })
        });
        match is_silent {
            true => Event::PathSilent,
            false => Event::PathAnswers,
        }
    }

    /// Reports that the first packets do not reach the server, once.
    pub(super) fn on_unreachable(&mut self, cause: Unreachable) -> Option<Event> {
        let is_first = !std::mem::replace(&mut self.is_unreachable, true);
        is_first.then_some(Event::Unreachable(cause))
    }
}
