//! A path on which probes go unanswered: reports to the application. RFC 9002 §6.2.

use courser_base::Time;
use courser_telemetry::{PathSilenceUpdated, Record};

use super::Connection;
use super::event::Event;

impl Connection {
    /// Returns true while the path is silent: between [`Event::PathSilent`] and [`Event::PathAnswers`].
    pub fn is_path_silent(&self) -> bool {
        self.is_silence_reported
    }

    /// Reports that the path became silent, or answers again, if that has changed.
    #[inline]
    pub(super) fn report_silence(&mut self, now: Time) {
        if self.recovery.is_silent() != self.is_silence_reported {
            self.report_changed_silence(now);
        }
    }

    #[cold]
    fn report_changed_silence(&mut self, now: Time) {
        // No event follows the end.
        if !self.life.is_open() {
            return;
        }
        let is_silent = self.recovery.is_silent();
        self.is_silence_reported = is_silent;
        self.events.push_back(match is_silent {
            true => Event::PathSilent,
            false => Event::PathAnswers,
        });
        let probe_timeouts = self.recovery.pto_count();
        self.trace.record(now, || {
            Record::PathSilenceUpdated(PathSilenceUpdated {
                is_silent,
                probe_timeouts,
            })
        });
    }
}
