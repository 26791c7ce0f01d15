//! Reports to the application about a path that does not work. RFC 9002 §6.2, RFC 8085 §5.2.

use courser_base::Unreachable;

use crate::connection::event::Event;

/// The reports so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathReports {
    is_silent: bool,
    is_unreachable: bool,
}

impl PathReports {
    /// Returns true between [`Event::PathSilent`] and [`Event::PathAnswers`].
    #[inline]
    pub(super) fn is_silent(self) -> bool {
        self.is_silent
    }

    /// Returns the event for a path that became silent, or answers again.
    pub(super) fn on_silence(&mut self, is_silent: bool) -> Event {
        self.is_silent = is_silent;
        match is_silent {
            true => Event::PathSilent,
            false => Event::PathAnswers,
        }
    }

    /// Returns the event for first packets that do not reach the server, once.
    pub(super) fn on_unreachable(&mut self, cause: Unreachable) -> Option<Event> {
        let is_first = !std::mem::replace(&mut self.is_unreachable, true);
        is_first.then_some(Event::Unreachable(cause))
    }
}
