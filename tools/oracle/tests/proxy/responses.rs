//! Responses of upstream servers (RFC 9110 §15, RFC 9112 §6).

use courser_oracle::{
    Client, Content, End, Ending, Framing, Request, Response, Script, Step, UpstreamVersion,
    Version, When, field, h1, h2,
};

use crate::scene::{Scene, each_pair};

/// Has an HTTP/1.1 server send these bytes and close.
fn raw(bytes: &str) -> Script {
    let steps = vec![Step::Send(bytes.as_bytes().to_vec()), Step::Close];
    Script::Raw(When::AtEnd, steps)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statuses_pass_unless_they_have_no_meaning() {
    each_pair(async |scene, version| {
        for status in [
            200, 226, 299, 300, 307, 400, 401, 407, 418, 421, 425, 451, 499, 500, 511, 599,
        ] {
            let response = Response::new(status).content(Content::length("ok"));
            let response = response
                .with("proxy-authenticate", "Basic realm=\"x\"")
                .with("x-a", "1");
            let answer = scene.answer(version, Script::answer(response)).await;
            assert_eq!(answer.status(), status, "{version}: {answer}");
            assert_eq!(answer.content, b"ok", "{version} {status}");
            assert_eq!(answer.get("x-a"), "1", "{version} {status}");
            // Without it, a 407 could not be answered.
            assert_eq!(answer.get("proxy-authenticate"), "Basic realm=\"x\"");
        }
        for status in [600, 799, 999] {
            let response = Response::new(status).content(Content::length("no"));
            let answer = scene.answer(version, Script::answer(response)).await;
            assert_eq!(answer.status(), 502, "{version} {status}: {answer}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_without_content_stay_without() {
    each_pair(async |scene, version| {
        for status in [204, 205, 304] {
            let answer = scene
                .answer(version, Script::answer(Response::new(status)))
                .await;
            assert_eq!(answer.status(), status, "{version}: {answer}");
            assert!(answer.is_complete(), "{version} {status}: {answer}");
            assert_eq!(answer.content, b"", "{version} {status}");
        }
        // An upstream server that sends content nevertheless.
        let wrong = Response::new(205)
            .content(Content::length("no"))
            .with("x-a", "1");
        let answer = scene.answer(version, Script::answer(wrong)).await;
        assert_eq!(answer.status(), 205, "{version}: {answer}");
        assert_eq!(
            (&*answer.content, answer.get("x-a")),
            (&b""[..], "1".into())
        );
        assert!(answer.is_complete(), "{version}: {answer}");
        assert_ne!(answer.framing, Framing::Length(2), "{version}: {answer}");
    })
    .await;
}

/// hyper decodes `chunked` and forgets the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfer_codings_are_not_forgotten() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    for version in Version::ALL {
        for (codings, is_forwarded) in [
            ("transfer-encoding: chunked\r\n", true),
            ("transfer-encoding: Chunked\r\n", true),
            ("transfer-encoding: chunked\r\ncontent-length: 9\r\n", true),
            ("transfer-encoding: gzip, chunked\r\n", false),
            (
                "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n",
                false,
            ),
            ("transfer-encoding: xchunked\r\n", false),
            ("transfer-encoding: gzip\r\n", false),
        ] {
            let bytes = format!("HTTP/1.1 200 OK\r\n{codings}\r\n2\r\nok\r\n0\r\n\r\n");
            let answer = scene.answer(version, raw(&bytes)).await;
            if is_forwarded {
                assert_eq!(answer.status(), 200, "{version} {codings}: {answer}");
                assert_eq!(answer.content, b"ok", "{version} {codings}");
            } else {
                assert_eq!(answer.status(), 502, "{version} {codings}: {answer}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lengths_of_responses_leave_as_one() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    for version in Version::ALL {
        for (lengths, status) in [
            ("content-length: 2\r\ncontent-length: 2\r\n", 200),
            ("content-length: 2\r\ncontent-length: 3\r\n", 502),
            ("content-length: 99999999999999999999\r\n", 502),
            ("content-length: -1\r\n", 502),
        ] {
            let bytes = format!("HTTP/1.1 200 OK\r\n{lengths}\r\nok");
            let answer = scene.answer(version, raw(&bytes)).await;
            assert_eq!(answer.status(), status, "{version} {lengths}: {answer}");
            if status == 200 {
                assert_eq!(answer.framing, Framing::Length(2), "{version}: {answer}");
                assert_eq!(answer.content, b"ok", "{version}");
            }
        }
    }
}

/// RFC 9110 §6.1, RFC 9112 §8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_that_end_early_are_not_complete_for_the_client() {
    each_pair(async |scene, version| {
        for content in [Content::length("abc"), Content::unknown("abc")] {
            for ending in [Ending::Cut, Ending::Reset] {
                let response = Response::new(200).content(content.clone()).ending(ending);
                let answer = scene.answer(version, Script::answer(response)).await;
                let case = format!(
                    "{version} {} {content:?} {ending:?}",
                    scene.upstream.version
                );
                let is_refused = answer.status() == 502;
                assert!(is_refused || !answer.is_complete(), "{case}: {answer}");
            }
        }
    })
    .await;
}

/// RFC 9113 §7, §8.1: an error code concerns one hop. NO_ERROR would tell the client that the response is complete,
/// and REFUSED_STREAM that it may repeat the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_of_the_upstream_server_do_not_reach_the_client() {
    let scene = Scene::start(UpstreamVersion::H2c).await;
    const INTERNAL_ERROR: u64 = 2;
    const H3_INTERNAL_ERROR: u64 = 0x102;
    for code in [0, 1, 7, 8, 11, 13] {
        for version in [Version::Http2, Version::Http3] {
            let mut frames = h2::headers(1, &[field(":status", "200")], false);
            frames.push(h2::Frame::new(h2::DATA, 0, 1, *b"half"));
            frames.push(h2::Frame::reset(1, code));
            let answer = scene.answer(version, Script::Frames(When::AtEnd, frames));
            let answer = answer.await;
            let expected = match version {
                Version::Http2 => INTERNAL_ERROR,
                _ => H3_INTERNAL_ERROR,
            };
            assert_eq!(
                answer.end,
                End::Reset(expected),
                "{version} {code}: {answer}"
            );
        }
    }
}

/// RFC 9112 §4: reason phrases are those of the upstream server, or empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reason_phrases_are_not_made_up() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    for (sent, received) in [
        ("299 Odd phrase", "299 Odd phrase"),
        ("299 ", "299 "),
        ("299", "299 "),
        ("404 Nothing here", "404 Nothing here"),
        ("404 Not Found", "404 Not Found"),
    ] {
        scene.upstream.script(raw(&format!(
            "HTTP/1.1 {sent}\r\ncontent-length: 0\r\n\r\n"
        )));
        let mut client = scene.client(Version::Http1).await;
        let Client::Http1(wire) = &mut client else {
            unreachable!("the version is HTTP/1.1");
        };
        wire.send(&h1::request(&Request::new("GET", "/"))).await;
        let line = wire.take_until(b"\r\n").await.expect("a status line");
        let line = String::from_utf8(line).expect("text");
        assert_eq!(line, format!("HTTP/1.1 {received}\r\n"), "for {sent:?}");
    }
    let scene = Scene::start(UpstreamVersion::H2c).await;
    let unknown = scene
        .answer(Version::Http1, Script::answer(Response::new(299)))
        .await;
    assert_eq!(unknown.status(), 299, "{unknown}");
}

/// RFC 9110 §9.3.2: those of the upstream server and those that the proxy makes itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_to_head_have_no_content() {
    each_pair(async |scene, version| {
        let head = Request::new("HEAD", "/");
        for (script, status, length) in [
            (
                Script::answer(Response::new(200).with("content-length", "7")),
                200,
                Some(7),
            ),
            // The length that GET would have is unknown (RFC 9110 §8.6).
            (Script::answer(Response::new(200)), 200, None),
            (Script::answer(Response::new(999)), 502, None),
        ] {
            scene.upstream.script(script);
            let (answer, _) = scene.exchange(version, &head).await;
            assert_eq!(answer.status(), status, "{version}: {answer}");
            assert!(answer.is_complete(), "{version}: {answer}");
            assert_eq!(answer.content, b"", "{version}");
            // Over HTTP/1.1 the scripted server adds a length, and 502 has the one of its text.
            if scene.upstream.version == UpstreamVersion::H2c && status == 200 {
                let framing = length.map(Framing::Length);
                let is_known = matches!(answer.framing, Framing::Length(_));
                assert_eq!(is_known, length.is_some(), "{version}: {answer}");
                assert!(
                    framing.is_none_or(|it| it == answer.framing),
                    "{version}: {answer}"
                );
            }
        }
        // The connection is still in step.
        let mut client = scene.client(version).await;
        for _ in 0..2 {
            let answer = client.exchange(&head).await;
            assert_eq!(
                (answer.status(), answer.is_complete()),
                (502, true),
                "{version}: {answer}"
            );
        }
    })
    .await;
}

/// Fields of a response that HTTP/1.1 permits in no form that a proxy may pass on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_responses_are_502_or_mended() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    for version in Version::ALL {
        for lines in [
            "x-a : 1\r\n",
            "x-a: 1\r\n folded\r\n",
            "x a: 1\r\n",
            "x\"a: 1\r\n",
            ": 1\r\n",
        ] {
            let bytes = format!("HTTP/1.1 200 OK\r\n{lines}content-length: 2\r\n\r\nok");
            let answer = scene.answer(version, raw(&bytes)).await;
            assert_eq!(answer.status(), 502, "{version} {lines:?}: {answer}");
        }
        for bytes in [
            "",
            "HTTP/1.1\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "SSH-2.0-x\r\n",
            "\0\0\0",
        ] {
            let answer = scene.answer(version, raw(bytes)).await;
            assert_eq!(answer.status(), 502, "{version} {bytes:?}: {answer}");
        }
    }
}

/// Bytes that follow a response belong to no other request (RFC 9112 §6.3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn surplus_bytes_reach_nobody() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    let two = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok\
        HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let steps = vec![Step::Send(two.as_bytes().to_vec())];
    scene.upstream.script(Script::Raw(When::AtEnd, steps));
    for version in Version::ALL {
        let mut client = scene.client(version).await;
        for _ in 0..3 {
            let answer = client
                .exchange(&courser_oracle::Request::new("GET", "/"))
                .await;
            assert_eq!(answer.content, b"ok", "{version}: {answer}");
        }
    }
}

/// RFC 9110 §15.2: 103 and 101 of an HTTP/2 server, which may not send the latter (RFC 9113 §8.6).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switching_protocols_without_a_request_is_refused() {
    each_pair(async |scene, version| {
        let response = Response::new(101).with("upgrade", "websocket");
        let response = match scene.upstream.version {
            UpstreamVersion::Http1 => response.with("connection", "upgrade"),
            UpstreamVersion::H2c => response,
        };
        let answer = scene.answer(version, Script::answer(response)).await;
        assert_eq!(
            answer.status(),
            502,
            "{version} {}: {answer}",
            scene.upstream.version
        );
    })
    .await;
}
