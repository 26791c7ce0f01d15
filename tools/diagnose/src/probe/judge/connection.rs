//! Judges transport parameters, the path, and changes of the client's address.

use courser_units::{binary_size, three_digits};

use crate::finding::Finding;
use crate::probe::facts::{AddressChange, Facts, FirstConnection, Parameters};

pub(crate) fn judge(facts: &Facts, first: &FirstConnection) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(parameters) = &first.parameters {
        found.extend(limits(parameters));
        found.push(extensions(parameters));
    }
    found.push(greasing(first));
    found.push(ecn(first));
    found.push(spin(first));
    found.push(mtu(first));
    let resumed = facts.resumed.as_ref().and_then(|it| it.as_ref().ok());
    found.push(match resumed.and_then(|it| it.key_update) {
        Some(true) => Finding::good("key update", "followed"),
        Some(false) => Finding::bad(
            "key update",
            "the connection was lost",
            "each end must follow a key update (RFC 9001 §6)",
        )
        .costs(15),
        None => Finding::unknown("key update", "not tried"),
    });
    if let Some(address) = first.observed_address {
        found.push(Finding::fact("observed address", address.to_string()));
    }
    found.push(rebinding(first.rebinding));
    found.push(migration(facts, first));
    found
}

fn limits(it: &Parameters) -> Vec<Finding> {
    let data = format!(
        "{} a connection, {} a stream, {} + {} streams",
        binary_size(it.initial_max_data),
        binary_size(it.initial_max_stream_data_bidi_remote),
        it.initial_max_streams_bidi,
        it.initial_max_streams_uni,
    );
    let window = match it.initial_max_data < MIN_WINDOW || it.initial_max_streams_bidi == 0 {
        true => Finding::weak(
            "first limits",
            data,
            "a first request with content must wait for a round trip",
        )
        .costs(3),
        false => Finding::good("first limits", data),
    };
    let idle = match it.max_idle_timeout_ms {
        0 => Finding::fact("idle timeout", "none announced: that of the client applies"),
        short @ 1..MIN_IDLE_MS => Finding::weak(
            "idle timeout",
            seconds(short),
            "connections end between two requests, and the next one costs a handshake",
        )
        .costs(3),
        enough => Finding::good("idle timeout", seconds(enough)),
    };
    vec![window, idle]
}

fn seconds(millis: u64) -> String {
    format!("{} s", three_digits(courser_units::to_f64(millis) / 1000.0))
}

fn extensions(it: &Parameters) -> Finding {
    let all = [
        (it.max_datagram_frame_size > 0, "datagrams (RFC 9221)"),
        (it.grease_quic_bit, "a free QUIC bit (RFC 9287)"),
        (it.has_version_information, "version information (RFC 9368)"),
        (it.has_min_ack_delay, "ACK frequency"),
        (it.reset_stream_at, "RESET_STREAM_AT"),
        (it.has_preferred_address, "a preferred address"),
        (it.has_stateless_reset_token, "a stateless reset token"),
        (it.has_several_paths, "several paths (RFC 10069)"),
        (it.reports_addresses, "reports of the client's address"),
        (it.takes_candidates, "direct paths behind NATs"),
    ];
    let names: Vec<_> = all
        .into_iter()
        .filter_map(|(has, name)| has.then_some(name))
        .collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    Finding::fact("extensions", names)
}

/// Judges greasing. The completed handshake shows that the server ignores reserved values of this client.
fn greasing(first: &FirstConnection) -> Finding {
    let [short, greased] = first.greased;
    let saw = match greased {
        0 => "ignores reserved transport parameters, as it must".to_owned(),
        _ => format!(
            "ignores reserved transport parameters; clears the QUIC bit in {greased} of {short} packets"
        ),
    };
    Finding::good("greasing", saw)
}

fn ecn(first: &FirstConnection) -> Finding {
    let name = "ECN";
    let [marked, plain] = first.marks;
    let theirs = match (marked, plain) {
        (0, _) => "its own datagrams carry no mark".to_owned(),
        (_, 0) => "its own datagrams are marked".to_owned(),
        _ => format!("{marked} of its {} datagrams are marked", marked + plain),
    };
    match first.ecn.as_deref() {
        Some("Capable") => Finding::good(name, format!("reports marks; {theirs}")),
        Some("Failed") => Finding::weak(
            name,
            format!("does not report marks, or the path clears them; {theirs}"),
            "routers that mark packets instead of dropping them cannot signal congestion to the sender (RFC 9000 §13.4)").costs(5),
        _ => Finding::unknown(name, format!("too few packets to tell; {theirs}")),
    }
}

/// Judges the spin bit. A server that uses it reflects the client's bit, which the client inverts, so that
/// both change once per round trip. Otherwise the client's bit is the inverse of a constant.
fn spin(first: &FirstConnection) -> Finding {
    let name = "spin bit";
    let [theirs, ours] = first.spins;
    match (theirs, ours) {
        (0, _) => Finding::fact(name, "off"),
        (theirs, ours) if theirs.abs_diff(ours) <= 1 + ours / 4 => {
            Finding::fact(name, "on: observers see the round-trip time")
        }
        (theirs, ours) => Finding::fact(
            name,
            format!("random: {theirs} changes, {ours} of this client"),
        ),
    }
}

fn mtu(first: &FirstConnection) -> Finding {
    let name = "path MTU";
    let (bytes, is_done) = first.mtu;
    if bytes <= 1200 && !is_done {
        return Finding::unknown(name, "not searched: this client sent too little data");
    }
    let saw = match is_done {
        true => format!("datagrams of {bytes} bytes"),
        false => format!("datagrams of at least {bytes} bytes, the search was not complete"),
    };
    match bytes {
        ..1350 if is_done => Finding::weak(
            name,
            saw,
            "a tunnel on the path, or a small limit of the server: more packets for the same data",
        )
        .costs(2),
        _ => Finding::good(name, saw),
    }
}

fn rebinding(seen: Option<AddressChange>) -> Finding {
    let name = "rebinding";
    match seen {
        None => Finding::unknown(name, "not tried"),
        Some(AddressChange {
            survived: true,
            validated: true,
        }) => Finding::good(
            name,
            "the server follows a new port of the client and validates it",
        ),
        Some(AddressChange {
            survived: true,
            validated: false,
        }) => Finding::bad(
            name,
            "the server follows a new port of the client without a PATH_CHALLENGE",
            "the address must be validated, or attackers can redirect the data (RFC 9000 §9.3)",
        )
        .costs(10),
        Some(AddressChange {
            survived: false, ..
        }) => Finding::bad(
            name,
            "the connection was lost when the client's port changed",
            "NATs change the ports of idle connections, which then time out (RFC 9000 §9.3)",
        )
        .costs(15),
    }
}

fn migration(facts: &Facts, first: &FirstConnection) -> Finding {
    let name = "migration";
    if first
        .parameters
        .as_ref()
        .is_some_and(|it| it.disable_active_migration)
    {
        return Finding::fact(name, "the server forbids it (disable_active_migration)");
    }
    let Some(Ok(resumed)) = &facts.resumed else {
        return Finding::unknown(name, "not tried");
    };
    match resumed.migration {
        Some(AddressChange { survived: true, .. }) => {
            Finding::good(name, "to another port with a fresh connection ID")
        }
        Some(AddressChange {
            survived: false, ..
        }) => Finding::weak(
            name,
            "the connection was lost, although the server permits it",
            "a server that cannot follow must announce disable_active_migration (RFC 9000 §18.2)",
        )
        .costs(8),
        None if first.spare[0] == 0 => Finding::weak(
            name,
            "permitted, but the server issues no spare connection IDs",
            "clients need a fresh connection ID for each new path (RFC 9000 §9.5)",
        )
        .costs(3),
        None => Finding::unknown(name, "not tried"),
    }
}

/// About the initial congestion window in bytes (RFC 9002 §7.2).
const MIN_WINDOW: u64 = 14_720;
const MIN_IDLE_MS: u64 = 10_000;
