//! Paths that were given up because they did not answer, and are tried again: their links may return.

use std::time::Duration;

use courser_base::Time;
use courser_wire::PathId;

use crate::config::MAX_OPEN_PATHS;
use crate::path::Place;

/// The paths of a client that are tried again.
#[derive(Debug, Default)]
pub(crate) struct ReturningPaths {
    all: Vec<Returning>,
}

#[derive(Debug)]
struct Returning {
    place: Place,
    /// The path ID of the attempt in progress.
    attempt: Option<PathId>,
    /// The time of the next attempt.
    at: Time,
    /// The pause after the next failed attempt.
    pause: Duration,
}

impl ReturningPaths {
    /// Records a path that is given up. The first attempt is due at once.
    pub(crate) fn on_given_up(&mut self, now: Time, place: Place) {
        if self.all.len() < usize::from(MAX_OPEN_PATHS) && !self.has(&place) {
            self.all.push(Returning {
                place,
                attempt: None,
                at: now,
                pause: FIRST_PAUSE,
            });
        }
    }

    /// Returns a path for which an attempt is due.
    pub(crate) fn due(&self, now: Time) -> Option<Place> {
        let mut waiting = self.all.iter().filter(|it| it.attempt.is_none());
        waiting.find(|it| it.at <= now).map(|it| it.place)
    }

    /// Records an attempt that has begun.
    pub(crate) fn on_attempt(&mut self, place: &Place, id: PathId) {
        if let Some(path) = self.all.iter_mut().find(|it| it.place == *place) {
            path.attempt = Some(id);
        }
    }

    /// Postpones an attempt for which a path ID or a connection ID is missing.
    pub(crate) fn postpone(&mut self, now: Time, place: &Place) {
        if let Some(path) = self.all.iter_mut().find(|it| it.place == *place) {
            path.at = now + RETRY_WITHOUT_ID;
        }
    }

    /// Records that the path of an attempt is open.
    pub(crate) fn on_opened(&mut self, id: PathId) {
        self.all.retain(|it| it.attempt != Some(id));
    }

    /// Records that an attempt has failed. Returns false if the path was not one.
    pub(crate) fn on_failed(&mut self, now: Time, id: PathId) -> bool {
        let Some(path) = self.all.iter_mut().find(|it| it.attempt == Some(id)) else {
            return false;
        };
        (path.attempt, path.at) = (None, now + path.pause);
        path.pause = path.pause.saturating_mul(2).min(LONGEST_PAUSE);
        true
    }

    /// Forgets a path, because the application opens one from there itself.
    pub(crate) fn forget(&mut self, place: &Place) {
        let is_same =
            |it: &Returning| it.place.is_same_local(place) && it.place.socket == place.socket;
        self.all.retain(|it| it.attempt.is_some() || !is_same(it));
    }

    /// Forgets all paths.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// Returns true if an attempt may be made at this place.
    pub(crate) fn has(&self, place: &Place) -> bool {
        self.all.iter().any(|it| it.place == *place)
    }

    /// Returns the places of all paths.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.all.iter().map(|it| &it.place)
    }

    /// Returns the time of the next attempt.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let waiting = self.all.iter().filter(|it| it.attempt.is_none());
        waiting.map(|it| it.at).min()
    }
}

/// The time for which an attempt sends challenges, and the time between two of them: a link that returns meanwhile is in
/// use about a second later.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(30);
pub(crate) const BETWEEN_CHALLENGES: Duration = Duration::from_secs(1);

/// The pauses between attempts, which double.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The time after which an attempt is repeated that lacked a path ID or a connection ID.
const RETRY_WITHOUT_ID: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use courser_base::FourTuple;

    use super::*;
    use crate::build::transmit::SocketId;

    fn place(socket: u32) -> Place {
        let peer: SocketAddr = "192.0.2.1:443".parse().expect("an address");
        Place {
            tuple: FourTuple::to(peer),
            socket: SocketId(socket),
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn attempts_follow_at_once_and_then_after_doubling_pauses() {
        let (mut paths, id) = (ReturningPaths::default(), PathId::new(3));
        paths.on_given_up(at(10), place(1));
        let mut now = at(10);
        for pause in [5, 10, 20, 40, 80, 160, 300, 300] {
            assert_eq!(
                paths.due(now),
                Some(place(1)),
                "before a pause of {pause} s"
            );
            paths.on_attempt(&place(1), id);
            assert_eq!((paths.due(now), paths.next_timeout()), (None, None));
            now += ATTEMPT;
            assert!(paths.on_failed(now, id));
            assert_eq!(paths.due(now), None);
            now += Duration::from_secs(pause);
            assert_eq!(paths.next_timeout(), Some(now));
        }
        paths.on_attempt(&place(1), id);
        paths.on_opened(id);
        assert!(!paths.has(&place(1)) && !paths.on_failed(now, id));
    }

    #[test]
    fn number_of_paths_is_bounded_and_each_is_kept_once() {
        let mut paths = ReturningPaths::default();
        for socket in (0..20).chain(0..20) {
            paths.on_given_up(at(0), place(socket));
        }
        assert_eq!(paths.places().count(), usize::from(MAX_OPEN_PATHS));
    }

    #[test]
    fn path_that_the_application_opens_itself_is_forgotten() {
        let mut paths = ReturningPaths::default();
        for socket in [1, 2] {
            paths.on_given_up(at(0), place(socket));
        }
        paths.forget(&place(2));
        assert!(paths.has(&place(1)) && !paths.has(&place(2)));
    }
}
