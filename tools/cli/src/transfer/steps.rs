//! Divides the time of a transfer into steps.

use std::time::Duration;

use courser::client::{Attempt, Outcome, Timing, Transport};
use courser_units::size;

/// The times of a transfer, the input of [`steps`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransferTimes<'a> {
    /// The time to create the client, before the transfer.
    pub(crate) set_up: Duration,
    /// The time from the start of the transfer to its last request. Redirects are before it.
    pub(crate) last_began: Duration,
    /// The time from the start of the transfer to its end.
    pub(crate) total: Duration,
    /// The number of followed redirects.
    pub(crate) redirects: u64,
    /// The times of the last request; `None` if it got no response.
    pub(crate) timing: Option<&'a Timing>,
    /// True if the transfer failed.
    pub(crate) has_failed: bool,
    /// Bytes of content received.
    pub(crate) received: u64,
}

/// One step of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// The name of the step in the chart and in JSON.
    pub(crate) name: &'static str,
    /// The start of the step, since the start of the set-up.
    pub(crate) from: Duration,
    /// The end of the step, since the start of the set-up.
    pub(crate) to: Duration,
    /// Text for the chart, such as an address; may be empty.
    pub(crate) note: String,
    /// True for a connection attempt that lost the race; it is not part of the total.
    pub(crate) is_aside: bool,
}

/// Steps without gaps, so that they add up to the total, and connection attempts in parallel with
/// them.
#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    at: Duration,
}

impl Steps {
    /// Adds the step from the end of the previous one to `to`.
    fn push_until(&mut self, to: Duration, name: &'static str, note: impl Into<String>) {
        if to > self.at {
            let from = std::mem::replace(&mut self.at, to);
            let (note, is_aside) = (note.into(), false);
            self.steps.push(Step {
                name,
                from,
                to,
                note,
                is_aside,
            });
        }
    }

    fn aside(&mut self, (from, to): (Duration, Duration), name: &'static str, note: String) {
        self.steps.push(Step {
            name,
            from,
            to,
            note,
            is_aside: true,
        });
    }
}

/// Returns the steps of a transfer. Without those that are [aside](Step::is_aside), they add up to the total.
pub(crate) fn steps(times: &TransferTimes<'_>) -> Vec<Step> {
    let mut steps = Steps::default();
    let base = times.set_up + times.last_began;
    let total = times.set_up + times.total;
    if times.redirects > 0 {
        steps.push_until(times.set_up, "set-up", "");
        let note = format!("{} redirects followed", times.redirects);
        steps.push_until(base, "redirects", note);
    } else {
        steps.push_until(base, "set-up", "");
    }
    if let Some(timing) = times.timing {
        let at = |step: Option<Duration>| step.map_or(Duration::ZERO, |step| base + step);
        steps.push_until(at(timing.name_lookup), "name lookup", "");
        connections(&mut steps, timing, base);
        let note = match timing.is_reused {
            true => "connection reused",
            false => "",
        };
        steps.push_until(at(timing.request_started), "HTTP", note);
        steps.push_until(at(timing.first_byte), "server", "");
    }
    match times.has_failed {
        true => steps.push_until(total, "failed", ""),
        false => steps.push_until(total, "content", size(times.received)),
    }
    steps.steps
}

/// Adds the connection attempt that won, and the others as steps aside.
fn connections(steps: &mut Steps, timing: &Timing, base: Duration) {
    for attempt in &timing.attempts {
        let from = base + attempt.began;
        let ended = attempt.ended.or(timing.request_started);
        let ended = ended.map_or(from, |ended| base + ended);
        let transport = match attempt.transport {
            Transport::Quic => "QUIC",
            _ => "TCP",
        };
        let address = attempt.address;
        match &attempt.outcome {
            Outcome::Failed(why) => {
                let note = format!("{address} failed: {why}");
                steps.aside((from, ended), transport, note);
            }
            Outcome::Won => {}
            _ => steps.aside((from, ended), transport, format!("{address} abandoned")),
        }
    }
    let won = |attempt: &&Attempt| attempt.outcome == Outcome::Won;
    let Some(attempt) = timing.attempts.iter().find(won) else {
        return;
    };
    let (address, resumed) = (attempt.address, resumed(timing.is_resumed));
    steps.push_until(base + attempt.began, "waiting", "");
    match (timing.tcp_connect, timing.quic_handshake) {
        (Some(connected), _) => {
            steps.push_until(base + connected, "TCP", address.to_string());
            let secure = timing.tls_handshake.unwrap_or_default();
            steps.push_until(base + secure, "TLS", resumed);
        }
        (None, Some(done)) => {
            let note = format!("{address}{resumed}");
            steps.push_until(base + done, "QUIC and TLS", note);
        }
        (None, None) => {}
    }
}

const fn resumed(is_resumed: bool) -> &'static str {
    match is_resumed {
        true => " session resumed",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_to_the_total() {
        let at = Duration::from_millis;
        let times = TransferTimes {
            set_up: at(1),
            last_began: at(20),
            total: at(50),
            redirects: 2,
            timing: None,
            has_failed: false,
            received: 1000,
        };
        let steps = steps(&times);
        let names: Vec<_> = steps.iter().map(|step| step.name).collect();
        assert_eq!(names, ["set-up", "redirects", "content"]);
        let sum: Duration = steps.iter().map(|step| step.to - step.from).sum();
        assert_eq!(sum, at(51));
    }
}
