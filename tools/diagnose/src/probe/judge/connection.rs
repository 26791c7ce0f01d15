//! Transport parameters, the path, and changes of the client's address.

use courser_units::{binary_size, three_digits};

use crate::probe::aspect::Aspect;
use crate::probe::facts::{Facts, First, Move, Parameters};

pub(crate) fn judge(facts: &Facts, first: &First) -> Vec<Aspect> {
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
        Some(true) => Aspect::good("key update", "followed"),
        Some(false) => Aspect::bad(
            "key update",
            15,
            "the connection was lost",
            "each end must follow an update of keys (RFC 9001 §6)",
        ),
        None => Aspect::unknown("key update", "not tried"),
    });
    found.push(rebinding(first.rebinding));
    found.push(migration(facts, first));
    found
}

fn limits(it: &Parameters) -> Vec<Aspect> {
    let data = format!(
        "{} a connection, {} a stream, {} + {} streams",
        binary_size(it.initial_max_data),
        binary_size(it.initial_max_stream_data_bidi_remote),
        it.initial_max_streams_bidi,
        it.initial_max_streams_uni,
    );
    let window = match it.initial_max_data < LEAST_WINDOW || it.initial_max_streams_bidi == 0 {
        true => Aspect::weak(
            "first limits",
            3,
            data,
            "a first request with content waits for a round trip",
        ),
        false => Aspect::good("first limits", data),
    };
    let idle = match it.max_idle_timeout_ms {
        0 => Aspect::fact("idle timeout", "none announced, that of the client counts"),
        short @ 1..LEAST_IDLE_MS => Aspect::weak(
            "idle timeout",
            3,
            seconds(short),
            "connections end between two requests, and the next one costs a handshake",
        ),
        enough => Aspect::good("idle timeout", seconds(enough)),
    };
    vec![window, idle]
}

fn seconds(millis: u64) -> String {
    format!("{} s", three_digits(courser_units::to_f64(millis) / 1000.0))
}

fn extensions(it: &Parameters) -> Aspect {
    let all = [
        (it.max_datagram_frame_size > 0, "datagrams (RFC 9221)"),
        (it.grease_quic_bit, "a free QUIC bit (RFC 9287)"),
        (it.has_version_information, "version information (RFC 9368)"),
        (it.has_min_ack_delay, "ACK frequency"),
        (it.reset_stream_at, "RESET_STREAM_AT"),
        (it.has_preferred_address, "a preferred address"),
        (it.has_stateless_reset_token, "a stateless reset token"),
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
    Aspect::fact("extensions", names)
}

/// The handshake itself shows that the server ignores what this client greases.
fn greasing(first: &First) -> Aspect {
    let [short, greased] = first.greased;
    let saw = match greased {
        0 => "ignores reserved transport parameters, as it must".to_owned(),
        _ => format!(
            "ignores reserved transport parameters; clears the QUIC bit in {greased} of {short} packets"
        ),
    };
    Aspect::good("greasing", saw)
}

fn ecn(first: &First) -> Aspect {
    let name = "ECN";
    let [marked, plain] = first.marks;
    let theirs = match (marked, plain) {
        (0, _) => "its own datagrams carry no mark".to_owned(),
        (_, 0) => "its own datagrams are marked".to_owned(),
        _ => format!("{marked} of its {} datagrams are marked", marked + plain),
    };
    match first.ecn.as_deref() {
        Some("Capable") => Aspect::good(name, format!("reports marks; {theirs}")),
        Some("Failed") => Aspect::weak(
            name,
            5,
            format!("does not report marks, or the path clears them; {theirs}"),
            "routers that mark packets instead of dropping them cannot reach the sender (RFC 9000 §13.4)",
        ),
        _ => Aspect::unknown(name, format!("too few packets to tell; {theirs}")),
    }
}

/// A server that takes part reflects the client's bit, which the client inverts: both change once in a round
/// trip. Without it the client's bit stays the inverse of a constant.
fn spin(first: &First) -> Aspect {
    let name = "spin bit";
    let [theirs, ours] = first.spins;
    match (theirs, ours) {
        (0, _) => Aspect::fact(name, "off"),
        (theirs, ours) if theirs.abs_diff(ours) <= 1 + ours / 4 => {
            Aspect::fact(name, "on: observers see the round-trip time")
        }
        (theirs, ours) => Aspect::fact(
            name,
            format!("random: {theirs} changes, {ours} of this client"),
        ),
    }
}

fn mtu(first: &First) -> Aspect {
    let name = "path MTU";
    let (bytes, is_done) = first.mtu;
    if bytes <= 1200 && !is_done {
        return Aspect::unknown(name, "not searched: this client has sent too little");
    }
    let saw = match is_done {
        true => format!("datagrams of {bytes} bytes"),
        false => format!("datagrams of at least {bytes} bytes, the search was not complete"),
    };
    match bytes {
        ..1350 if is_done => Aspect::weak(
            name,
            2,
            saw,
            "a tunnel on the path, or a small limit of the server: more packets for the same data",
        ),
        _ => Aspect::good(name, saw),
    }
}

fn rebinding(seen: Option<Move>) -> Aspect {
    let name = "rebinding";
    match seen {
        None => Aspect::unknown(name, "not tried"),
        Some(Move {
            survived: true,
            validated: true,
        }) => Aspect::good(name, "a new port of the client is followed, and validated"),
        Some(Move {
            survived: true,
            validated: false,
        }) => Aspect::bad(
            name,
            10,
            "a new port of the client is followed without a PATH_CHALLENGE",
            "the address must be validated, or an attacker redirects the data (RFC 9000 §9.3)",
        ),
        Some(Move {
            survived: false, ..
        }) => Aspect::bad(
            name,
            15,
            "the connection was lost when the client's port changed",
            "NATs change ports of idle connections: these end in a timeout (RFC 9000 §9.3)",
        ),
    }
}

fn migration(facts: &Facts, first: &First) -> Aspect {
    let name = "migration";
    if first
        .parameters
        .as_ref()
        .is_some_and(|it| it.disable_active_migration)
    {
        return Aspect::fact(
            name,
            "the server asks clients not to (disable_active_migration)",
        );
    }
    let Some(Ok(resumed)) = &facts.resumed else {
        return Aspect::unknown(name, "not tried");
    };
    match resumed.migration {
        Some(Move { survived: true, .. }) => {
            Aspect::good(name, "to another port with a fresh connection ID")
        }
        Some(Move {
            survived: false, ..
        }) => Aspect::weak(
            name,
            8,
            "the connection was lost, although the server permits it",
            "a server that cannot follow announces disable_active_migration (RFC 9000 §18.2)",
        ),
        None if first.spare[0] == 0 => Aspect::weak(
            name,
            3,
            "permitted, but the server gives out no spare connection ID",
            "clients need a fresh ID for each new path (RFC 9000 §9.5)",
        ),
        None => Aspect::unknown(name, "not tried"),
    }
}

/// Less than the initial congestion window.
const LEAST_WINDOW: u64 = 14_720;
const LEAST_IDLE_MS: u64 = 10_000;
