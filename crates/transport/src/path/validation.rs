//! Validates an address of the peer with PATH_CHALLENGE and PATH_RESPONSE.
//! RFC 9000 §8.2.

use std::time::Duration;

use courser_base::Time;

/// The challenges in flight on a path and the responses to be sent on it.
#[derive(Debug, Default)]
pub struct Validation {
    challenge: Option<Challenge>,
    responses: Responses,
}

/// The data of the newest challenges that arrived on the path, oldest first. Earlier ones are dropped,
/// so that a flood of challenges costs only a few bytes.
#[derive(Debug, Default)]
struct Responses {
    data: [[u8; 8]; MAX_RESPONSES],
    len: u8,
}

#[derive(Debug)]
struct Challenge {
    state: ChallengeState,
    /// The latest challenges, each with fresh data. A response to any of them is accepted.
    recent: [Option<SentChallenge>; 3],
    next: usize,
    is_due: bool,
    resend_at: Time,
    resend_after: Duration,
    fails_at: Time,
}

/// The state of a validation in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChallengeState {
    /// No challenge was sent yet.
    Unsent,
    /// A challenge was sent.
    Sent,
    /// The address is validated, and full datagrams remain to be tested.
    OnlySize,
}

/// A challenge that was sent.
#[derive(Clone, Copy, Debug)]
struct SentChallenge {
    data: [u8; 8],
    /// True if it was sent in a datagram of full size.
    is_full: bool,
}

/// The properties of a path that a response confirms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// The peer receives at the address. The path may not carry full datagrams (§8.2.3).
    Address,
    /// The peer receives at the address, and the path carries full datagrams.
    AddressAndSize,
    /// The path carries full datagrams. An earlier response has validated the address.
    Size,
}

/// The result of running a validation timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expired {
    /// The timer is not is_due yet, or another challenge is sent.
    No,
    /// Validation failed, because no response arrived in time (§8.2.4).
    Failed,
}

impl Validation {
    /// Starts a validation, unless one is in progress. `pto` is the larger of the current and the
    /// initial probe timeout; the validation fails after three of them.
    pub fn start(&mut self, now: Time, pto: Duration) {
        self.start_at(ChallengeState::Unsent, now, pto);
    }

    /// Continues with a full datagram after a response that validates the address only (§8.2.1).
    pub fn start_for_size(&mut self, now: Time, pto: Duration) {
        self.start_at(ChallengeState::OnlySize, now, pto);
    }

    /// Starts a validation with a challenge after each `interval`, which fails after `period`: the link of the path may be
    /// down, and return.
    pub fn start_patiently(&mut self, now: Time, interval: Duration, period: Duration) {
        self.start_at(ChallengeState::Unsent, now, interval);
        if let Some(challenge) = &mut self.challenge {
            challenge.fails_at = now + period;
        }
    }

    fn start_at(&mut self, state: ChallengeState, now: Time, pto: Duration) {
        if self.challenge.is_some() {
            return;
        }
        self.challenge = Some(Challenge {
            state,
            recent: [None; 3],
            next: 0,
            is_due: true,
            resend_at: now + pto,
            resend_after: pto,
            fails_at: now + pto.saturating_mul(3),
        });
    }

    /// Returns true while a validation is in progress.
    #[cfg(test)]
    pub fn is_in_progress(&self) -> bool {
        self.challenge.is_some()
    }

    /// Returns true from the first challenge to the first response.
    pub fn is_probing(&self) -> bool {
        let state = self.challenge.as_ref().map(|challenge| challenge.state);
        state == Some(ChallengeState::Sent)
    }

    /// Returns true when a challenge should be sent now.
    pub fn is_challenge_due(&self) -> bool {
        self.challenge
            .as_ref()
            .is_some_and(|challenge| challenge.is_due)
    }

    /// Records a challenge with fresh data that is sent now. `is_full` is true when its datagram
    /// has full size.
    pub fn on_challenge_sent(&mut self, now: Time, data: [u8; 8], is_full: bool) {
        let Some(challenge) = &mut self.challenge else {
            return;
        };
        if challenge.state == ChallengeState::Unsent {
            challenge.state = ChallengeState::Sent;
        }
        challenge.recent[challenge.next] = Some(SentChallenge { data, is_full });
        challenge.next = (challenge.next + 1) % challenge.recent.len();
        challenge.is_due = false;
        challenge.resend_at = now + challenge.resend_after;
    }

    /// Processes a response, which may arrive on any path. Returns `None` unless it answers a challenge
    /// of this one.
    pub fn on_response(&mut self, data: [u8; 8]) -> Option<Proof> {
        let challenge = self.challenge.as_ref()?;
        let mut recent = challenge.recent.iter().flatten();
        let is_full = recent.find(|asked| asked.data == data)?.is_full;
        let proof = match (challenge.state, is_full) {
            (ChallengeState::OnlySize, _) => Proof::Size,
            (_, true) => Proof::AddressAndSize,
            (_, false) => Proof::Address,
        };
        self.challenge = None;
        Some(proof)
    }

    /// Stores a challenge that arrived on this path, to be answered there.
    pub fn on_challenge(&mut self, data: [u8; 8]) {
        self.responses.push(data);
    }

    /// Returns the response to send now.
    pub fn response(&self) -> Option<[u8; 8]> {
        self.responses.first()
    }

    /// Removes this response, which is sent once per challenge (§8.2.2).
    pub fn on_response_sent(&mut self) {
        self.responses.pop();
    }

    /// Returns the time at which the next challenge is is_due or the validation fails.
    pub fn next_timeout(&self) -> Option<Time> {
        let challenge = self.challenge.as_ref()?;
        Some(if challenge.is_due {
            challenge.fails_at
        } else {
            challenge.resend_at.min(challenge.fails_at)
        })
    }

    /// Requests the next challenge if it is is_due, and ends a validation that has failed.
    pub fn on_timeout(&mut self, now: Time) -> Expired {
        let Some(challenge) = &mut self.challenge else {
            return Expired::No;
        };
        if challenge.fails_at <= now {
            self.challenge = None;
            return Expired::Failed;
        }
        if challenge.resend_at <= now {
            challenge.is_due = true;
        }
        Expired::No
    }

    /// Stops the validation; later responses to its challenges are ignored.
    pub fn abandon(&mut self) {
        self.challenge = None;
    }
}

impl Responses {
    fn push(&mut self, data: [u8; 8]) {
        if usize::from(self.len) == MAX_RESPONSES {
            self.pop();
        }
        if let Some(free) = self.data.get_mut(usize::from(self.len)) {
            *free = data;
            self.len += 1;
        }
    }

    fn first(&self) -> Option<[u8; 8]> {
        self.data.first().copied().filter(|_| self.len > 0)
    }

    fn pop(&mut self) {
        self.data.rotate_left(1);
        self.len = self.len.saturating_sub(1);
    }
}

/// Maximum number of pending PATH_RESPONSE frames of a path (limit K06). Peers send up to three
/// challenges at once, to guard against loss (§8.2.1).
const MAX_RESPONSES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);

    #[test]
    fn only_a_matching_response_validates() {
        let mut validation = Validation::default();
        assert_eq!(
            validation.on_response([1; 8]),
            None,
            "no challenge was sent"
        );
        validation.start(Time::ZERO, PTO);
        assert!(validation.is_challenge_due());
        validation.on_challenge_sent(Time::ZERO, [1; 8], true);
        assert!(!validation.is_challenge_due());
        assert_eq!(validation.on_response([2; 8]), None);
        assert_eq!(validation.on_response([1; 8]), Some(Proof::AddressAndSize));
        assert!(!validation.is_in_progress());
    }

    #[test]
    fn challenge_is_repeated_with_fresh_data_and_fails_after_three_pto() {
        let mut validation = Validation::default();
        validation.start(Time::ZERO, PTO);
        validation.on_challenge_sent(Time::ZERO, [1; 8], true);
        assert_eq!(validation.next_timeout(), Some(Time::ZERO + PTO));
        assert_eq!(validation.on_timeout(Time::ZERO + PTO), Expired::No);
        assert!(validation.is_challenge_due());
        validation.on_challenge_sent(Time::ZERO + PTO, [2; 8], true);
        assert_eq!(validation.on_timeout(Time::ZERO + PTO * 3), Expired::Failed);
        assert!(!validation.is_in_progress());
    }

    #[test]
    fn response_to_an_older_challenge_is_accepted() {
        let mut validation = Validation::default();
        validation.start(Time::ZERO, PTO);
        validation.on_challenge_sent(Time::ZERO, [1; 8], true);
        validation.on_challenge_sent(Time::ZERO + PTO, [2; 8], true);
        assert_eq!(validation.on_response([1; 8]), Some(Proof::AddressAndSize));
    }

    #[test]
    fn repetitions_and_the_second_part_of_a_validation_begin_no_new_probing() {
        let mut validation = Validation::default();
        validation.start(Time::ZERO, PTO);
        assert!(!validation.is_probing(), "nothing was sent");
        for data in 1..3 {
            validation.on_challenge_sent(Time::ZERO, [data; 8], false);
            assert!(validation.is_probing());
        }
        assert_eq!(validation.on_response([2; 8]), Some(Proof::Address));
        assert!(!validation.is_probing());
        validation.start_for_size(Time::ZERO, PTO);
        validation.on_challenge_sent(Time::ZERO, [3; 8], true);
        assert!(!validation.is_probing(), "the address is validated");
        assert_eq!(validation.on_response([3; 8]), Some(Proof::Size));
    }

    #[test]
    fn newest_challenges_are_answered_once_each() {
        let mut validation = Validation::default();
        for data in 0..100 {
            validation.on_challenge([data; 8]);
        }
        for data in 97..100 {
            assert_eq!(validation.response(), Some([data; 8]));
            validation.on_response_sent();
        }
        assert_eq!(validation.response(), None);
        validation.on_challenge([1; 8]);
        assert_eq!(validation.response(), Some([1; 8]));
    }
}
