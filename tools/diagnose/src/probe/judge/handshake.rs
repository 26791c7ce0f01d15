//! Judges versions, TLS, the certificate, and the anti-amplification limit.

use courser_wire::VERSION_2;

use crate::FITS_FIRST_FLIGHT;
use crate::finding::Finding;
use crate::probe::connector::{NO_APPLICATION_PROTOCOL, alert};
use crate::probe::facts::{Chain, Facts, FirstConnection, Refusal};
use crate::probe::steps::versions::{is_reserved, version_name};

pub(crate) fn judge(facts: &Facts, first: &FirstConnection) -> Vec<Finding> {
    let mut found = vec![
        handshake(first),
        versions(facts),
        version2(facts),
        Finding::good("protocol", format!("{} (ALPN)", first.protocol)),
        unknown_alpn(facts),
        retry(facts, first),
        group(first),
    ];
    found.extend(certificate(first));
    found.push(three_times(facts, first));
    found.extend(resumption(facts, first));
    found
}

fn handshake(first: &FirstConnection) -> Finding {
    let FirstConnection {
        handshake_ms,
        rtt_ms,
        suite,
        ..
    } = first;
    let version = version_name(first.version);
    Finding::fact(
        "handshake",
        format!("{version}, {handshake_ms} ms at a round trip of {rtt_ms} ms, {suite}"),
    )
}

fn versions(facts: &Facts) -> Finding {
    let name = "version negotiation";
    match &facts.versions {
        Some(versions) => {
            let list: Vec<_> = versions
                .iter()
                .map(|&version| version_name(version))
                .collect();
            let saw = format!("offers {}", list.join(", "));
            match versions.iter().any(|&version| is_reserved(version)) {
                true => Finding::good(name, format!("{saw} (greased)")),
                false => Finding::good(name, saw),
            }
        }
        None => Finding::weak(
            name,
            "no answer to an unknown version",
            "clients with other versions wait for a timeout instead of trying another version (RFC 9000 §6.1)").costs(5),
    }
}

fn version2(facts: &Facts) -> Finding {
    let name = "version 2";
    match &facts.version2 {
        Some(Ok(VERSION_2)) => Finding::good(
            name,
            "the server upgrades clients to it without a round trip (RFC 9368 §2.3)",
        ),
        Some(Ok(_)) => {
            let offers = facts
                .versions
                .as_ref()
                .is_some_and(|list| list.contains(&VERSION_2));
            let saw = if offers {
                "offered; clients that start with version 1 keep it"
            } else {
                "not offered"
            };
            Finding::fact(name, saw)
        }
        Some(Err(error)) => Finding::bad(
            name,
            format!("a client that offers it together with version 1 fails: {error}"),
            "a server must accept the transport parameter version_information (RFC 9368 §4)",
        )
        .costs(10),
        None => Finding::unknown(name, "not tried"),
    }
}

fn unknown_alpn(facts: &Facts) -> Finding {
    let name = "unknown protocol";
    match &facts.unknown_alpn {
        Some(Refusal::Code(code)) if alert(*code) == Some(NO_APPLICATION_PROTOCOL) => {
            Finding::good(name, "refused with no_application_protocol")
        }
        Some(Refusal::Code(code)) => Finding::weak(
            name,
            format!("refused with the code {code:#x}"),
            "the alert is no_application_protocol, 0x178 (RFC 9001 §8.1)").costs(3),
        Some(Refusal::Other(error)) => Finding::weak(
            name,
            format!("not refused: {error}"),
            "only the alert no_application_protocol shows clients the reason (RFC 9001 §8.1)").costs(5),
        Some(Refusal::Accepted) => Finding::bad(
            name,
            "accepted",
            "an end must close a connection without a common protocol (RFC 9001 §8.1): attackers can send \
             the bytes of one protocol to a server of another").costs(15),
        None => Finding::unknown(name, "not tried"),
    }
}

fn retry(facts: &Facts, first: &FirstConnection) -> Finding {
    let name = "Retry";
    let again = match &facts.resumed {
        Some(Ok(resumed)) => resumed.retry,
        _ => false,
    };
    match (first.retry, again) {
        (false, _) => Finding::good(name, "not required of this client"),
        (true, false) => Finding::fact(
            name,
            "the first connection costs another round trip, which later ones avoid with a token",
        ),
        (true, true) => Finding::weak(
            name,
            "each connection costs another round trip, even with a token",
            "tokens of NEW_TOKEN frames validate the address without a round trip (RFC 9000 §8.1.3)",
        )
        .costs(3),
    }
}

fn group(first: &FirstConnection) -> Finding {
    let name = "key exchange";
    match first.group.contains("MLKEM") || first.group.contains("Kyber") {
        true => Finding::good(
            name,
            format!("{}, safe against quantum computers", first.group),
        ),
        false => Finding::weak(
            name,
            format!(
                "{}, although this client prefers X25519MLKEM768",
                first.group
            ),
            "recorded connections can be decrypted once quantum computers exist",
        )
        .costs(5),
    }
}

fn certificate(first: &FirstConnection) -> Vec<Finding> {
    let Some(chain) = &first.chain else {
        return vec![Finding::fact(
            "certificate",
            "none: a raw public key (RFC 7250)",
        )];
    };
    vec![trust(chain), size(chain)]
}

fn trust(chain: &Chain) -> Finding {
    let name = "certificate";
    let Chain { key, days_left, .. } = chain;
    let saw = format!(
        "{} ({key} key), {days_left} days left",
        chain.names.join(", ")
    );
    if let Some(reason) = &chain.distrust {
        return Finding::bad(
            name,
            format!("not trusted: {reason}"),
            "clients end the handshake",
        )
        .costs(30);
    }
    if chain.in_order < chain.certificates {
        let why = "each certificate must be followed by that of its issuer (RFC 8446 §4.4.2)";
        return Finding::weak(name, format!("{saw}, the chain is not in order"), why).costs(5);
    }
    match *days_left {
        ..5 => Finding::weak(
            name,
            saw,
            "clients will refuse it soon; renewal seems to have failed",
        )
        .costs(5),
        _ => Finding::good(name, saw),
    }
}

fn size(chain: &Chain) -> Finding {
    let name = "certificate chain";
    let saw = format!(
        "{} bytes in {} certificates",
        chain.bytes, chain.certificates
    );
    match &chain.compression {
        Some(algorithm) => Finding::good(name, format!("{saw}, compressed with {algorithm}")),
        None if chain.bytes <= FITS_FIRST_FLIGHT => {
            Finding::good(name, format!("{saw}, fits the first flight"))
        }
        None => Finding::weak(
            name,
            saw,
            "more than three times 1200 bytes: clients with a small first flight wait for a round trip (RFC 9000 §8.1)").costs(5),
    }
}

fn three_times(facts: &Facts, first: &FirstConnection) -> Finding {
    let name = "three times";
    let small = facts.small.as_ref().and_then(|it| it.as_ref().ok());
    let exceeds = first.exceeds_three_times || small.is_some_and(|it| it.exceeds_three_times);
    let [sent, received] = small.map_or(first.early_bytes, |it| it.early_bytes);
    let saw = format!("{received} bytes for {sent}, before the address was validated");
    match exceeds {
        true => Finding::bad(
            name,
            saw,
            "an attacker with a spoofed address can make the server send more than three times as much to a victim (RFC 9000 §8.1)").costs(25),
        false => Finding::good(name, saw),
    }
}

fn resumption(facts: &Facts, first: &FirstConnection) -> Vec<Finding> {
    let (name, early) = ("resumption", "0-RTT");
    let resumed = match &facts.resumed {
        Some(Ok(resumed)) => resumed,
        Some(Err(error)) => {
            let why = "returning clients must not fail";
            return vec![Finding::bad(name, error.clone(), why).costs(10)];
        }
        None => return vec![Finding::unknown(name, "not tried")],
    };
    let saw = format!(
        "{} ms instead of {}",
        resumed.handshake_ms, first.handshake_ms
    );
    let resumption = match resumed.resumed {
        true => Finding::good(name, format!("the session was resumed, {saw}")),
        false => Finding::weak(
            name,
            "the session was not resumed",
            "each connection costs a signature and the bytes of the certificate (RFC 8446 §2.2)",
        )
        .costs(5),
    };
    let early_data = match (resumed.early_data.as_str(), resumed.early_status) {
        ("accepted", Some(status)) => Finding::good(early, format!("accepted, status {status}")),
        ("accepted", None) => Finding::good(early, "accepted"),
        ("rejected", _) => Finding::weak(
            early,
            "permitted by the ticket, but rejected",
            "clients send their first request twice",
        )
        .costs(2),
        _ if resumed.resumed => Finding::fact(early, "not permitted by the ticket"),
        _ => Finding::fact(early, "not tried without a resumed session"),
    };
    vec![resumption, early_data]
}
