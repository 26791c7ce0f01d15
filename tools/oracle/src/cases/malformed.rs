//! Malformed requests of HTTP/2 and HTTP/3: each is answered, and those beside it do not suffer.

use crate::lab::{Findings, Lab, Pair, Refusal, equal};
use crate::message::{Content, Request, Response, Version};
use crate::seen::End;
use crate::upstream::Script;

/// Sends malformed requests, each beside a healthy one on the same connection. Rules: 9113-052 to 9113-054 and
/// 9113-061.
pub async fn malformed(lab: &mut Lab) -> Findings {
    let pairs = || Pair::all().filter(|pair| pair.client != Version::Http1);
    let mut findings = Findings::over(pairs());
    for pair in pairs() {
        for (name, request) in requests() {
            let script = Script::answer(Response::ok());
            let answered = lab.send_beside(pair, script, &request).await;
            let result = answered
                .refusal()
                .and_then(|refusal| equal("answer", refusal, Refusal::Status(400)));
            findings.note(pair, name, result);
        }
        for (name, trailer) in [
            ("a pseudo-header field in trailers", ":path"),
            ("an unknown pseudo-header field in trailers", ":a"),
            ("upper case in trailers", "A"),
        ] {
            let request = Request::new("POST", "/trailers")
                .content(Content::unknown("abc"))
                .trailer(trailer, "/");
            let script = Script::answer(Response::ok());
            let answered = lab.send_beside(pair, script, &request).await;
            let is_answered = answered.answer.status() >= 400;
            let is_reset = matches!(answered.answer.end, End::Reset(_));
            let arrived = answered.upstream.iter().find(|seen| seen.is_complete());
            let result = match (is_reset || is_answered, arrived, &answered.neighbour) {
                (true, None, Some(beside)) => equal("beside it", beside.status(), 200),
                _ => Err(format!("was answered with:\n{}", answered.answer)),
            };
            findings.note(pair, name, result);
        }
    }
    findings
}

fn requests() -> Vec<(&'static str, Request)> {
    let get = || Request::new("GET", "/malformed");
    let without = |change: fn(&mut Request)| {
        let mut request = get();
        change(&mut request);
        request
    };
    vec![
        ("upper case in a name", get().with("X-A", "1")),
        ("an empty name", get().with("", "1")),
        ("a space in a name", get().with("x a", "1")),
        ("a colon in a name", get().with("x:a", "1")),
        ("a byte above 0x7f in a name", get().with(b"x\xe9", "1")),
        ("NUL in a name", get().with(b"x\0", "1")),
        ("NUL in a value", get().with("x", b"a\0b")),
        ("CR in a value", get().with("x", "a\rb")),
        ("LF in a value", get().with("x", "a\nb")),
        ("a space before a value", get().with("x", " a")),
        ("a tab after a value", get().with("x", "a\t")),
        ("connection", get().with("connection", "close")),
        ("keep-alive", get().with("keep-alive", "1")),
        ("proxy-connection", get().with("proxy-connection", "close")),
        (
            "transfer-encoding",
            get().with("transfer-encoding", "chunked"),
        ),
        ("upgrade", get().with("upgrade", "websocket")),
        ("te: gzip", get().with("te", "gzip")),
        ("content-length: x", get().with("content-length", "x")),
        ("an unknown pseudo-header field", get().with(":a", "1")),
        (":status", get().with(":status", "200")),
        (":path twice", get().with(":path", "/")),
        (":protocol of GET", get().with(":protocol", "websocket")),
        ("no :method", without(|it| it.control.method.clear())),
        ("no :scheme", without(|it| it.control.scheme.clear())),
        ("no :path", without(|it| it.control.path.clear())),
        (
            "a space in :method",
            without(|it| it.control.method = b"G T".to_vec()),
        ),
        (
            "a space in :scheme",
            without(|it| it.control.scheme = b"ht tp".to_vec()),
        ),
        (
            "a space in :path",
            without(|it| it.control.path = b"/a b".to_vec()),
        ),
        ("a space in :authority", get().authority("local host")),
        (
            "bytes that are no text in :authority",
            without(|it| it.control.authority = Some(b"a\xff".to_vec())),
        ),
    ]
}
