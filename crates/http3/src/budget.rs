//! Budgets for actions that are allowed but useless in large numbers, RFC 9114 §10.5.
//!
//! Useful work pays for useless work: a peer that gets responses may also send frames without
//! effect, change priorities and cancel requests, in proportion. What an honest peer may do before
//! anything useful has happened, and while nothing does, is covered by a burst and by time.

use std::time::Duration;

use courser_base::Time;

use crate::error::{Code, Error};

/// The account of one kind of useless work.
///
/// Time fills it up to its burst, and useful work beyond that.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// The actions that are paid for. An account that tolerates debts falls below zero.
    left: i64,
    /// The time up to which time has paid.
    refilled: Time,
    burst: i64,
    /// The time that pays for one action.
    interval: Duration,
}

impl Account {
    const fn new(now: Time, burst: i64, interval: Duration) -> Self {
        Self {
            left: burst,
            refilled: now,
            burst,
            interval,
        }
    }

    const fn earn(&mut self, actions: i64) {
        self.left = self.left.saturating_add(actions);
    }

    /// Takes one action off, down to `floor`. Returns false if nothing is left.
    fn spend(&mut self, now: Time, floor: i64) -> bool {
        self.refill(now);
        if self.left <= floor {
            return false;
        }
        self.left -= 1;
        true
    }

    /// Returns how far it is below its burst.
    fn used(&self) -> u64 {
        u64::try_from(self.burst - self.left).unwrap_or(0)
    }

    fn refill(&mut self, now: Time) {
        let passed = now.saturating_since(self.refilled);
        let earned = passed.as_nanos() / self.interval.as_nanos();
        let missing = self.burst.saturating_sub(self.left).max(0);
        match u32::try_from(earned) {
            Ok(earned) if i64::from(earned) < missing => {
                self.left += i64::from(earned);
                self.refilled += self.interval * earned;
            }
            _ => {
                self.left += missing;
                self.refilled = self.refilled.max(now);
            }
        }
    }
}

/// Limits frames that cost us work and bring an honest peer little: empty and skipped frames, and
/// changed priorities (limit K17).
///
/// Connections of HTTP/2 have one too.
#[derive(Clone, Copy, Debug)]
pub struct FrameBudget {
    frames: Account,
    /// The PRIORITY_UPDATE frames that requests have paid for.
    updates: u64,
}

impl FrameBudget {
    /// Creates the budget of a connection that begins now.
    pub const fn new(now: Time) -> Self {
        Self {
            frames: Account::new(now, FRAME_BURST, FRAME_INTERVAL),
            updates: FIRST_UPDATES,
        }
    }

    /// Returns the frames and the priority updates that were used of what comes first, for tests.
    pub fn used(&self) -> (u64, u64) {
        let updates = FIRST_UPDATES.saturating_sub(self.updates);
        (self.frames.used(), updates)
    }

    /// Earns credit for a header section that was sent or received.
    pub const fn on_section(&mut self) {
        self.frames.earn(FRAMES_PER_SECTION);
    }

    /// Earns credit for this number of frames by other useful work.
    pub fn earn(&mut self, frames: u32) {
        self.frames.earn(i64::from(frames));
    }

    /// Earns credit for a request that was opened.
    pub const fn on_request(&mut self) {
        self.updates = self.updates.saturating_add(UPDATES_PER_REQUEST);
    }

    /// Counts a frame without progress.
    ///
    /// # Errors
    ///
    /// Returns an error of the connection if there are too many.
    pub fn spend(&mut self, now: Time) -> Result<(), Error> {
        match self.frames.spend(now, 0) {
            true => Ok(()),
            false => Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "too many frames that lead to nothing",
            )),
        }
    }

    /// Counts a PRIORITY_UPDATE frame. Each request pays for several, because clients change the
    /// priority of a request when its resource comes into view and when it leaves it (RFC 9218 §7).
    ///
    /// # Errors
    ///
    /// Returns an error of the connection if there are too many.
    pub fn spend_update(&mut self, now: Time) -> Result<(), Error> {
        match self.updates.checked_sub(1) {
            Some(left) => {
                self.updates = left;
                Ok(())
            }
            None => self.spend(now),
        }
    }
}

/// Limits requests that are cancelled before their response begins (limit K270, attack A71).
///
/// The client of such a request gets nothing for our work, and its stream is free again at once. The
/// transport slows down clients that do little else (limit K15). When the budget is used up, further
/// requests are rejected unread, which clients may repeat elsewhere (RFC 9114 §4.1.1); a client that
/// keeps sending them loses the connection. HTTP/2 has the same budget with another burst, and slows clients down itself.
#[derive(Clone, Copy, Debug)]
pub struct CancellationBudget(Account);

impl CancellationBudget {
    /// Creates the budget of a connection that begins now.
    pub const fn new(now: Time) -> Self {
        Self(Account::new(now, CANCELLATION_BURST, CANCELLATION_INTERVAL))
    }

    /// Creates the budget of a connection whose client may cancel this number of requests at first.
    pub fn with_burst(now: Time, requests: u32) -> Self {
        Self(Account::new(
            now,
            i64::from(requests),
            CANCELLATION_INTERVAL,
        ))
    }

    /// Returns the requests that were used of what comes first, for tests.
    pub fn used(&self) -> u64 {
        self.0.used()
    }

    /// Earns credit for a request whose response begins: its work was of use to the client.
    pub const fn on_answered(&mut self) {
        self.0.earn(CANCELLATIONS_PER_ANSWER);
    }

    /// Returns true if requests are accepted whatever time has paid for since the last cancellation.
    pub const fn has_reserve(&self) -> bool {
        self.0.left > 0
    }

    /// Returns true if less than half of the burst is left, so that the client should be slowed down.
    pub const fn is_low(&self) -> bool {
        self.0.left < self.0.burst / 2
    }

    /// Returns true if requests are accepted.
    pub fn accepts(&mut self, now: Time) -> bool {
        self.0.refill(now);
        self.0.left > 0
    }

    /// Counts a request that was cancelled, or rejected because too many others were.
    ///
    /// # Errors
    ///
    /// Returns an error of the connection if the client does not let rejections stop it.
    pub fn spend(&mut self, now: Time) -> Result<(), Error> {
        match self.0.spend(now, -MOST_REJECTED) {
            true => Ok(()),
            false => Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "too many requests that are cancelled before their response",
            )),
        }
    }
}

/// Limits instructions on the QPACK streams in proportion to header sections (limit K84, attack A77).
///
/// An encoder inserts fields for sections that refer to them, and a decoder cancels sections that
/// were sent to it. So each section, in either direction, pays for some instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionBudget {
    inserts: u64,
    cancellations: u64,
}

impl InstructionBudget {
    pub(crate) const fn new() -> Self {
        Self {
            inserts: INSTRUCTION_BURST,
            cancellations: INSTRUCTION_BURST,
        }
    }

    /// Returns the inserts and the cancellations that were used of what comes first.
    #[cfg(test)]
    pub(crate) const fn used(&self) -> (u64, u64) {
        let (inserts, cancellations) = (self.inserts, self.cancellations);
        (
            INSTRUCTION_BURST - inserts,
            INSTRUCTION_BURST - cancellations,
        )
    }

    /// Earns credit for a header section that was sent or received.
    pub(crate) fn on_section(&mut self) {
        self.inserts = (self.inserts + INSERTS_PER_SECTION).min(INSTRUCTION_BURST);
        self.cancellations = (self.cancellations + 1).min(INSTRUCTION_BURST);
    }

    /// Counts instructions of the encoder stream: inserts, duplicates and capacities.
    pub(crate) fn spend_inserts(&mut self, count: u64) -> Result<(), Error> {
        spend(&mut self.inserts, count)
    }

    /// Counts cancellations of the decoder stream. Its other instructions are errors when there is
    /// nothing to acknowledge.
    pub(crate) fn spend_cancellations(&mut self, count: u64) -> Result<(), Error> {
        spend(&mut self.cancellations, count)
    }
}

fn spend(left: &mut u64, count: u64) -> Result<(), Error> {
    *left = left.checked_sub(count).ok_or(Error::connection(
        Code::EXCESSIVE_LOAD,
        "too many QPACK instructions for so few header sections",
    ))?;
    Ok(())
}

/// The instructions that need no section: many times the entries of a dynamic table, for sections
/// that are still in flight.
const INSTRUCTION_BURST: u64 = 8192;
/// The inserts that one section pays for: as many as a dynamic table of the default size has entries.
const INSERTS_PER_SECTION: u64 = 128;

/// Frames without progress before anything pays for them.
const FRAME_BURST: i64 = 500;
/// The time that pays for one: 100 in a second. A client that repeats a key or follows a pointer sends
/// up to 60 tiny frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(10);
/// The frames without progress that a header section pays for. Each takes a small part of its work.
const FRAMES_PER_SECTION: i64 = 4;

/// The PRIORITY_UPDATE frames before the first request: as many as requests may be open.
const FIRST_UPDATES: u64 = 256;
/// The PRIORITY_UPDATE frames that a request pays for. Chromium sends one for each image, and another
/// one when it comes into view; tabs that go to the back and return cost two more each time.
const UPDATES_PER_REQUEST: u64 = 8;

/// Requests that may be cancelled before anything pays for them: some screens of tiles of a map, each
/// as many as requests may be open.
const CANCELLATION_BURST: i64 = 1000;
/// The time that pays for one: 50 in a second. A search that asks anew with each key sends 30.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(20);
/// The cancelled requests that one with a response pays for.
const CANCELLATIONS_PER_ANSWER: i64 = 4;
/// Rejected requests before the connection is closed: more than may be open at a time.
const MOST_REJECTED: i64 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1);
    const SECOND: Duration = Duration::from_secs(1);

    /// Counts the steps that succeed, and checks the error of the next one.
    fn count(mut step: impl FnMut() -> Result<(), Error>) -> usize {
        let taken = (0..1_000_000).take_while(|_| step().is_ok()).count();
        assert_eq!(step().expect_err("used up").code, Code::EXCESSIVE_LOAD);
        taken
    }

    /// Limit K17.
    #[test]
    fn allows_a_burst_and_a_rate() {
        let mut budget = FrameBudget::new(NOW);
        assert_eq!(count(|| budget.spend(NOW)), 500);
        assert_eq!(count(|| budget.spend(NOW + SECOND)), 100);
        let late = NOW + SECOND * 1000;
        assert_eq!(count(|| budget.spend(late)), 500);
        // A clock that goes back pays for nothing.
        assert_eq!(count(|| budget.spend(NOW)), 0);
        assert_eq!(count(|| budget.spend(Time::MAX)), 500);
    }

    /// K17: a part of an interval is not lost.
    #[test]
    fn a_rate_below_the_limit_is_never_used_up() {
        let mut budget = FrameBudget::new(NOW);
        for step in 0..20_000 {
            let now = NOW + Duration::from_micros(10_300) * step;
            assert_eq!(budget.spend(now), Ok(()), "step {step}");
        }
    }

    #[test]
    fn header_sections_pay_for_frames() {
        let mut budget = FrameBudget::new(NOW);
        (0..1000).for_each(|_| budget.on_section());
        assert_eq!(count(|| budget.spend(NOW)), 500 + 4000);
    }

    /// RFC 9218 §7: the updates of open requests cost nothing, those beyond count as other frames.
    #[test]
    fn requests_pay_for_their_priority_updates() {
        let mut budget = FrameBudget::new(NOW);
        (0..1000).for_each(|_| budget.on_request());
        assert_eq!(count(|| budget.spend_update(NOW)), 256 + 8000 + 500);
    }

    /// Limit K270.
    #[test]
    fn cancelled_requests_are_slowed_down_rejected_and_then_end_the_connection() {
        let mut budget = CancellationBudget::new(NOW);
        for _ in 0..1000 {
            assert!(budget.has_reserve());
            assert_eq!(budget.spend(NOW), Ok(()));
        }
        assert!(!budget.has_reserve() && !budget.accepts(NOW));
        // Time pays for one again.
        assert!(budget.accepts(NOW + CANCELLATION_INTERVAL));
        assert_eq!(count(|| budget.spend(NOW + CANCELLATION_INTERVAL)), 301);
        assert!(!budget.accepts(NOW + SECOND * 6));
        assert!(budget.accepts(NOW + SECOND * 7));
    }

    #[test]
    fn answered_requests_pay_for_cancelled_ones() {
        let mut budget = CancellationBudget::new(NOW);
        for _ in 0..10_000 {
            budget.on_answered();
            for _ in 0..4 {
                assert_eq!(budget.spend(NOW), Ok(()));
            }
        }
        assert!(budget.has_reserve());
    }
}
