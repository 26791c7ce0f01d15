//! Describes a measurement before it begins.

use crate::{Mixed, Over, Plan, Remote, Scenario};

/// Returns the line that describes the measurement.
pub fn headline(remote: &Remote, plan: &Plan) -> String {
    let load = load(remote.over, &plan.scenario);
    let packets = match remote.over {
        Over::Quic | Over::WebTransport => match remote.mtu {
            Some(mtu) => format!(", {mtu}-byte packets"),
            None => ", path MTU discovery".to_owned(),
        },
        Over::Tcp => String::new(),
    };
    let warm_up = plan.warm_up.map_or(String::new(), |time| {
        format!(
            ", after {} of warm-up",
            courser_units::seconds(time.as_secs_f64())
        )
    });
    format!(
        "{} over {} to {}: {load}, {}{packets}{warm_up}",
        plan.scenario.name(),
        remote.over.name(),
        remote.address,
        remote.congestion,
    )
}

/// Describes the load of a scenario.
fn load(over: Over, scenario: &Scenario) -> String {
    match *scenario {
        Scenario::Bulk {
            connections,
            streams,
            ..
        } if over == Over::Tcp => plural(connections * streams, "connection"),
        Scenario::Bulk {
            connections,
            streams,
            ..
        } => {
            let each = if connections == 1 { "" } else { " each" };
            format!(
                "{}, {}{each}",
                plural(connections, "connection"),
                plural(streams, "stream")
            )
        }
        Scenario::Rr {
            in_flight,
            request_size,
            response_size,
            ..
        } => {
            format!(
                "{in_flight} in flight, {request_size}-byte requests, {response_size}-byte responses"
            )
        }
        Scenario::Latency {
            request_size,
            response_size,
            ..
        } => {
            format!("one at a time, {request_size}-byte requests, {response_size}-byte responses")
        }
        Scenario::Handshake {
            parallel,
            resume,
            early_data,
        } => {
            let kind = match (early_data, resume) {
                (true, _) => "resumed, with a 1-byte request in early data",
                (false, true) => "resumed",
                (false, false) => "full",
            };
            format!("{parallel} in parallel, {kind}")
        }
        Scenario::Datagram {
            direction,
            size,
            rate,
        } => {
            let rate = rate_of(rate);
            format!("{}, {size}-byte datagrams, {rate}", direction.name())
        }
        Scenario::Mixed(mixed) => mixed_load(mixed),
        Scenario::Close => "one at a time".to_owned(),
    }
}

/// Describes the load of the scenario mixed.
fn mixed_load(mixed: Mixed) -> String {
    format!(
        "{} on {}, {} of {} and {} bytes in flight, {}-byte datagrams, {}",
        mixed.direction.name(),
        plural(mixed.streams, "stream"),
        plural(mixed.in_flight, "request"),
        mixed.request_size,
        mixed.response_size,
        mixed.datagram_size,
        rate_of(mixed.datagram_rate),
    )
}

/// Returns the rate of datagrams.
fn rate_of(rate: Option<u64>) -> String {
    match rate {
        Some(rate) => courser_units::rate(rate / 8, 1.0),
        None => "unlimited rate".to_owned(),
    }
}

/// Returns a number with its noun.
pub(super) fn plural(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_connection_is_not_plural() {
        assert_eq!(plural(1, "stream"), "1 stream");
        assert_eq!(plural(2, "stream"), "2 streams");
    }
}
