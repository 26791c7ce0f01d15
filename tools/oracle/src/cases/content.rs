//! Content of each method with each framing.

use crate::lab::{Answered, Findings, Lab, Pair, equal};
use crate::message::{Content, Request, Response};
use crate::seen::Framing;
use crate::upstream::{Script, UpstreamVersion};

const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "QUERY", "X",
];

/// Sends each method with each kind of content. Rules: 9110-028, 9110-071, 9112-056, 9112-057, 9112-084, 9113-055.
pub async fn content(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    let pieces = || vec![b"one".to_vec(), b"two".to_vec()];
    let contents = [
        ("none", Content::None),
        ("length 0", Content::length("")),
        ("length", Content::Length(pieces())),
        ("unknown length", Content::Unknown(pieces())),
        ("unknown and empty", Content::Unknown(Vec::new())),
        (
            "a request inside",
            Content::unknown("\r\n\r\nGET /inside HTTP/1.1\r\nhost: x\r\n\r\n"),
        ),
    ];
    for pair in Pair::all() {
        for method in METHODS {
            for (name, content) in &contents {
                let request = Request::new(method, "/content")
                    .with("content-type", "text/plain")
                    .content(content.clone());
                let script = Script::answer(Response::ok());
                let answered = lab.send(pair, script, &request).await;
                let result = check(pair.upstream, &request, &answered);
                findings.note(pair, &format!("{method} with {name}"), result);
            }
        }
    }
    findings
}

fn check(upstream: UpstreamVersion, request: &Request, answered: &Answered) -> Result<(), String> {
    let seen = answered.forwarded()?;
    let method = String::from_utf8_lossy(&request.control.method);
    equal("start", &*seen.start, &*format!("{method} /content"))?;
    equal("content", seen.content.clone(), request.content.bytes())?;
    equal("end", seen.is_complete(), true)?;
    let is_known = matches!(request.content, Content::Length(_));
    let length = request.content.bytes().len();
    let is_framed = match (seen.framing, upstream) {
        (Framing::Length(told), _) => u64::try_from(length) == Ok(told),
        (Framing::None, UpstreamVersion::Http1) => length == 0,
        (Framing::None, UpstreamVersion::H2c) => !is_known || length == 0,
        // Over HTTP/2 and HTTP/3 the end of the stream may come later, so that nobody knew that there would be no content. A
        // server need not take chunks with GET or HEAD.
        (Framing::Chunked, _) if matches!(&*method, "GET" | "HEAD") => {
            request.content != Content::None && !is_known
        }
        (Framing::Chunked, _) => !is_known,
        (Framing::Close, _) => false,
    };
    equal(&format!("{:?} fits", seen.framing), is_framed, true)?;
    equal("status", answered.answer.status(), 200)?;
    equal("answer is complete", answered.answer.is_complete(), true)?;
    let expected: &[u8] = if method == "HEAD" { b"" } else { b"ok" };
    equal("answer", &*answered.answer.content, expected)
}
