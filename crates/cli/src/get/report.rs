//! `--timing`: how long the steps took, as bars one below the other. They add up to the total but
//! for those in brackets, connections that did not win.

use std::io::Write as _;
use std::time::Duration;

use courser::client::{Attempt, Outcome, Timing, Transport};
use serde_json::{Value, json};

use super::facts::Facts;
use super::verbose::milliseconds;
use super::write_out;
use crate::output;

/// A step, from when to when, counted from when the client began to be made.
struct Step {
    name: &'static str,
    from: Duration,
    to: Duration,
    note: String,
    /// Something else is waited for meanwhile.
    is_aside: bool,
}

/// Steps that follow each other without gaps, so that they add up to the total, and what went on
/// beside them.
#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    at: Duration,
}

impl Steps {
    /// What went on since the step before.
    fn until(&mut self, to: Duration, name: &'static str, note: impl Into<String>) {
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

/// Shows the steps of a transfer, or writes them as a line of JSON: where the body does not go.
pub(crate) fn show(facts: &Facts, is_json: bool) {
    let text = if is_json {
        format!("{}\n", document(facts))
    } else {
        chart(facts)
    };
    // Who closes the pipe does not want to know.
    let _ = if facts.is_on_stdout {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        std::io::stdout().write_all(text.as_bytes())
    };
}

fn steps(facts: &Facts) -> Vec<Step> {
    let mut steps = Steps::default();
    let base = facts.set_up + facts.last_began;
    let total = facts.set_up + facts.total;
    if facts.redirects > 0 {
        steps.until(facts.set_up, "set-up", "");
        let note = format!("{} of them", facts.redirects);
        steps.until(base, "redirects", note);
    } else {
        steps.until(base, "set-up", "");
    }
    if let Some(timing) = &facts.timing {
        let at = |step: Option<Duration>| step.map_or(Duration::ZERO, |step| base + step);
        steps.until(at(timing.name_lookup), "name lookup", "");
        connections(&mut steps, timing, base);
        let note = match timing.is_reused {
            true => "connection reused",
            false => "",
        };
        steps.until(at(timing.request_started), "HTTP", note);
        steps.until(at(timing.first_byte), "server", "");
    }
    match facts.failed {
        Some(_) => steps.until(total, "failed", ""),
        None => steps.until(total, "content", output::size(facts.size_download)),
    }
    steps.steps
}

/// The connection that won, and beside it those that did not.
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
    steps.until(base + attempt.began, "waiting", "");
    match (timing.tcp_connect, timing.quic_handshake) {
        (Some(connected), _) => {
            steps.until(base + connected, "TCP", address.to_string());
            let secure = timing.tls_handshake.unwrap_or_default();
            steps.until(base + secure, "TLS", resumed);
        }
        (None, Some(done)) => {
            let note = format!("{address}{resumed}");
            steps.until(base + done, "QUIC and TLS", note);
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

fn chart(facts: &Facts) -> String {
    let total = (facts.set_up + facts.total).as_secs_f64().max(1e-9);
    let version =
        super::exit::version_number(facts.timing.as_ref().and_then(|timing| timing.protocol));
    let status = facts
        .status()
        .map_or("-".to_owned(), |status| status.as_str().to_owned());
    let mut text = format!("{} HTTP/{version} {status}\n", facts.url);
    for step in steps(facts) {
        let at = |time: Duration| {
            (time.as_secs_f64() / total * WIDTH)
                .clamp(0.0, WIDTH)
                .round()
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to the width first"
        )]
        let (from, to) = (at(step.from) as usize, at(step.to) as usize);
        let bar = format!(
            "{}{}",
            " ".repeat(from),
            "█".repeat((to - from.min(to)).max(1))
        );
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a constant"
        )]
        let width = WIDTH as usize + 1;
        let took = milliseconds(step.to.saturating_sub(step.from));
        let name = match step.is_aside {
            true => format!("({})", step.name),
            false => step.name.to_owned(),
        };
        text.push_str(&format!(
            "{name:<13}{bar:<width$}{took:>9.1} ms  {}\n",
            step.note
        ));
    }
    text.push_str(&format!(
        "total{:>width$.1} ms\n",
        milliseconds(facts.set_up + facts.total),
        width = 58
    ));
    if let Some(quic) = facts
        .timing
        .as_ref()
        .and_then(|timing| timing.quic.as_ref())
    {
        text.push_str(&format!(
            "QUIC: rtt {:.1} ms (min {:.1}), window {}, {} packets sent, {} received, {} lost, \
             {}-byte datagrams, {}\n",
            milliseconds(quic.path.rtt),
            milliseconds(quic.path.min_rtt),
            output::size(quic.path.congestion_window),
            quic.packets_sent,
            quic.packets_received,
            quic.packets_lost,
            quic.path.mtu,
            quic.path.controller,
        ));
    }
    text
}

/// All variables of -w, and the steps and attempts.
fn document(facts: &Facts) -> Value {
    let mut document = write_out::json(facts);
    let steps: Vec<_> = steps(facts)
        .iter()
        .map(|step| {
            json!({
                "name": step.name,
                "from_ms": milliseconds(step.from),
                "to_ms": milliseconds(step.to),
                "is_aside": step.is_aside,
            })
        })
        .collect();
    let attempts = facts.timing.iter().flat_map(|timing| &timing.attempts);
    let attempts: Vec<_> = attempts
        .map(|attempt| {
            let (outcome, reason) = match &attempt.outcome {
                Outcome::Won => ("won", None),
                Outcome::Failed(why) => ("failed", Some(why)),
                _ => ("overtaken", None),
            };
            json!({
                "transport": if attempt.transport == Transport::Quic { "udp" } else { "tcp" },
                "address": attempt.address.to_string(),
                "began_ms": milliseconds(attempt.began),
                "ended_ms": attempt.ended.map(milliseconds),
                "outcome": outcome,
                "reason": reason,
            })
        })
        .collect();
    document["steps"] = json!(steps);
    document["total_ms"] = json!(milliseconds(facts.set_up + facts.total));
    document["attempts"] = json!(attempts);
    document["is_reused"] = json!(facts.timing.as_ref().is_some_and(|timing| timing.is_reused));
    document["is_resumed"] = json!(
        facts
            .timing
            .as_ref()
            .is_some_and(|timing| timing.is_resumed)
    );
    document
}

/// Columns of the bars.
const WIDTH: f64 = 40.0;
