//! Tests of the order of frames, lengths and ends.

use super::*;

/// Returns a request and a response with these frames after HEADERS.
fn both(frames: &[Vec<u8>]) -> [Reading; 2] {
    [
        Reading::server(&[&[get()], frames].concat()),
        Reading::client(&[&[ok()], frames].concat()),
    ]
}

#[test]
fn whole_message_is_read() {
    let frames = [data(b"one"), data(b"two"), trailers()];
    let [request, response] = both(&frames);
    let rest = [Seen::Content(b"onetwo".to_vec()), Seen::Trailers(1)];
    let expected = [&[Seen::Request(Method::GET, None)], &rest[..]].concat();
    assert_eq!(request.read(), Ok(expected));
    let expected = [&[Seen::Response(StatusCode::OK, None)], &rest[..]].concat();
    assert_eq!(response.read(), Ok(expected));
}

/// RFC 9114 §4.1.
#[test]
fn refuses_frames_out_of_order() {
    for head in [get(), ok()] {
        for frames in [vec![data(b"x"), head], vec![data(b"")]] {
            assert_eq!(Reading::server(&frames).read(), Err(UNEXPECTED));
            assert_eq!(Reading::client(&frames).read(), Err(UNEXPECTED));
        }
    }
    for behind in [data(b"x"), data(b""), trailers(), get()] {
        for reading in both(&[trailers(), behind]) {
            assert_eq!(reading.read(), Err(UNEXPECTED), "{reading:?}");
        }
    }
}

/// RFC 9114 §4.1, §7.2.8, §9.
#[test]
fn unknown_frames_are_ignored() {
    let grease = frame(frame::reserved(9), b"g");
    let frames = [
        grease.clone(),
        get(),
        grease.clone(),
        data(b"x"),
        frame(0x4242, b""),
        trailers(),
        grease,
    ];
    let seen = Reading::server(&frames).read().expect("a message");
    let counted = seen.iter().filter(|seen| **seen == Seen::Counted).count();
    // Four frames, of which two do not count.
    assert_eq!((counted, seen.len()), (2, 5));
}

/// A81, K85.
#[test]
fn tiny_frames_are_counted_beyond_the_ordinary_ones() {
    let counted = |reading: &Reading| {
        let seen = reading.read_cut(usize::MAX).expect("a message");
        let content = seen.iter().map(|seen| match seen {
            Seen::Content(content) => content.len(),
            _ => 0,
        });
        let counted = seen.iter().filter(|seen| **seen == Seen::Counted).count();
        (counted, content.sum::<usize>())
    };
    let mut frames = vec![data(b"1234"); 300];
    let [request, response] = both(&frames);
    assert_eq!(counted(&request), (300 - 256, 4 * 300));
    // A response may be sent in many small frames.
    assert_eq!(counted(&response), (0, 4 * 300));

    // Other content offsets tiny frames: five bytes for each.
    frames.push(data(&[0; 50]));
    frames.extend(vec![data(b"1"); 11]);
    let [request, _] = both(&frames);
    assert_eq!(counted(&request), (44 + 1, 4 * 300 + 50 + 11));

    // An empty message of gRPC.
    let [request, _] = both(&vec![data(b"\0\0\0\0\0"); 300]);
    assert_eq!(counted(&request), (0, 5 * 300));
}

/// RFC 9412 §2, RFC 8336 §2.2: ORIGIN belongs on the control stream, and is ignored elsewhere.
#[test]
fn origin_frames_on_request_streams_are_ignored() {
    let origin = frame(0x0c, b"\0\x0dhttps://a.test");
    for reading in both(std::slice::from_ref(&origin)) {
        let without = both(&[]).map(|reading| reading.read());
        assert!(without.contains(&reading.read()));
    }
}

/// §7.2: CANCEL_PUSH, SETTINGS, GOAWAY, MAX_PUSH_ID, PRIORITY_UPDATE, and types of HTTP/2.
#[test]
fn refuses_frames_of_other_streams() {
    let types = [
        0x03, 0x04, 0x07, 0x0d, 0xf0700, 0xf0701, 0x02, 0x06, 0x08, 0x09,
    ];
    for value in types {
        let other = frame(value, b"\0");
        for reading in both(std::slice::from_ref(&other)) {
            assert_eq!(reading.read(), Err(UNEXPECTED), "{value:#x}");
        }
        let first = [other];
        assert_eq!(
            Reading::server(&first).read(),
            Err(UNEXPECTED),
            "{value:#x}"
        );
        assert_eq!(
            Reading::client(&first).read(),
            Err(UNEXPECTED),
            "{value:#x}"
        );
    }
}

/// RFC 9114 §7.2.5.
#[test]
fn refuses_promises() {
    let [request, response] = both(&[frame(frame::PUSH_PROMISE, b"\0x")]);
    assert_eq!(request.read(), Err(UNEXPECTED));
    assert_eq!(response.read(), Err((Code::ID_ERROR, Scope::Connection)));
}

/// RFC 9114 §4.1.
#[test]
fn refuses_a_stream_that_ends_too_early() {
    let grease = [frame(frame::reserved(1), b"g")];
    let interim = [response_with("103", &[])];
    assert_eq!(Reading::server(&[]).read(), Err(INCOMPLETE));
    assert_eq!(Reading::server(&grease).read(), Err(INCOMPLETE));
    assert_eq!(Reading::client(&[]).read(), Err(MALFORMED));
    assert_eq!(Reading::client(&grease).read(), Err(MALFORMED));
    assert_eq!(Reading::client(&interim).read(), Err(MALFORMED));
    // §7.1: the stream ends inside a frame, at each of its bytes.
    for whole in both(&[data(b"content"), trailers()]) {
        let behind = data(b"content").len() + trailers().len();
        let head = whole.bytes.len() - behind;
        let ends = [0, head, head + data(b"content").len()];
        for len in (0..whole.bytes.len()).filter(|len| !ends.contains(len)) {
            let mut cut = whole.clone();
            cut.bytes.truncate(len);
            let expected = Err((Code::FRAME_ERROR, Scope::Connection));
            assert_eq!(cut.read(), expected, "{len} bytes");
        }
    }
}

/// RFC 9114 §4.1.2.
#[test]
fn content_is_compared_with_its_length() {
    for (length, content, is_right) in [
        ("3", &["on", "e"][..], true),
        ("3", &["ones"], false),
        ("3", &["one", "s"], false),
        ("3", &["on"], false),
        ("3", &[], false),
        ("0", &[], true),
        ("0", &["x"], false),
    ] {
        let content: Vec<_> = content
            .iter()
            .map(|data| super::data(data.as_bytes()))
            .collect();
        let length = [("content-length", length)];
        let request = [&[request_with("POST", &length)], &content[..]].concat();
        let response = [&[response_with("200", &length)], &content[..]].concat();
        for reading in [Reading::server(&request), Reading::client(&response)] {
            let result = reading.read();
            assert!(
                if is_right {
                    result.is_ok()
                } else {
                    result == Err(MALFORMED)
                },
                "{length:?} {content:?}: {result:?}"
            );
        }
    }
}

/// RFC 9114 §4.4.
#[test]
fn only_data_may_follow_connect() {
    let connect = request_with("CONNECT", &[]);
    let client = |frames: &[Vec<u8>]| Reading::client(frames).to(Method::CONNECT);
    let grease = frame(frame::reserved(1), b"g");
    let tunnel = [data(b"x"), grease, data(b"y")];
    let server = Reading::server(&[std::slice::from_ref(&connect), &tunnel[..]].concat());
    assert!(server.read().is_ok());
    assert!(client(&[&[ok()], &tunnel[..]].concat()).read().is_ok());
    for behind in [trailers(), connect.clone(), ok()] {
        let server = Reading::server(&[connect.clone(), behind.clone()]);
        assert_eq!(server.read(), Err(UNEXPECTED));
        assert_eq!(client(&[ok(), behind]).read(), Err(UNEXPECTED));
    }
    // A response that refuses the CONNECT is an ordinary message.
    let refused = [response_with("502", &[]), data(b"x"), trailers()];
    assert!(client(&refused).read().is_ok());
}

/// RFC 9220 §3: only the stream of an ordinary CONNECT is a tunnel.
#[test]
fn trailers_may_follow_extended_connect() {
    let connect = headers(&[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/chat"),
    ]);
    let frames = [connect, data(b"x"), trailers()];
    assert!(Reading::server(&frames).read().is_ok());
}
