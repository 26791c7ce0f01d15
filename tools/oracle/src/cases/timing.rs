//! Early, repeated and missing responses.

use crate::client::Client;
use crate::lab::{Findings, Lab, Pair, equal};
use crate::message::{Content, Request, Response, Version};
use crate::upstream::{Script, UpstreamVersion, When};
use crate::wire::Step;
use crate::{h1, h2, h3};

/// Responds while the client still sends content. The client receives the whole response. Rules: 9113-043, 9113-044, 9112-068.
pub async fn answers_before_the_end(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        for (name, content) in [
            (
                "length",
                Content::Length(vec![b"a".to_vec(), b"b".to_vec()]),
            ),
            (
                "unknown length",
                Content::Unknown(vec![b"a".to_vec(), b"b".to_vec()]),
            ),
        ] {
            let response = Response::new(413).content(Content::length("too much"));
            lab.upstream(pair.upstream)
                .script(Script::Answer(When::AtHead, response));
            let request = Request::new("POST", "/early").content(content);
            let mut client = Client::connect(pair.client, lab.gateway(pair.upstream)).await;
            let seen = begin(&mut client, &request).await;
            let result = equal("status", seen.status(), 413)
                .and_then(|()| equal("content", &*seen.content, b"too much"))
                .and_then(|()| equal("complete", seen.is_complete(), true));
            findings.note(pair, name, result);
            drop(client);
            lab.upstream(pair.upstream).take().await;
        }
    }
    findings
}

/// Sends all but the last piece of the content, and reads the response.
async fn begin(client: &mut Client, request: &Request) -> crate::Seen {
    match client {
        Client::Http1(wire) => {
            let bytes = h1::request(request);
            let without = if matches!(request.content, Content::Length(_)) {
                1
            } else {
                11
            };
            wire.send(&bytes[..bytes.len() - without]).await;
            h1::read_response(wire, false).await
        }
        Client::Http2(connection) => {
            let stream = connection.open();
            let mut frames = h2::request(request, stream);
            frames.pop();
            connection.send(&frames).await;
            connection.answer(stream).await
        }
        Client::Http3(connection) => {
            let bytes = h3::request(request);
            let mut pending = connection.open().await.expect("open");
            let _ = pending.send.write_all(&bytes[..bytes.len() - 3]).await;
            pending.send.flush();
            pending.answer().await
        }
    }
}

/// Responds twice to one request. No request receives the second response. Rules: 9112-051, 9112-084.
pub async fn answers_twice(lab: &mut Lab) -> Findings {
    // A stream of HTTP/2 has one final response.
    let pairs = || Pair::all().filter(|pair| pair.upstream == UpstreamVersion::Http1);
    let mut findings = Findings::over(pairs());
    for pair in pairs() {
        let first = h1::response(&Response::ok());
        let second = h1::response(&Response::new(200).content(Content::length("stolen")));
        for (name, steps) in [
            (
                "in one segment",
                vec![Step::Send([first.clone(), second.clone()].concat())],
            ),
            (
                "one after the other",
                vec![Step::Send(first), Step::Send(second)],
            ),
        ] {
            let request = Request::new("GET", "/twice");
            let script = Script::Raw(When::AtEnd, steps);
            let answered = lab.send(pair, script, &request).await;
            let mut result = equal("first", &*answered.answer.content, b"ok");
            for _ in 0..3 {
                let next = Request::new("GET", "/next");
                let answered = lab.send(pair, Script::answer(Response::ok()), &next).await;
                result = result.and_then(|()| equal("next", &*answered.answer.content, b"ok"));
            }
            findings.note(pair, name, result);
        }
    }
    findings
}

/// Sends bytes or frames that are no valid response, or nothing. The client receives 502 or 504. Rules: 9110-179, 9110-180,
/// 9112-033, 9112-043, 9112-050, 9113-049, 9110-069, 9110-075.
#[expect(clippy::too_many_lines, reason = "a table")]
pub async fn answers_that_never_come(lab: &mut Lab) -> Findings {
    const RAW: &[(&str, &[u8])] = &[
        ("nothing, then the end", b""),
        ("no HTTP", b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        (
            "a space before the colon",
            b"HTTP/1.1 200 OK\r\nx : 1\r\ncontent-length: 2\r\n\r\nok",
        ),
        (
            "no colon",
            b"HTTP/1.1 200 OK\r\nx\r\ncontent-length: 2\r\n\r\nok",
        ),
        (
            "an empty name",
            b"HTTP/1.1 200 OK\r\n: 1\r\ncontent-length: 2\r\n\r\nok",
        ),
        (
            "NUL in a value",
            b"HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 2\r\n\r\nok",
        ),
        (
            "a length that is none",
            b"HTTP/1.1 200 OK\r\ncontent-length: 2x\r\n\r\nok",
        ),
        (
            "two lengths",
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        ),
        (
            "a length above 64 bits",
            b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551618\r\n\r\nok",
        ),
        (
            "another coding",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nok",
        ),
        (
            "another coding before chunked",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        (
            "101 that nobody asked for",
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        ),
    ];
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        let request = Request::new("POST", "/never");
        match pair.upstream {
            UpstreamVersion::Http1 => {
                for (name, bytes) in RAW {
                    let steps = vec![Step::Send(bytes.to_vec()), Step::Close];
                    let script = Script::Raw(When::AtEnd, steps);
                    let answered = lab.send(pair, script, &request).await;
                    let result = equal("status", answered.answer.status(), 502);
                    findings.note(pair, name, result);
                }
            }
            UpstreamVersion::H2c => {
                for (name, frames) in malformed_frames() {
                    let script = Script::Frames(When::AtEnd, frames);
                    let answered = lab.send(pair, script, &request).await;
                    let result = equal("status", answered.answer.status(), 502);
                    findings.note(pair, name, result);
                }
            }
        }
        let answered = lab.send(pair, Script::Silence, &request).await;
        findings.note(
            pair,
            "silence",
            equal("status", answered.answer.status(), 504),
        );
        if pair.client == Version::Http1 {
            continue;
        }
        let healthy = Request::new("GET", "/after");
        let answered = lab
            .send(pair, Script::answer(Response::ok()), &healthy)
            .await;
        findings.note(
            pair,
            "the next",
            equal("status", answered.answer.status(), 200),
        );
    }
    findings
}

fn malformed_frames() -> Vec<(&'static str, Vec<h2::Frame>)> {
    let head = |fields: &[(&str, &str)]| {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| crate::field(name, value))
            .collect();
        h2::headers(1, &fields, true)
    };
    vec![
        ("no status", head(&[("x", "1")])),
        (
            "two statuses",
            head(&[(":status", "200"), (":status", "200")]),
        ),
        ("a status that is none", head(&[(":status", "2x0")])),
        (
            "a late pseudo-header field",
            head(&[("x", "1"), (":status", "200")]),
        ),
        ("upper case", head(&[(":status", "200"), ("X", "1")])),
        (
            "a field of a connection",
            head(&[(":status", "200"), ("transfer-encoding", "chunked")]),
        ),
        (
            "CR LF in a value",
            head(&[(":status", "200"), ("x", "a\r\nb: c")]),
        ),
        (
            "a length without content",
            head(&[(":status", "200"), ("content-length", "3")]),
        ),
        ("101", head(&[(":status", "101")])),
        ("a reset", vec![h2::Frame::reset(1, 2)]),
    ]
}
