//! `--timing`: the durations of the steps as bars. The steps add up to the total, except for those in brackets,
//! which are connection attempts that lost the race.

use std::io::Write as _;
use std::time::Duration;

use courser::client::{Outcome, Transport};
use serde_json::{Value, json};

use super::facts::Facts;
use super::plan::StepReport;
use super::verbose::milliseconds;
use super::write_out;
use crate::output;
use crate::transfer::{Step, TransferTimes};

/// Writes the steps of a transfer, as bars or as a line of JSON, to the standard stream without the body.
pub(crate) fn show(facts: &Facts, form: StepReport) {
    let text = match form {
        StepReport::Json => format!("{}\n", document(facts)),
        StepReport::Text => chart(facts),
    };
    // A closed pipe is not an error.
    let _ = if facts.is_on_stdout {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        std::io::stdout().write_all(text.as_bytes())
    };
}

fn steps(facts: &Facts) -> Vec<Step> {
    crate::transfer::steps(&TransferTimes {
        set_up: facts.set_up,
        last_began: facts.last_began,
        total: facts.total,
        redirects: facts.redirects,
        timing: facts.timing.as_ref(),
        has_failed: facts.failed.is_some(),
        received: facts.size_download,
    })
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
            "QUIC version {}: rtt {:.1} ms (min {:.1}), window {}, {} packets sent, {} received, {} lost, \
             {}-byte datagrams, {}\n",
            quic.version,
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

/// Returns the variables of --write-out, the steps and the connection attempts.
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
    document["moves"] = json!(facts.moves);
    document["is_reused"] = json!(facts.timing.as_ref().is_some_and(|timing| timing.is_reused));
    document["is_resumed"] = json!(
        facts
            .timing
            .as_ref()
            .is_some_and(|timing| timing.is_resumed)
    );
    document
}

/// The width of the longest bar in columns.
const WIDTH: f64 = 40.0;
