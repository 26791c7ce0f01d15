//! The tables.

use courser_measure::{Estimate, median};

use crate::measure::Measurement;
use crate::scenarios::Scenario;

/// A figure of a measurement; `None` where it has none.
type Figure = fn(&Measurement) -> Option<f64>;

/// Returns the table of a scenario; each pair is courser and quinn.
pub(crate) fn table(scenario: Scenario, pairs: &[[Measurement; 2]]) -> String {
    let mut text = format!(
        "| {} | courser | quinn | ratio |\n|---|---|---|---|\n",
        scenario.title()
    );
    for (name, figure) in rows(scenario) {
        let of = |stack: usize| -> Vec<Option<f64>> {
            pairs.iter().map(|pair| figure(&pair[stack])).collect()
        };
        let (courser, quinn) = (of(0), of(1));
        let ratios: Vec<f64> = courser
            .iter()
            .zip(&quinn)
            .filter_map(|(courser, quinn)| Some((*courser)? / (*quinn).filter(|it| *it > 0.0)?))
            .collect();
        let ratio = match Estimate::of(&ratios) {
            Some(it) if ratios.len() == pairs.len() => {
                format!("{:.2} [{:.2}, {:.2}]", it.median, it.low, it.high)
            }
            _ => "–".to_owned(),
        };
        text += &format!(
            "| {name} | {} | {} | {ratio} |\n",
            cell(&courser),
            cell(&quinn)
        );
    }
    text
}

/// Returns the median with the least and the largest value where they differ.
fn cell(values: &[Option<f64>]) -> String {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let Some(middle) = median(&known) else {
        return "never".to_owned();
    };
    let (least, most) = known
        .iter()
        .fold((f64::MAX, f64::MIN), |(least, most), value| {
            (least.min(*value), most.max(*value))
        });
    let range = match shown(least) == shown(most) {
        true => String::new(),
        false => format!(" ({}–{})", shown(least), shown(most)),
    };
    let missing = values.len() - known.len();
    let never = match missing {
        0 => String::new(),
        _ => format!(", {missing} × never"),
    };
    format!("{}{range}{never}", shown(middle))
}

fn shown(value: f64) -> String {
    match value {
        value if value == value.round() || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn rows(scenario: Scenario) -> Vec<(&'static str, Figure)> {
    if scenario.is_voice() {
        let mut rows = VOICE.to_vec();
        if scenario.has_bulk() {
            rows.push(("Mbit/s of the stream", |it| {
                let span = (it.server.last_us - it.server.first_us) as f64;
                Some(it.server.bulk as f64 * 8.0 / span)
            }));
        }
        return rows;
    }
    let mut rows: Vec<(&'static str, Figure)> = VPN.to_vec();
    match scenario.narrowing() {
        Some(_) => rows.extend(NARROWED),
        None => rows.push(("ms until 1280 bytes fit", |it| it.client.fits_ms)),
    }
    rows
}

const VPN: [(&str, Figure); 6] = [
    ("Mbit/s through the tunnel", |it| {
        let span = (it.server.last_us - it.server.first_us) as f64;
        Some(it.server.received as f64 * 1280.0 * 8.0 / span)
    }),
    ("packets lost, %", |it| {
        let lost = it.client.sent.saturating_sub(it.server.received);
        Some(lost as f64 * 100.0 / it.client.sent as f64)
    }),
    ("CPU us per packet, sender", |it| {
        Some(it.client.cpu * 1e6 / it.server.received as f64)
    }),
    ("CPU us per packet, receiver", |it| {
        Some(it.server.cpu * 1e6 / it.server.received as f64)
    }),
    ("largest datagram at first", |it| {
        it.client.sizes.first().map(|entry| entry.1 as f64)
    }),
    ("largest datagram at last", |it| {
        Some(it.client.last_size as f64)
    }),
];

const NARROWED: [(&str, Figure); 3] = [
    ("packets lost", |it| {
        Some(it.client.sent.saturating_sub(it.server.received) as f64)
    }),
    ("ms without a packet", |it| {
        Some(it.server.gap_us as f64 / 1e3)
    }),
    ("packets in halves", |it| Some(it.client.halved as f64)),
];

const VOICE: [(&str, Figure); 8] = [
    ("delay ms, median", |it| Some(it.server.delay.p50)),
    ("delay ms, 99 %", |it| Some(it.server.delay.p99)),
    ("delay ms, most", |it| Some(it.server.delay.max)),
    ("jitter ms", |it| Some(it.server.jitter_ms)),
    ("frames lost", |it| {
        Some(it.client.sent.saturating_sub(it.server.received) as f64)
    }),
    ("CPU ms per s, sender", |it| {
        Some(it.client.cpu * 1e9 / (it.server.last_us - it.server.first_us) as f64)
    }),
    ("CPU ms per s, receiver", |it| {
        Some(it.server.cpu * 1e9 / (it.server.last_us - it.server.first_us) as f64)
    }),
    ("largest datagram at last", |it| {
        Some(it.client.last_size as f64)
    }),
];
