//! Budgets for actions that are allowed but useless in large numbers (RFC 9114 §10.5).
//!
//! Useful work offsets useless work: a peer that gets responses may also send frames without effect, change
//! priorities and cancel requests, in proportion. A burst, refilled with time, covers what an honest peer may do
//! before and between useful work.

use std::time::Duration;

use courser_base::Time;

use crate::error::{Code, Error};

/// A token bucket for one kind of useless work.
///
/// It refills with time up to its burst, and useful work adds tokens beyond that.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    /// The actions that are allowed now. Negative in a bucket that allows debts.
    left: i64,
    /// The time up to which tokens were added.
    refilled: Time,
    burst: i64,
    /// The time that adds one token.
    interval: Duration,
}

impl TokenBucket {
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

    /// Takes one token, down to `floor`. Returns false if none is left.
    fn spend(&mut self, now: Time, floor: i64) -> bool {
        self.refill(now);
        if self.left <= floor {
            return false;
        }
        self.left -= 1;
        true
    }

    /// Returns by how many tokens it is below its burst.
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

/// Limits frames that cost work and make no progress: empty and skipped frames, and changes of priority (limit
/// K17).
///
/// HTTP/2 connections use one too.
#[derive(Clone, Copy, Debug)]
pub struct FrameBudget {
    frames: TokenBucket,
    /// The PRIORITY_UPDATE frames that are allowed now.
    updates: u64,
}

impl FrameBudget {
    /// Creates the budget of a connection that starts now.
    pub const fn new(now: Time) -> Self {
        Self {
            frames: TokenBucket::new(now, FRAME_BURST, FRAME_INTERVAL),
            updates: FIRST_UPDATES,
        }
    }

    /// Returns how many frames and priority updates of the initial budget are used, for tests.
    pub fn used(&self) -> (u64, u64) {
        let updates = FIRST_UPDATES.saturating_sub(self.updates);
        (self.frames.used(), updates)
    }

    /// Adds tokens for a header section that was sent or received.
    pub const fn on_section(&mut self) {
        self.frames.earn(FRAMES_PER_SECTION);
    }

    /// Adds tokens for this number of frames because of other useful work.
    pub fn earn(&mut self, frames: u32) {
        self.frames.earn(i64::from(frames));
    }

    /// Adds tokens for a request that was opened.
    pub const fn on_request(&mut self) {
        self.updates = self.updates.saturating_add(UPDATES_PER_REQUEST);
    }

    /// Takes a token for a frame without progress.
    ///
    /// # Errors
    ///
    /// Returns a connection error if there are too many such frames.
    pub fn spend(&mut self, now: Time) -> Result<(), Error> {
        match self.frames.spend(now, 0) {
            true => Ok(()),
            false => Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "too many frames without progress",
            )),
        }
    }

    /// Takes a token for a PRIORITY_UPDATE frame. Each request allows several, because clients change the
    /// priority of a request when its resource comes into view and when it leaves it (RFC 9218 §7).
    ///
    /// # Errors
    ///
    /// Returns a connection error if there are too many such frames.
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

/// Limits requests that are cancelled before their response starts (limit K270, attack A71).
///
/// The work for such a request is useless, and its stream is free again at once. The transport slows down
/// clients that do little else (limit K15). When the budget is exhausted, further requests are rejected unread,
/// so that clients may repeat them elsewhere (RFC 9114 §4.1.1). If a client continues to send them, its
/// connection is closed. HTTP/2 uses the same budget with another burst, and slows clients down itself.
#[derive(Clone, Copy, Debug)]
pub struct CancellationBudget(TokenBucket);

impl CancellationBudget {
    /// Creates the budget of a connection that starts now.
    pub const fn new(now: Time) -> Self {
        Self(TokenBucket::new(
            now,
            CANCELLATION_BURST,
            CANCELLATION_INTERVAL,
        ))
    }

    /// Creates the budget of a connection whose client may cancel this number of requests initially.
    pub fn with_burst(now: Time, requests: u32) -> Self {
        Self(TokenBucket::new(
            now,
            i64::from(requests),
            CANCELLATION_INTERVAL,
        ))
    }

    /// Returns how many requests of the initial budget are used, for tests.
    pub fn used(&self) -> u64 {
        self.0.used()
    }

    /// Adds tokens for a request whose response starts.
    pub const fn on_answered(&mut self) {
        self.0.earn(CANCELLATIONS_PER_ANSWER);
    }

    /// Returns true if requests are accepted even without the tokens added since the last cancellation.
    pub const fn has_reserve(&self) -> bool {
        self.0.left > 0
    }

    /// Returns true if less than half of the burst is left, so that the client should be slowed down.
    pub const fn is_low(&self) -> bool {
        self.0.left < self.0.burst / 2
    }

    /// Returns true if requests are accepted now.
    pub fn accepts(&mut self, now: Time) -> bool {
        self.0.refill(now);
        self.0.left > 0
    }

    /// Takes a token for a request that was cancelled, or rejected because too many others were.
    ///
    /// # Errors
    ///
    /// Returns a connection error if the client continues to send requests despite rejections.
    pub fn spend(&mut self, now: Time) -> Result<(), Error> {
        match self.0.spend(now, -MAX_REJECTED) {
            true => Ok(()),
            false => Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "too many requests cancelled before their response",
            )),
        }
    }
}

/// Limits instructions on the QPACK streams in proportion to header sections (limit K84, attack A77).
///
/// An encoder inserts field lines for sections that refer to them, and a decoder cancels sections that were sent
/// to it. So each section, in either direction, allows a number of instructions.
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

    /// Returns how many inserts and cancellations of the initial budget are used.
    #[cfg(test)]
    pub(crate) const fn used(&self) -> (u64, u64) {
        let (inserts, cancellations) = (self.inserts, self.cancellations);
        (
            INSTRUCTION_BURST - inserts,
            INSTRUCTION_BURST - cancellations,
        )
    }

    /// Adds tokens for a header section that was sent or received.
    pub(crate) fn on_section(&mut self) {
        self.inserts = (self.inserts + INSERTS_PER_SECTION).min(INSTRUCTION_BURST);
        self.cancellations = (self.cancellations + 1).min(INSTRUCTION_BURST);
    }

    /// Takes tokens for encoder stream instructions: inserts, duplicates and capacity changes.
    pub(crate) fn spend_inserts(&mut self, count: u64) -> Result<(), Error> {
        spend(&mut self.inserts, count)
    }

    /// Takes tokens for Stream Cancellation instructions. Other decoder instructions are errors when there is
    /// nothing to acknowledge.
    pub(crate) fn spend_cancellations(&mut self, count: u64) -> Result<(), Error> {
        spend(&mut self.cancellations, count)
    }
}

fn spend(left: &mut u64, count: u64) -> Result<(), Error> {
    *left = left.checked_sub(count).ok_or(Error::connection(
        Code::EXCESSIVE_LOAD,
        "too many QPACK instructions per header section",
    ))?;
    Ok(())
}

/// Instructions that need no section, for sections that are still in flight: many times the entries of a dynamic
/// table.
const INSTRUCTION_BURST: u64 = 8192;
/// Inserts that one section allows: the number of entries in a dynamic table of the default size.
const INSERTS_PER_SECTION: u64 = 128;

/// Frames without progress that a new connection may send.
const FRAME_BURST: i64 = 500;
/// Time that adds one frame: 100 per second. A client that repeats a key or follows a pointer sends up to 60
/// tiny frames per second.
const FRAME_INTERVAL: Duration = Duration::from_millis(10);
/// Frames without progress that a header section allows. Each costs a small part of its work.
const FRAMES_PER_SECTION: i64 = 4;

/// PRIORITY_UPDATE frames before the first request, as many as requests may be open.
const FIRST_UPDATES: u64 = 256;
/// PRIORITY_UPDATE frames that a request allows. Chromium sends one for each image, and another one when it
/// comes into view. Tabs that are hidden and shown again add two each time.
const UPDATES_PER_REQUEST: u64 = 8;

/// Requests that may be cancelled initially: several screens of map tiles, each as many as requests may be open.
const CANCELLATION_BURST: i64 = 1000;
/// Time that adds one cancellation: 50 per second. A search that sends a request for each key cancels 30.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(20);
/// Cancelled requests that a request with a response allows.
const CANCELLATIONS_PER_ANSWER: i64 = 4;
/// Rejected requests before the connection is closed: more than may be open at a time.
const MAX_REJECTED: i64 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1);
    const SECOND: Duration = Duration::from_secs(1);

    /// Counts the steps that succeed, and checks the error of the next one.
    fn count(mut step: impl FnMut() -> Result<(), Error>) -> usize {
        let taken = (0..1_000_000).take_while(|_| step().is_ok()).count();
        assert_eq!(
            step().expect_err("the budget is used up").code,
            Code::EXCESSIVE_LOAD
        );
        taken
    }

    /// K17: the burst and the rate are enforced.
    #[test]
    fn allows_a_burst_and_a_rate() {
        let mut budget = FrameBudget::new(NOW);
        assert_eq!(count(|| budget.spend(NOW)), 500);
        assert_eq!(count(|| budget.spend(NOW + SECOND)), 100);
        let late = NOW + SECOND * 1000;
        assert_eq!(count(|| budget.spend(late)), 500);
        // A clock that goes back adds no tokens.
        assert_eq!(count(|| budget.spend(NOW)), 0);
        assert_eq!(count(|| budget.spend(Time::MAX)), 500);
    }

    /// K17: a fraction of an interval is not lost.
    #[test]
    fn rate_below_the_limit_is_never_used_up() {
        let mut budget = FrameBudget::new(NOW);
        for step in 0..20_000 {
            let now = NOW + Duration::from_micros(10_300) * step;
            assert_eq!(budget.spend(now), Ok(()), "step {step}");
        }
    }

    #[test]
    fn header_sections_offset_frames_without_progress() {
        let mut budget = FrameBudget::new(NOW);
        (0..1000).for_each(|_| budget.on_section());
        assert_eq!(count(|| budget.spend(NOW)), 500 + 4000);
    }

    /// RFC 9218 §7: the updates of open requests are free, and further ones count as other frames.
    #[test]
    fn requests_offset_their_priority_updates() {
        let mut budget = FrameBudget::new(NOW);
        (0..1000).for_each(|_| budget.on_request());
        assert_eq!(count(|| budget.spend_update(NOW)), 256 + 8000 + 500);
    }

    /// K270: cancelled requests are first slowed down, then rejected, and finally the connection is closed.
    #[test]
    fn cancelled_requests_are_rejected_and_then_close_the_connection() {
        let mut budget = CancellationBudget::new(NOW);
        for _ in 0..1000 {
            assert!(budget.has_reserve());
            assert_eq!(budget.spend(NOW), Ok(()));
        }
        assert!(!budget.has_reserve() && !budget.accepts(NOW));
        // Time adds one token.
        assert!(budget.accepts(NOW + CANCELLATION_INTERVAL));
        assert_eq!(count(|| budget.spend(NOW + CANCELLATION_INTERVAL)), 301);
        assert!(!budget.accepts(NOW + SECOND * 6));
        assert!(budget.accepts(NOW + SECOND * 7));
    }

    #[test]
    fn requests_with_responses_offset_cancelled_ones() {
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
