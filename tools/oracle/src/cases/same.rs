//! Requests and responses that are the same over all versions.

use crate::lab::{Findings, Lab, Pair, is_of_the_gateway};
use crate::message::{Content, Request, Response, Version};
use crate::seen::{Framing, Seen};
use crate::upstream::{Script, UpstreamVersion, When};

/// Sends each request over every version, and compares the forwarded requests and the responses with those of HTTP/1.1.
/// Rules: 9110-003, 9110-013, 9110-020, 9110-038, 9110-056, 9110-157, 9113-051, 9113-059, 9113-071.
pub async fn same_over_all_versions(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    for upstream in UpstreamVersion::ALL {
        for (name, request, response) in &cases() {
            let mut first: Option<String> = None;
            for version in Version::ALL {
                let pair = Pair {
                    client: version,
                    upstream,
                };
                let script = Script::Answer(When::AtEnd, response.clone());
                let spelled = spelled(request, version);
                let answered = lab.send(pair, script, &spelled).await;
                let mut text = String::new();
                for seen in &answered.upstream {
                    text.push_str(&plain(seen, version));
                }
                text.push_str(&plain(&answered.answer, version));
                let result = match &first {
                    None => Ok(()),
                    Some(first) if *first == text => Ok(()),
                    Some(first) => Err(format!("differs:\n{text}\n--- over h1:\n{first}")),
                };
                findings.note(pair, name, result);
                first.get_or_insert(text);
            }
        }
    }
    findings
}

/// Returns the request for a version: cookies are one field line in HTTP/1.1, and may be several in the other versions.
fn spelled(request: &Request, version: Version) -> Request {
    let mut spelled = request.clone();
    if version == Version::Http1 {
        return spelled;
    }
    let fields = std::mem::take(&mut spelled.fields);
    for (name, value) in fields {
        if name == b"cookie" {
            let crumbs = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let lines = crumbs.map(|crumb| (name.clone(), crumb.to_vec()));
            spelled.fields.extend(lines);
        } else {
            spelled.fields.push((name, value));
        }
    }
    spelled
}

/// Returns the text of a message without parts that may differ: the fields of the gateway, and the length of empty content.
fn plain(seen: &Seen, _version: Version) -> String {
    let mut seen = seen.clone().without(is_of_the_gateway);
    if seen.content.is_empty() {
        seen.framing = Framing::None;
    }
    format!("{seen}\n")
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<(&'static str, Request, Response)> {
    let get = |path: &str| Request::new("GET", path);
    let ok = Response::ok;
    let many = (0..150).fold(get("/many"), |request, number| {
        request.with(format!("x-{number}"), "1")
    });
    let many_back = (0..150).fold(ok(), |response, number| {
        response.with(format!("x-{number}"), "1")
    });
    let post = |content| Request::new("POST", "/").content(content);
    vec![
        ("nothing special", get("/"), ok()),
        ("a query", get("/a?b=c&d=%20"), ok()),
        (
            "bytes above 0x7f in a value",
            get("/").with("x", b"caf\xe9"),
            ok(),
        ),
        (
            "lines of one name",
            get("/").with("x", "1").with("y", "2").with("x", "3"),
            ok(),
        ),
        ("cookies", get("/").with("cookie", "a=1; b=2; c=3"), ok()),
        ("an empty value", get("/").with("x", ""), ok()),
        (
            "a field of 15 kB",
            get("/").with("x", "v".repeat(15_000)),
            ok(),
        ),
        ("150 fields", many, ok()),
        ("150 fields of the answer", get("/"), many_back),
        (
            "a field of 15 kB of the answer",
            get("/"),
            ok().with("x", "v".repeat(15_000)),
        ),
        ("te: trailers", get("/").with("te", "trailers"), ok()),
        (
            "content of GET",
            get("/").content(Content::length("abc")),
            ok(),
        ),
        (
            "content of GET, unknown length",
            get("/").content(Content::unknown("abc")),
            ok(),
        ),
        (
            "content of DELETE",
            Request::new("DELETE", "/").content(Content::unknown("abc")),
            ok(),
        ),
        ("a port", get("/").authority("localhost:8443"), ok()),
        ("a method of its own", Request::new("PURGE", "/"), ok()),
        ("a method in lower case", Request::new("get", "/"), ok()),
        ("HEAD", Request::new("HEAD", "/"), ok()),
        ("OPTIONS of a server", Request::new("OPTIONS", "*"), ok()),
        ("TRACE", Request::new("TRACE", "/"), ok()),
        (
            "Max-Forwards",
            Request::new("OPTIONS", "/").with("max-forwards", "3"),
            ok(),
        ),
        (
            "no more forwards",
            Request::new("OPTIONS", "/").with("max-forwards", "0"),
            ok(),
        ),
        ("content", post(Content::length("abc")), ok()),
        (
            "content that echoes nothing",
            post(Content::unknown("abc")),
            Response::new(204),
        ),
        (
            "404",
            get("/"),
            Response::new(404).content(Content::length("none")),
        ),
        ("304", get("/"), Response::new(304).with("etag", "\"a\"")),
        (
            "an unknown status",
            get("/"),
            Response::new(299).content(Content::length("x")),
        ),
        (
            "a status above 599",
            get("/"),
            Response::new(600).content(Content::length("x")),
        ),
        (
            "unknown length of the answer",
            get("/"),
            ok().content(Content::unknown("abc")),
        ),
        (
            "early hints",
            get("/"),
            ok().interim(103, &[("link", "</a>")])
                .interim(103, &[("link", "</b>")]),
        ),
        (
            "two cookies",
            get("/"),
            ok().with("set-cookie", "a=1").with("set-cookie", "b=2"),
        ),
        (
            "407",
            get("/"),
            Response::new(407).with("proxy-authenticate", "Basic realm=\"a\""),
        ),
        (
            "421",
            get("/"),
            Response::new(421).content(Content::length("not here")),
        ),
        ("no date", get("/"), ok()),
    ]
}
