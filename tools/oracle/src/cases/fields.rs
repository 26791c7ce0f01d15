//! The fields that a gateway passes, removes and replaces.

use crate::lab::{Findings, Lab, Pair, equal};
use crate::message::{Content, Request, Response, Version};
use crate::upstream::{Script, UpstreamVersion};

/// The required treatment of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is forwarded unchanged.
    Passes,
    /// Its value is removed. The gateway may send a value of its own.
    Gone,
    /// It is specific to a connection: removed in HTTP/1.1, and an error in the other versions.
    OfTheConnection,
}

use Fate::{Gone, OfTheConnection, Passes};

/// The fields of requests. Rules: 9110-011, 9110-047, 9110-121, 9110-117, 9110-137, 9110-183, 9110-185, 9111-001 to 9111-006,
/// 9113-051, 9113-056, 7239-001, 7239-010, 8470-009.
const REQUEST_FIELDS: &[(&str, &str, Fate)] = &[
    ("accept", "text/html;q=0.9, */*", Passes),
    ("accept-encoding", "gzip, br;q=0.5", Passes),
    ("accept-language", "de, en;q=0.1", Passes),
    ("authorization", "Basic dTpw", Passes),
    ("cache-control", "no-cache, unknown=\"a, b\"", Passes),
    ("content-language", "de", Passes),
    ("content-location", "/there", Passes),
    ("cookie", "a=1; b=2", Passes),
    ("digest", "sha-256=x", Passes),
    ("dnt", "1", Passes),
    ("early-data", "1", Passes),
    ("from", "user@example.org", Passes),
    ("if-match", "\"a\", W/\"b\"", Passes),
    ("if-modified-since", "yesterday", Passes),
    ("if-none-match", "*", Passes),
    ("if-range", "\"a\"", Passes),
    ("max-forwards", "0", Passes),
    ("origin", "null", Passes),
    ("pragma", "no-cache", Passes),
    ("prefer", "wait=1", Passes),
    ("priority", "u=1, i", Passes),
    ("range", "bytes=0-1,-1", Passes),
    ("referer", "https://example.org/a?b", Passes),
    ("sec-fetch-mode", "cors", Passes),
    (
        "traceparent",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        Passes,
    ),
    ("user-agent", "oracle/1 (a; b)", Passes),
    ("warning", "199 - \"old\"", Passes),
    ("x-empty", "", Passes),
    ("x-latin", "caf\u{e9} \u{2713}", Passes),
    ("x-mine", "1", Passes),
    ("forwarded", "for=192.0.2.1", Gone),
    ("proxy", "http://192.0.2.1", Gone),
    ("proxy-authorization", "Basic dTpw", Gone),
    ("x-forwarded-for", "192.0.2.1", Gone),
    ("x-forwarded-host", "192.0.2.1", Gone),
    ("x-forwarded-port", "192", Gone),
    ("x-forwarded-prefix", "/192", Gone),
    ("x-forwarded-proto", "192", Gone),
    ("x-original-url", "/192", Gone),
    ("x-real-ip", "192.0.2.1", Gone),
    ("x_forwarded_for", "192.0.2.1", Gone),
    ("content_length", "1", Gone),
    ("transfer_encoding", "chunked", Gone),
    ("connection", "x-nothing", OfTheConnection),
    ("keep-alive", "timeout=5", OfTheConnection),
    ("proxy-connection", "keep-alive", OfTheConnection),
    ("te", "gzip", OfTheConnection),
    ("upgrade", "x-protocol", OfTheConnection),
];

/// Sends each field of a request.
pub async fn request_fields(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        for (name, value, fate) in REQUEST_FIELDS {
            let request = Request::new("GET", "/field").with(name, value);
            let script = Script::answer(Response::ok());
            let answered = lab.send(pair, script, &request).await;
            let result = if *fate == OfTheConnection && pair.client != Version::Http1 {
                answered.refusal().map(drop)
            } else {
                answered.forwarded().and_then(|_| {
                    let seen = &answered.upstream[0];
                    equal("status", answered.answer.status(), 200)?;
                    check(*fate, seen.all(name).collect(), value.as_bytes())
                })
            };
            findings.note(pair, &format!("{name}: {value}"), result);
        }
        let case = "upper case, twice, with spaces around";
        if pair.client == Version::Http1 {
            let request = Request::new("GET", "/field")
                .with("X-Two", "  one\t")
                .with("x-tWO", "two");
            let answered = lab
                .send(pair, Script::answer(Response::ok()), &request)
                .await;
            let lines = answered.forwarded().map(|seen| seen.get("x-two"));
            let result = lines.and_then(|lines| equal("lines", &*lines, "one|two"));
            findings.note(pair, case, result);
        }
    }
    findings
}

fn check(fate: Fate, seen: Vec<&[u8]>, value: &[u8]) -> Result<(), String> {
    let text = |seen: &[&[u8]]| String::from_utf8_lossy(&seen.join(&b'|')).into_owned();
    let is_right = match fate {
        Passes => seen == [value],
        Gone | OfTheConnection => !seen.iter().any(|seen| {
            let window = value.len().max(1);
            seen.windows(window).any(|part| part == value)
        }),
    };
    if is_right {
        Ok(())
    } else {
        Err(format!("arrived as {:?}", text(&seen)))
    }
}

/// The fields of responses. Rules: 9110-046, 9110-047, 9110-115, 9110-117, 9110-155, 9111-001 to 9111-006, 7838-011, 6797-002.
const RESPONSE_FIELDS: &[(&str, &str, Fate)] = &[
    ("accept-ranges", "bytes", Passes),
    ("age", "3", Passes),
    ("allow", "GET, X", Passes),
    (
        "cache-control",
        "private=\"a, b\", max-age=0, unknown",
        Passes,
    ),
    ("content-disposition", "attachment; filename=\"a\"", Passes),
    ("content-encoding", "x-own", Passes),
    ("content-language", "de", Passes),
    ("content-security-policy", "default-src 'self'", Passes),
    ("content-type", "text/x-own", Passes),
    ("etag", "W/\"a\"", Passes),
    ("expires", "0", Passes),
    ("last-modified", "yesterday", Passes),
    ("link", "</a>; rel=preload", Passes),
    ("location", "/there#fragment", Passes),
    ("pragma", "no-cache", Passes),
    ("retry-after", "3", Passes),
    ("server", "oracle/1", Passes),
    ("strict-transport-security", "max-age=1", Passes),
    ("vary", "*", Passes),
    ("warning", "199 - \"old\"", Passes),
    ("www-authenticate", "Basic realm=\"a\", X y=\"z\"", Passes),
    ("x-latin", "caf\u{e9}", Passes),
    ("x_under", "1", Passes),
    ("alt-svc", "h3=\":9999\"", Gone),
    ("connection", "x-nothing", OfTheConnection),
    ("keep-alive", "timeout=5", OfTheConnection),
    ("proxy-connection", "keep-alive", OfTheConnection),
    ("upgrade", "x-protocol", OfTheConnection),
];

/// Responds with each field.
pub async fn response_fields(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        for (name, value, fate) in RESPONSE_FIELDS {
            let response = Response::ok().with(name, value);
            let request = Request::new("GET", "/field");
            let answered = lab.send(pair, Script::answer(response), &request).await;
            let seen = &answered.answer;
            let result = if *fate == OfTheConnection && pair.upstream == UpstreamVersion::H2c {
                // Malformed (RFC 9113 §8.2.2).
                equal("status", seen.status(), 502)
            } else {
                let status = equal("status", seen.status(), 200);
                status.and_then(|()| check(*fate, seen.all(name).collect(), value.as_bytes()))
            };
            findings.note(pair, &format!("{name}: {value}"), result);
        }
        let response = Response::ok()
            .with("set-cookie", "a=1, b")
            .with("set-cookie", "c=2");
        let request = Request::new("GET", "/cookies");
        let answered = lab.send(pair, Script::answer(response), &request).await;
        let result = equal("lines", &*answered.answer.get("set-cookie"), "a=1, b|c=2");
        findings.note(pair, "two cookies", result);
        let response = Response::ok().with("date", "Tue, 15 Nov 1994 08:12:31 GMT");
        let answered = lab.send(pair, Script::answer(response), &request).await;
        let date = answered.answer.get("date");
        let result = equal("date", &*date, "Tue, 15 Nov 1994 08:12:31 GMT");
        findings.note(pair, "a date", result);
        let answered = lab
            .send(pair, Script::answer(Response::ok()), &request)
            .await;
        let date = answered.answer.get("date");
        let result = equal(
            &format!("date {date:?} is one"),
            date.ends_with(" GMT"),
            true,
        );
        findings.note(pair, "no date", result);
    }
    findings
}

/// Lists fields in Connection. Rules: 9110-046, 9110-049, 9113-057.
pub async fn listed_in_connection(lab: &mut Lab) -> Findings {
    // The other pairs have no Connection field at either end.
    let has_it =
        |pair: &Pair| pair.client == Version::Http1 || pair.upstream == UpstreamVersion::Http1;
    let mut findings = Findings::over(Pair::all().filter(has_it));
    for pair in Pair::all() {
        if pair.client == Version::Http1 {
            let request = Request::new("GET", "/listed")
                .with(
                    "connection",
                    "close, X-Listed,, host, via, x-forwarded-for, Forwarded",
                )
                .with("x-listed", "1")
                .with("x-kept", "1");
            let answered = lab
                .send(pair, Script::answer(Response::ok()), &request)
                .await;
            let result = answered.forwarded().and_then(|_| {
                let seen = &answered.upstream[0];
                equal("x-listed", &*seen.get("x-listed"), "")?;
                equal("x-kept", &*seen.get("x-kept"), "1")?;
                equal("host", &*seen.get("host"), "localhost")?;
                equal(
                    "x-forwarded-for",
                    &*seen.get("x-forwarded-for"),
                    "127.0.0.1",
                )?;
                equal("via", seen.get("via").is_empty(), false)
            });
            findings.note(pair, "a list", result);
        }
        if pair.upstream == UpstreamVersion::Http1 {
            let response = Response::ok()
                .with("connection", "X-Listed, date")
                .with("x-listed", "1")
                .with("x-kept", "1");
            let request = Request::new("GET", "/listed");
            let answered = lab.send(pair, Script::answer(response), &request).await;
            let seen = &answered.answer;
            let result = equal("x-listed", &*seen.get("x-listed"), "")
                .and_then(|()| equal("x-kept", &*seen.get("x-kept"), "1"))
                .and_then(|()| equal("date", seen.get("date").is_empty(), false));
            findings.note(pair, "a list of the upstream server", result);
        }
    }
    findings
}

/// Sends trailer fields. Those that frame, route, authenticate or name the client are forwarded neither as trailers nor in the
/// header section. Rules: 9110-031, 9110-032, 9110-034, 7239-011, 9112-061.
pub async fn trailers(lab: &mut Lab) -> Findings {
    const OF_REQUESTS: &[&str] = &[
        "authorization",
        "content-length",
        "content-type",
        "cookie",
        "forwarded",
        "host",
        "proxy-authorization",
        "transfer-encoding",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
        "x_forwarded_for",
    ];
    const OF_RESPONSES: &[&str] = &[
        "content-encoding",
        "content-length",
        "content-type",
        "forwarded",
        "host",
        "set-cookie",
        "transfer-encoding",
        "www-authenticate",
        "x-forwarded-for",
    ];
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        for name in OF_REQUESTS {
            let result = trailer_of_request(lab, pair, name).await;
            findings.note(pair, &format!("{name} of a request"), result);
        }
        for name in OF_RESPONSES {
            let response = Response::new(200)
                .content(Content::unknown("abc"))
                .trailer(name, "192.0.2.1")
                .trailer("x-sum", "1");
            let request = Request::new("GET", "/trailers")
                .with("te", "trailers")
                .with("connection", "te");
            let request = for_version(request, pair.client);
            let answered = lab.send(pair, Script::answer(response), &request).await;
            let text = answered.answer.to_string();
            let result = equal(
                &format!("arrives in\n{text}\n"),
                text.contains("192.0.2.1"),
                false,
            );
            findings.note(pair, &format!("{name} of a response"), result);
        }
    }
    findings
}

async fn trailer_of_request(lab: &mut Lab, pair: Pair, name: &str) -> Result<(), String> {
    let request = Request::new("POST", "/trailers")
        .with("te", "trailers")
        .with("connection", "te")
        .content(Content::unknown("abc"))
        .trailer(name, "192.0.2.1")
        .trailer("x-sum", "1");
    let request = for_version(request, pair.client);
    let answered = lab
        .send(pair, Script::answer(Response::ok()), &request)
        .await;
    let Some(seen) = answered.upstream.first() else {
        return Ok(());
    };
    if name == "transfer-encoding" && pair.client != Version::Http1 {
        // The message is malformed (RFC 9113 §8.2.2), so that the forwarded one is cut.
        return equal("complete", seen.is_complete(), false);
    }
    let text = seen.to_string();
    equal(
        &format!("arrives in\n{text}\n"),
        text.contains("192.0.2.1"),
        false,
    )
}

/// Removes Connection, which only HTTP/1.1 has.
fn for_version(mut request: Request, version: Version) -> Request {
    if version != Version::Http1 {
        request.fields.retain(|(name, _)| name != b"connection");
    }
    request
}
