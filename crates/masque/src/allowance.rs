//! The bytes that a proxy sends to a target that has never answered (RFC 9298 §7).

use courser_base::Time;

use crate::limits::Limits;

/// Bounds the bytes to a target until its first answer (limit K623), so that a proxy is no source of floods to hosts
/// that did not ask for them.
///
/// ```
/// use courser_base::Time;
/// use courser_masque::{Allowance, Limits};
/// let mut allowance = Allowance::new(&Limits::default(), Time::ZERO);
/// assert!(allowance.take(Time::ZERO, 65_000));
/// assert!(!allowance.take(Time::ZERO, 1000));
/// allowance.on_answer();
/// assert!(allowance.take(Time::ZERO, 1_000_000));
/// ```
#[derive(Clone, Debug)]
pub struct Allowance(State);

#[derive(Clone, Debug)]
enum State {
    /// Bytes that may be sent at a time, in billionths, and more with time.
    Unanswered {
        left: u128,
        most: u128,
        rate: u64,
        at: Time,
    },
    Answered,
}

impl Allowance {
    /// Creates the allowance of a new tunnel.
    pub fn new(limits: &Limits, now: Time) -> Self {
        let most = u128::from(limits.unanswered_bytes) * BILLION;
        Self(State::Unanswered {
            left: most,
            most,
            rate: limits.unanswered_rate,
            at: now,
        })
    }

    /// Takes the bytes of a UDP payload, and those of its headers. Returns false if it has to be dropped.
    pub fn take(&mut self, now: Time, bytes: usize) -> bool {
        let State::Unanswered {
            left,
            most,
            rate,
            at,
        } = &mut self.0
        else {
            return true;
        };
        let elapsed = now.saturating_since(*at).as_nanos();
        *at = now.max(*at);
        *left = left
            .saturating_add(elapsed.saturating_mul((*rate).into()))
            .min(*most);
        let cost = (bytes + HEADERS) as u128 * BILLION;
        let is_allowed = cost <= *left;
        if is_allowed {
            *left -= cost;
        }
        is_allowed
    }

    /// The target has answered: the bytes are not bounded any more.
    pub const fn on_answer(&mut self) {
        self.0 = State::Answered;
    }

    /// Returns true if an allowance that begins anew would allow no more than this one.
    pub fn is_whole(&self, now: Time) -> bool {
        match &self.0 {
            State::Answered => true,
            State::Unanswered {
                left,
                most,
                rate,
                at,
            } => {
                let gained = now.saturating_since(*at).as_nanos() * u128::from(*rate);
                left.saturating_add(gained) >= *most
            }
        }
    }

    /// Returns true if the target has answered.
    pub const fn has_answer(&self) -> bool {
        matches!(self.0, State::Answered)
    }
}

/// Bytes of the headers of a packet, so that empty payloads are not free.
const HEADERS: usize = 28;

const BILLION: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// MQ-udp-030, attack A352.
    #[test]
    fn bytes_to_a_target_that_never_answers_are_bounded() {
        let mut allowance = Allowance::new(&Limits::default(), Time::ZERO);
        let mut sent = 0;
        for second in 0..600_u64 {
            let now = Time::ZERO + Duration::from_secs(second);
            for _ in 0..1000 {
                sent += if allowance.take(now, 1200) { 1200 } else { 0 };
            }
        }
        assert!(sent <= 64 * 1024 + 600 * 1024, "{sent}");
        assert!(sent >= 640 * 1024, "{sent}");
    }

    #[test]
    fn the_allowance_does_not_grow_beyond_its_start() {
        let mut allowance = Allowance::new(&Limits::default(), Time::ZERO);
        let later = Time::ZERO + Duration::from_secs(100_000);
        assert!(allowance.take(later, 65_536 - HEADERS));
        assert!(!allowance.take(later, 0), "empty packets are not free");
    }

    #[test]
    fn an_allowance_is_whole_again_after_a_while() {
        let limits = Limits::default();
        let mut allowance = Allowance::new(&limits, Time::ZERO);
        assert!(allowance.is_whole(Time::ZERO));
        assert!(allowance.take(Time::ZERO, 10 * 1024 - HEADERS));
        let after = |seconds| Time::ZERO + Duration::from_secs(seconds);
        assert!(!allowance.is_whole(after(9)));
        assert!(allowance.is_whole(after(10)));
        allowance.on_answer();
        assert!(allowance.is_whole(Time::ZERO));
    }

    #[test]
    fn a_clock_that_steps_back_gives_nothing() {
        let late = Time::ZERO + Duration::from_secs(10);
        let mut allowance = Allowance::new(&Limits::default(), late);
        assert!(allowance.take(late, 65_536 - HEADERS));
        assert!(!allowance.take(Time::ZERO, 1));
        assert!(!allowance.take(late, 1));
        assert!(!allowance.has_answer());
    }
}
