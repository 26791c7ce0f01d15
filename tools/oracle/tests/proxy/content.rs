//! The framing of content (RFC 9110 §6.4, §8.6).

use std::time::Duration;

use courser_oracle::{
    Content, Ending, Framing, Request, Response, Script, UpstreamVersion, Version, field,
};

use crate::scene::{Scene, each_pair};

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "X-OTHER",
];

/// All methods with no content, with a length, without one, and empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_forwarded_whatever_the_method() {
    each_pair(async |scene, version| {
        for method in METHODS {
            for content in [
                Content::None,
                Content::length(""),
                Content::length("abc"),
                Content::Length(vec![b"ab".to_vec(), b"cd".to_vec()]),
                Content::unknown("abc"),
                Content::Unknown(vec![b"ab".to_vec(), b"".to_vec(), b"cd".to_vec()]),
                Content::Unknown(Vec::new()),
            ] {
                let request = Request::new(method, "/").content(content.clone());
                let (_, mut seen) = scene.exchange(version, &request).await;
                let case = format!("{version} {} {method} {content:?}", scene.upstream.version);
                assert_eq!(seen.len(), 1, "{case}");
                let seen = seen.remove(0);
                assert!(seen.is_complete(), "{case}: {seen}");
                assert_eq!(seen.content, content.bytes(), "{case}: {seen}");
                let length = content.bytes().len() as u64;
                let is_http1 = scene.upstream.version == UpstreamVersion::Http1;
                let expected: &[Framing] = match content {
                    Content::Length(_) => &[Framing::Length(length)],
                    Content::None => &[Framing::None, Framing::Length(0)],
                    // Where none is likely, empty content of unknown length is none.
                    Content::Unknown(_) if length == 0 => {
                        &[Framing::None, Framing::Length(0), Framing::Chunked]
                    }
                    Content::Unknown(_) if is_http1 => &[Framing::Chunked],
                    Content::Unknown(_) => &[Framing::None],
                };
                assert!(
                    expected.contains(&seen.framing),
                    "{case}: {:?}",
                    seen.framing
                );
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_are_forwarded_behind_content_of_unknown_length() {
    each_pair(async |scene, version| {
        for method in METHODS {
            let request = Request::new(method, "/")
                .with("te", "trailers")
                .with("trailer", "x-sum")
                .content(Content::unknown("abc"))
                .trailer("x-sum", "42");
            let request = match version {
                Version::Http1 => request.with("connection", "te"),
                _ => request,
            };
            let (_, seen) = scene.exchange(version, &request).await;
            let case = format!("{version} {} {method}: {}", scene.upstream.version, seen[0]);
            assert_eq!(seen[0].content, b"abc", "{case}");
            let trailers = [(b"x-sum".to_vec(), b"42".to_vec())];
            assert_eq!(seen[0].trailers, trailers, "{case}");
            assert!(seen[0].is_complete(), "{case}");
        }
    })
    .await;
}

/// RFC 9110 §6.5.1, §10.1.4: over HTTP/1.1 a client that does not ask for trailers gets none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_of_responses_are_sent_to_clients_that_take_them() {
    each_pair(async |scene, version| {
        let response = Response::new(200)
            .with("trailer", "x-sum")
            .content(Content::unknown("abc"))
            .trailer("x-sum", "42");
        scene.upstream.script(Script::answer(response));
        let without = Request::new("GET", "/");
        let with = without.clone().with("te", "trailers");
        let with = match version {
            Version::Http1 => with.with("connection", "te"),
            _ => with,
        };
        for (request, is_asked) in [(without, version != Version::Http1), (with, true)] {
            let (answer, _) = scene.exchange(version, &request).await;
            assert!(answer.is_complete(), "{version}: {answer}");
            assert_eq!(answer.content, b"abc", "{version}: {answer}");
            let expected = [field("x-sum", "42")];
            let expected = if is_asked { &expected[..] } else { &[] };
            assert_eq!(answer.trailers, expected, "{version}: {answer}");
        }
    })
    .await;
}

/// RFC 9110 §10.1.1: the proxy answers the expectation itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expectations_end_at_the_proxy() {
    each_pair(async |scene, version| {
        let request = Request::new("PUT", "/")
            .with("expect", "100-continue")
            .content(Content::length("abc"));
        let (answer, seen) = scene.exchange(version, &request).await;
        assert_eq!(answer.status(), 200, "{version}: {answer}");
        let interim: Vec<_> = answer.interim.iter().map(|it| &*it.0).collect();
        assert_eq!(interim, ["100"], "{version}: {answer}");
        assert_eq!(seen[0].get("expect"), "", "{version}: {}", seen[0]);
        assert_eq!(seen[0].content, b"abc", "{version}: {}", seen[0]);
    })
    .await;
}

/// RFC 9110 §8.6: either one value, or an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_lengths_leave_as_one_and_others_not_at_all() {
    each_pair(async |scene, version| {
        for (lengths, is_valid) in [
            (&["3", "3"][..], true),
            (&["3, 3"], true),
            (&["3", "4"], false),
            (&["4", "3"], false),
            (&["3, 4"], false),
            (&["+3"], false),
            (&["18446744073709551619"], false),
        ] {
            let mut request = Request::new("POST", "/");
            for length in lengths {
                request = request.with("content-length", length);
            }
            // The content is written after the header section, without a framing field of its own.
            request.content = Content::Length(vec![b"abc".to_vec()]);
            let request = match version {
                // The first of them is already there.
                _ if is_valid => request,
                _ => Request {
                    content: Content::None,
                    ..request
                },
            };
            let (answer, seen) = scene.exchange(version, &request).await;
            let case = format!("{version} {} {lengths:?}", scene.upstream.version);
            let forwarded: Vec<_> = seen.iter().filter(|it| it.is_complete()).collect();
            match &forwarded[..] {
                [] => assert_ne!(answer.status(), 200, "{case}: {answer}"),
                [one] => {
                    assert!(is_valid, "{case}: {one}");
                    assert_eq!(one.framing, Framing::Length(3), "{case}");
                    assert_eq!(one.content, b"abc", "{case}");
                }
                _ => panic!("{case}: {forwarded:?}"),
            }
        }
    })
    .await;
}

/// A request that is cut is never forwarded as a complete one (RFC 9110 §6.1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_requests_stay_incomplete() {
    each_pair(async |scene, version| {
        for content in [Content::length("abc"), Content::unknown("abc")] {
            for ending in [Ending::Cut, Ending::Reset] {
                let is_complete_stream = match version {
                    Version::Http1 => false,
                    // The end of the stream is that of the message, unless a length says otherwise.
                    Version::Http2 | Version::Http3 => {
                        ending == Ending::Cut && content == Content::unknown("abc")
                    }
                };
                if is_complete_stream {
                    continue;
                }
                let cut = Request::new("PUT", "/cut")
                    .content(content.clone())
                    .ending(ending);
                let mut client = scene.client(version).await;
                // A client that has reset its stream gets no response.
                let answer = client.exchange(&cut);
                let _ = tokio::time::timeout(Duration::from_millis(200), answer).await;
                drop(client);
            }
        }
        // It arrives after all others that arrive.
        let whole = Request::new("PUT", "/whole").content(Content::length("abc"));
        let (answer, seen) = scene.exchange(version, &whole).await;
        assert_eq!(answer.status(), 200, "{version}: {answer}");
        for seen in seen {
            let is_whole = seen.start == "PUT /whole";
            assert_eq!(seen.is_complete(), is_whole, "{version}: {seen}");
        }
    })
    .await;
}

/// The same request gives the same text upstream in all versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_all_versions_mean_the_same() {
    for upstream in UpstreamVersion::ALL {
        let scene = Scene::start(upstream).await;
        for request in [
            Request::new("GET", "/a?b=%20&c=\u{e9}")
                .with("accept", "*/*")
                .with("x-a", "1"),
            Request::new("POST", "/")
                .content(Content::length("abc"))
                .with("x-a", "1"),
            Request::new("POST", "/").content(Content::unknown("abc")),
            Request::new("GET", "/").content(Content::unknown("abc")),
            Request::new("DELETE", "/"),
            Request::new("POST", "/"),
            Request::new("GET", "/")
                .with("x-a", "1")
                .with("x-b", "2")
                .with("x-a", "3"),
            Request::new("GET", "/").with("cookie", "a=1; b=2"),
            Request::new("GET", "/").with("x-empty", ""),
            Request::new("GET", "/").with("x-bytes", b"\xff\x80"),
        ] {
            let mut texts = Vec::new();
            for version in Version::ALL {
                let seen = scene.forward(version, &request).await;
                texts.push(seen.without(|name| name == "via").to_string());
            }
            assert_eq!(texts[0], texts[1], "HTTP/1.1 and HTTP/2: {request:?}");
            assert_eq!(texts[1], texts[2], "HTTP/2 and HTTP/3: {request:?}");
        }
    }
}
