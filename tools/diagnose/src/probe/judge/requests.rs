//! Judges HTTP/3, and its announcement to clients.

use crate::finding::Finding;
use crate::probe::facts::{
    Announced, AnnouncedOutcome, Exchange, Facts, FirstConnection, Priorities,
};
use crate::webtransport::WebTransport;

pub(crate) fn judge(facts: &Facts, first: &FirstConnection) -> Vec<Finding> {
    let mut found = Vec::new();
    match &first.exchange {
        None => found.push(Finding::unknown(
            "request",
            format!(
                "this program does not support the protocol {}",
                first.protocol
            ),
        )),
        Some(Err(error)) => found
            .push(Finding::bad("request", error.clone(), "requests are not answered").costs(15)),
        Some(Ok(exchange)) => {
            found.push(request(exchange));
            if let Some(settings) = &exchange.settings {
                found.extend(http3(exchange, settings));
            }
        }
    }
    found.extend(first.webtransport.iter().flat_map(webtransport));
    if first.protocol == "h3" {
        found.push(announcement(facts));
        found.extend(https_record(facts));
        found.extend(facts.announced.as_ref().map(announced));
    }
    found
}

/// Judges the port that the server announces.
fn announced(announced: &Announced) -> Finding {
    let name = "announced port";
    let place = &announced.place;
    match &announced.outcome {
        AnnouncedOutcome::Examined => Finding::fact(
            name,
            format!("{place}, which was examined, because the port of the user does not answer"),
        ),
        AnnouncedOutcome::Answers => Finding::good(name, format!("{place} answers")),
        AnnouncedOutcome::Failed(error) => Finding::weak(
            name,
            format!("{place}: {error}"),
            "clients that follow the announcement lose time, and stay on TCP (RFC 7838 §2.4)",
        )
        .costs(10),
        AnnouncedOutcome::NotContacted => Finding::unknown(
            name,
            format!("{place} is another host: examine it with 'courser probe {place}'"),
        ),
    }
}

fn request(exchange: &Exchange) -> Finding {
    let server = exchange
        .server
        .as_deref()
        .map_or_else(String::new, |name| format!(", server: {name}"));
    if !exchange.head {
        let status = exchange
            .status
            .map_or_else(String::new, |status| format!("GET has status {status}, "));
        let why =
            "a response to HEAD must not have content (RFC 9110 §9.3.2): clients abort the request";
        return Finding::weak(
            "request",
            format!("{status}HEAD is answered with content or not at all{server}"),
            why,
        )
        .costs(5);
    }
    match exchange.status {
        Some(status @ 500..) => Finding::weak(
            "request",
            format!("status {status}{server}"),
            "the application behind the server failed",
        )
        .costs(3),
        Some(status) => Finding::good("request", format!("status {status}{server}")),
        None => Finding::good(
            "request",
            format!("answered with {} bytes (HTTP/0.9)", exchange.content),
        ),
    }
}

fn http3(exchange: &Exchange, settings: &crate::probe::facts::Settings) -> Vec<Finding> {
    let fields = settings.max_field_section_size;
    let mut abilities = vec![match fields {
        Some(bytes) if bytes < UNLIMITED => format!("header sections of up to {bytes} bytes"),
        _ => "header sections of any size".to_owned(),
    }];
    if settings.enable_connect_protocol {
        abilities.push("extended CONNECT (RFC 9220)".to_owned());
    }
    if settings.h3_datagram {
        abilities.push("datagrams (RFC 9297)".to_owned());
    }
    let mut found = vec![
        Finding::fact("HTTP/3 settings", abilities.join(", ")),
        qpack(exchange, settings),
    ];
    found.push(match exchange.priorities {
        Priorities::Honoured => Finding::good(
            "priorities",
            "an urgent response overtakes one that was requested before",
        ),
        Priorities::Ignored => Finding::weak(
            "priorities",
            "an urgent response waits behind one that was requested before",
            "pages appear later when images precede their style (RFC 9218)",
        )
        .costs(3),
        Priorities::TooShort => Finding::unknown(
            "priorities",
            format!(
                "content of {} bytes is not suitable: use a --path with 100 KB to 1 MB",
                exchange.content
            ),
        ),
        Priorities::NotTried => Finding::unknown("priorities", "not tried"),
    });
    found
}

/// Judges the announcement of WebTransport: who would refuse to open sessions.
fn webtransport(announced: &WebTransport) -> Vec<Finding> {
    let name = "WebTransport";
    if announced.dialects.is_empty() {
        return vec![Finding::fact(name, "not announced")];
    }
    let saw = announced.to_string();
    let refusals = announced.refusals();
    if refusals.is_empty() {
        return vec![Finding::good(name, saw)];
    }
    let refusal = |(who, why): (&str, String)| {
        let finding = Finding::weak(name, format!("{who} will refuse"), &why);
        finding.costs(3)
    };
    let all = refusals.into_iter().map(refusal);
    [Finding::fact(name, saw)].into_iter().chain(all).collect()
}

/// Judges QPACK. If the server uses a dynamic table, a repeated response has a shorter header section.
fn qpack(exchange: &Exchange, settings: &crate::probe::facts::Settings) -> Finding {
    let theirs = match settings.qpack_max_table_capacity {
        0 => "requests cannot use a dynamic table".to_owned(),
        bytes => format!("requests may use a dynamic table of {bytes} bytes"),
    };
    match exchange.header_bytes {
        Some([first, second]) if second < first => Finding::good(
            "QPACK",
            format!("a repeated header section shrinks from {first} to {second} bytes; {theirs}"),
        ),
        Some([first, _]) => Finding::fact(
            "QPACK",
            format!("header sections of {first} bytes each time: no dynamic table; {theirs}"),
        ),
        None => Finding::fact("QPACK", theirs),
    }
}

fn announcement(facts: &Facts) -> Finding {
    let name = "alt-svc";
    match &facts.tcp {
        Some(Ok(Some(field))) if field.contains("h3=") || field.contains("h3-") => {
            Finding::good(name, format!("over TCP: {field}"))
        }
        Some(Ok(field)) if offers_http3(facts) => {
            let field = field.as_deref().unwrap_or("none");
            Finding::fact(
                name,
                format!("over TCP: {field}; the HTTPS record offers h3"),
            )
        }
        Some(Ok(field)) => Finding::weak(
            name,
            format!("over TCP: {}", field.as_deref().unwrap_or("none")),
            "browsers discover HTTP/3 by this field over TCP, or by an HTTPS record (RFC 9114 §3.1.1)").costs(5),
        Some(Err(error)) => Finding::unknown(name, format!("no response over TCP: {error}")),
        None => Finding::unknown(name, "not checked over TCP"),
    }
}

fn offers_http3(facts: &Facts) -> bool {
    let protocols = facts.https_record.as_ref().and_then(|it| it.as_ref().ok());
    protocols.is_some_and(|it| it.iter().any(|name| name == "h3"))
}

fn https_record(facts: &Facts) -> Option<Finding> {
    let name = "HTTPS record";
    Some(match facts.https_record.as_ref()? {
        Ok(protocols) if protocols.is_empty() => {
            Finding::fact(name, "none: the first visit uses TCP")
        }
        Ok(protocols) if protocols.iter().any(|it| it == "h3") => {
            Finding::good(name, format!("offers {}", protocols.join(", ")))
        }
        Ok(protocols) => Finding::weak(
            name,
            format!("offers {}, but not h3", protocols.join(", ")),
            "clients that read the record do not try HTTP/3 (RFC 9460 §9)",
        )
        .costs(5),
        Err(error) => Finding::unknown(name, error.clone()),
    })
}

/// Limits of 2^30 bytes and above count as unlimited.
const UNLIMITED: u64 = 1 << 30;
