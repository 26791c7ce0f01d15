//! A round of probes: its targets, and when each is probed.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;

/// A round of probes.
#[derive(Debug, Default)]
pub(super) struct Round {
    number: u64,
    targets: Vec<Target>,
    /// True until the end was reported.
    is_running: bool,
}

#[derive(Debug)]
struct Target {
    address: SocketAddr,
    state: TargetState,
    /// The data of the challenges that were sent, at most [`MAX_PROBES`].
    challenges: Vec<[u8; 8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TargetState {
    /// The next probe is due at this time.
    DueAt(Time),
    /// All probes are sent. A response counts until this time.
    AwaitedUntil(Time),
    /// It has answered.
    Answered,
    /// No probe may be sent there. It counts towards the addresses of the round.
    Refused,
}

impl Round {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Ends the round and begins another one.
    pub(super) fn begin(&mut self, number: u64) {
        self.number = number;
        self.targets.clear();
        self.is_running = true;
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.targets.iter().any(|it| it.address == address)
    }

    /// Adds a target, whose first probe is due at `at`.
    pub(super) fn add(&mut self, address: SocketAddr, at: Time) {
        self.push(address, TargetState::DueAt(at));
    }

    /// Adds an address that must not be probed.
    pub(super) fn add_refused(&mut self, address: SocketAddr) {
        self.push(address, TargetState::Refused);
    }

    fn push(&mut self, address: SocketAddr, state: TargetState) {
        self.targets.push(Target {
            address,
            state,
            challenges: Vec::new(),
        });
    }

    pub(super) fn remove(&mut self, address: SocketAddr) {
        self.targets.retain(|it| it.address != address);
    }

    /// Returns a target whose next probe is due.
    pub(super) fn next_due(&self, now: Time) -> Option<SocketAddr> {
        let mut targets = self.targets.iter();
        let due = targets.find(|it| matches!(it.state, TargetState::DueAt(at) if at <= now));
        due.map(|it| it.address)
    }

    pub(super) fn postpone(&mut self, address: SocketAddr, until: Time) {
        if let Some(target) = self.target_mut(address)
            && let TargetState::DueAt(at) = &mut target.state
        {
            *at = until;
        }
    }

    pub(super) fn on_sent(&mut self, now: Time, address: SocketAddr, data: [u8; 8]) {
        let Some(target) = self.target_mut(address) else {
            return;
        };
        target.challenges.push(data);
        target.state = match DELAYS.get(target.challenges.len() - 1) {
            Some(delay) => TargetState::DueAt(now + Duration::from_millis(*delay)),
            None => TargetState::AwaitedUntil(now + LAST_WAIT),
        };
    }

    /// Returns true if the data is that of a probe to this address which was not answered before.
    pub(super) fn on_response(&mut self, from: SocketAddr, data: [u8; 8]) -> bool {
        let Some(target) = self.target_mut(from) else {
            return false;
        };
        let is_first = target.state != TargetState::Answered;
        let is_answer = is_first && target.challenges.contains(&data);
        if is_answer {
            target.state = TargetState::Answered;
        }
        is_answer
    }

    /// Returns true if no response is awaited.
    pub(super) fn is_over(&self, now: Time) -> bool {
        !self.targets.iter().any(|it| match it.state {
            TargetState::DueAt(_) => true,
            TargetState::AwaitedUntil(until) => until > now,
            TargetState::Answered | TargetState::Refused => false,
        })
    }

    /// Returns true once when the round is over.
    pub(super) fn end_if_over(&mut self, now: Time) -> bool {
        self.is_running && self.is_over(now) && std::mem::take(&mut self.is_running)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        if !self.is_running {
            return None;
        }
        let of_target = |it: &Target| match it.state {
            TargetState::DueAt(at) | TargetState::AwaitedUntil(at) => Some(at),
            TargetState::Answered | TargetState::Refused => None,
        };
        self.targets.iter().filter_map(of_target).min()
    }

    fn target_mut(&mut self, address: SocketAddr) -> Option<&mut Target> {
        self.targets.iter_mut().find(|it| it.address == address)
    }
}

/// Milliseconds between the probes of a target. There is one more probe than delays (limit K285).
const DELAYS: [u64; 8] = [33, 34, 66, 134, 266, 534, 933, 2000];

/// The time for which the response to the last probe is awaited.
const LAST_WAIT: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([198, 51, 100, last], 5000))
    }

    #[test]
    fn target_is_probed_nine_times_with_rising_distance() {
        let mut round = Round::default();
        round.begin(1);
        round.add(address(1), at(0));
        let mut times = Vec::new();
        let mut now = at(0);
        while let Some(next) = round.next_timeout() {
            now = now.max(next);
            match round.next_due(now) {
                Some(target) => {
                    round.on_sent(now, target, [times.len() as u8; 8]);
                    times.push((now - Time::ZERO).as_millis());
                }
                None => assert!(round.end_if_over(now)),
            }
        }
        assert_eq!(times, [0, 33, 67, 133, 267, 533, 1067, 2000, 4000]);
        assert!(round.is_over(now) && !round.end_if_over(now), "told once");
    }

    #[test]
    fn only_the_asked_address_answers_with_data_of_its_own() {
        let mut round = Round::default();
        round.begin(1);
        for last in 1..3 {
            round.add(address(last), at(0));
            round.on_sent(at(0), address(last), [last; 8]);
        }
        assert!(!round.on_response(address(1), [2; 8]), "of another target");
        assert!(!round.on_response(address(3), [1; 8]), "never asked");
        assert!(round.on_response(address(1), [1; 8]));
        assert!(!round.on_response(address(1), [1; 8]), "once");
        assert_eq!(round.next_due(at(9000)), Some(address(2)));
        round.begin(2);
        round.add(address(2), at(0));
        assert!(
            !round.on_response(address(2), [2; 8]),
            "of an earlier round"
        );
    }

    #[test]
    fn refused_address_counts_and_is_never_due() {
        let mut round = Round::default();
        round.begin(1);
        round.add_refused(address(1));
        assert!(round.has(address(1)) && round.len() == 1);
        assert_eq!(
            (round.next_due(at(9000)), round.next_timeout()),
            (None, None)
        );
    }
}
