//! Tests of limits, errors and reserved values.

use std::time::Duration;

use super::*;

/// Counts how often a server accepts a step at one instant.
fn steps_until_error(mut step: impl FnMut(&mut Connection, u64) -> Result<(), Error>) -> usize {
    let mut server = begun(Side::Server);
    let accepted = (0..10_000)
        .take_while(|&n| step(&mut server, n).is_ok())
        .count();
    let error = step(&mut server, 10_000).expect_err("too many");
    assert_eq!(error.code, Code::EXCESSIVE_LOAD);
    accepted
}

/// RFC 9204 §6.
#[test]
fn qpack_errors_keep_their_codes() {
    let mut connection = begun(Side::Server);
    let error = connection
        .decode_request(0, b"\0\0\xff\x24")
        .expect_err("no such index");
    assert_eq!(error.code, Code::QPACK_DECOMPRESSION_FAILED);
    assert_eq!(
        uni(&mut connection, 6, &[0x02, 0x02], false),
        code(Code::QPACK_ENCODER_STREAM_ERROR)
    );
    assert_eq!(
        uni(&mut connection, 10, &[0x03, 0x00], false),
        code(Code::QPACK_DECODER_STREAM_ERROR)
    );
}

/// K17, A71: allowed frames are not allowed without a limit.
#[test]
fn useless_work_is_bounded() {
    for bytes in [
        frame(frame::reserved(7), b""),
        frame(frame::MAX_PUSH_ID, &[1]),
        frame(frame::GOAWAY, &[0]),
    ] {
        let step = |server: &mut Connection, _| {
            let fate = server.handle_uni(NOW, 2, Bytes::from(bytes.clone()), false);
            fate.map(|_| ())
        };
        assert_eq!(steps_until_error(step), 500);
    }
    assert_eq!(
        steps_until_error(|server, n| server.on_cancelled(NOW, 4 * n)),
        1300
    );
    assert_eq!(
        steps_until_error(|server, _| server.on_empty_frame(NOW)),
        500
    );
    let unknown = Bytes::from_static(&[0x40, 0x54]);
    let step = |server: &mut Connection, n| {
        let fate = server.handle_uni(NOW, 6 + 4 * n, unknown.clone(), true);
        fate.map(|_| ())
    };
    assert_eq!(steps_until_error(step), 500);
}

/// A87, RFC 9218 §10: updates for requests that are never sent are limited to the number of requests that may be
/// open, and then count as frames without progress.
#[test]
fn priorities_of_missing_requests_are_bounded() {
    let step = |server: &mut Connection, _| {
        let bytes = frame(frame::PRIORITY_UPDATE_REQUEST, b"\0u=1");
        let fate = server.handle_uni(NOW, 2, Bytes::from(bytes), false);
        fate.map(|_| ())
    };
    assert_eq!(steps_until_error(step), 256 + 500);
}

/// RFC 9218 §7: a page with any number of images.
#[test]
fn requests_may_change_their_priority_several_times() {
    let mut server = begun(Side::Server);
    for n in 0..20_000_u64 {
        server.set_request_limit(n + 1);
        server.on_request_opened(4 * n);
        for value in ["u=5", "u=2", "u=5,i", "u=1"] {
            let payload = [&integer(4 * n)[..], value.as_bytes()].concat();
            let bytes = frame(frame::PRIORITY_UPDATE_REQUEST, &payload);
            assert_eq!(control(&mut server, &bytes), Ok(UniFate::Read), "{n}");
        }
        assert!(!events(&mut server).is_empty());
    }
}

/// K270: a response offsets cancelled requests, and requests whose response has started do not count.
#[test]
fn requests_with_responses_may_be_cancelled() {
    let (_, mut server) = pair();
    let status = StatusCode::OK;
    let headers = HeaderMap::new();
    let mut open = 0;
    let mut next = || {
        open += 4;
        open
    };
    for _ in 0..10_000 {
        let answered = next();
        server.on_request_opened(answered);
        let fields = FieldsToSend::response(&status, &headers);
        server
            .encode(answered, &fields, &mut Vec::new())
            .expect("small");
        assert_eq!(server.on_given_up(NOW, answered), Ok(()));
        for _ in 0..4 {
            let stream = next();
            server.on_request_opened(stream);
            assert_eq!(server.admit_request(|| NOW), Ok(true));
            assert_eq!(server.on_cancelled(NOW, stream), Ok(()));
        }
    }
    // An interim response does not count as a response.
    let status = StatusCode::CONTINUE;
    let mut step = || {
        let stream = next();
        server.on_request_opened(stream);
        let fields = FieldsToSend::response(&status, &headers);
        server
            .encode(stream, &fields, &mut Vec::new())
            .expect("small");
        server.on_cancelled(NOW, stream)
    };
    assert_eq!((0..2000).take_while(|_| step().is_ok()).count(), 1300);
}

/// K270: the client may repeat rejected requests, and the budget recovers with time.
#[test]
fn requests_are_rejected_before_the_connection_ends() {
    let mut server = begun(Side::Server);
    let mut stream = 0;
    let mut request = |server: &mut Connection, now| {
        stream += 4;
        server.on_request_opened(stream);
        let admitted = server.admit_request(|| now)?;
        if admitted {
            server.on_cancelled(now, stream)?;
        }
        Ok::<_, Error>(admitted)
    };
    let served = (0..).take_while(|_| request(&mut server, NOW) == Ok(true));
    assert_eq!(served.count(), 1000);
    // 50 requests per second are always accepted, and more do not close the connection.
    let mut served = 0;
    for second in 1..1000 {
        let now = NOW + Duration::from_secs(second);
        for _ in 0..50 {
            served += usize::from(request(&mut server, now).expect("not at the end"));
        }
    }
    assert!(served > 48_000, "{served}");
    let rejected = (0..).take_while(|_| request(&mut server, NOW).is_ok());
    assert!(rejected.count() >= 250);
}

/// On a client each cancelled request is its own.
#[test]
fn server_may_reset_many_responses() {
    let mut client = begun(Side::Client);
    for n in 0..20_000 {
        assert_eq!(client.on_cancelled(NOW, 4 * n), Ok(()));
    }
}

/// RFC 9204 §7.3.
#[test]
fn decoder_instructions_are_bounded() {
    let mut server = begun(Side::Server);
    assert_eq!(
        uni(&mut server, 6, &[0x02, 0x3f, 0xe1, 0x1f], false),
        Ok(UniFate::Read)
    );
    let mut result = Ok(UniFate::Read);
    for n in 0..200_000 {
        server.forget(4 * (n + 1000));
        result = uni(&mut server, 6, &[0x41, b'k', 0], false);
        if result.is_err() {
            break;
        }
    }
    assert_eq!(result, code(Code::EXCESSIVE_LOAD));
}

/// RFC 9114 §7.2.4.1, §7.2.8, §8.1.
#[test]
fn reserved_values_are_sent_and_ignored() {
    let mut connection = connection(Side::Server);
    let bytes = std::mem::take(connection.outgoing(UniStream::Control));
    let (_, len, header) = frame::decode_header(&bytes[1..]).expect("SETTINGS");
    let mut settings = Reader::new(&bytes[1 + header..][..len as usize]);
    let mut has_grease = false;
    while let (Ok(id), Ok(_)) = (settings.varint(), settings.varint()) {
        has_grease |= id >= 0x21 && (id - 0x21).is_multiple_of(0x1f);
    }
    assert!(has_grease);
    let (value, _, _) = frame::decode_header(&bytes[1 + header + len as usize..]).expect("a frame");
    assert!((value - 0x21).is_multiple_of(0x1f));
    let codes: Vec<_> = (0..8)
        .map(|seed| {
            Connection::new(Side::Client, Config::new(Side::Client), seed, NOW).closing_code()
        })
        .collect();
    assert!(codes.contains(&Code::NO_ERROR) && codes.iter().any(|code| *code != Code::NO_ERROR));
    assert!(codes.iter().all(|code| code.is_no_error()));
}

/// RFC 9114 §8.
#[test]
fn unknown_codes_count_as_no_error() {
    assert!(Code::from_value(0x1234_5678).is_no_error());
    assert!(Code::reserved(99).is_no_error());
    assert!(!Code::REQUEST_REJECTED.is_no_error());
}

/// RFC 9204 §7.3: also if only requests cause them.
#[test]
fn decoder_instructions_of_requests_are_bounded() {
    let mut server = begun(Side::Server);
    let mut decoded = 0_u64;
    let error = loop {
        // Cancellations of this end take five bytes each from here on.
        server.forget(1 << 30);
        match server.decode_request(4 * decoded, b"\0\0") {
            Ok(_) => decoded += 1,
            Err(error) => break error,
        }
        assert!(decoded < 100_000, "{} bytes", server.memory());
    };
    assert_eq!(error.code, Code::EXCESSIVE_LOAD);
    assert!(server.outgoing(UniStream::Decoder).len() <= 64 * 1024 + 8);
}

/// A peer that acknowledges inserts that were never sent, so that the encoder may evict them.
#[test]
fn encoder_instructions_are_bounded() {
    let mut server = connection(Side::Server);
    let settings = Settings {
        qpack_max_table_capacity: 4096,
        qpack_blocked_streams: 16,
        ..Settings::default()
    };
    let mut bytes = vec![0x00];
    settings.encode(&mut bytes, &[], None);
    assert_eq!(control(&mut server, &bytes), Ok(UniFate::Read));
    assert_eq!(uni(&mut server, 6, &[0x03], false), Ok(UniFate::Read));
    for n in 0..3_000_u64 {
        let stream = (n % 30) as u8 * 4;
        let mut headers = HeaderMap::new();
        let value = format!("{:0100}", n / 2).parse().expect("a value");
        headers.insert("x-new", value);
        let status = StatusCode::OK;
        let fields = FieldsToSend::response(&status, &headers);
        server
            .encode(u64::from(stream), &fields, &mut Vec::new())
            .expect("small");
        // The peer claims to have read this. Without an insert there was nothing to acknowledge.
        let _ = uni(&mut server, 6, &[0x80 | stream], false);
    }
    let waiting = server.outgoing(UniStream::Encoder).len();
    assert!(waiting > 1000 && waiting <= 16 * 1024 + 1, "{waiting}");
}

#[test]
fn budget_recovers_with_time() {
    let mut server = begun(Side::Server);
    while server.on_empty_frame(NOW).is_ok() {}
    assert_eq!(server.on_empty_frame(NOW + Duration::from_secs(1)), Ok(()));
}

/// Returns a section of `len` bytes that needs an entry that is not in the table.
fn waiting(len: usize) -> Vec<u8> {
    let mut section = vec![0; len];
    section[0] = 2;
    section
}

fn decode(server: &mut Connection, stream: u64, len: usize) -> Result<bool, (Code, Scope)> {
    match server.decode_request(stream, &waiting(len)) {
        Ok(Section::Blocked) => Ok(true),
        Ok(Section::Decoded(_)) => Ok(false),
        Err(error) => Err((error.code, error.scope)),
    }
}

/// K25, A75, RFC 9204 §2.2.1: the limit of 1 MiB of blocked sections is exact.
#[test]
fn blocked_sections_are_bounded_in_bytes() {
    let mut server = begun(Side::Server);
    for n in 0..4 {
        assert_eq!(decode(&mut server, 4 * n, 256 * 1024), Ok(true));
        // Repeating the attempt does not count again.
        assert_eq!(decode(&mut server, 4 * n, 256 * 1024), Ok(true));
    }
    assert_eq!(server.blocked_bytes(), 1024 * 1024);
    let refused = Err((Code::EXCESSIVE_LOAD, Scope::Stream));
    assert_eq!(decode(&mut server, 16, 2), refused);
    assert_eq!(server.on_cancelled(NOW, 16), Ok(()));
    assert_eq!(server.blocked_bytes(), 1024 * 1024);
    server.forget(4);
    assert_eq!(decode(&mut server, 20, 256 * 1024), Ok(true));
    assert_eq!(decode(&mut server, 24, 2), refused);
    // As entries arrive, decoded sections free bytes.
    let entry = [&[0x02, 0x3f, 0xe1, 0x1f][..], &[0x41, b'k', 1, b'v']].concat();
    assert_eq!(uni(&mut server, 6, &entry, false), Ok(UniFate::Read));
    let decoded = server.decode_request(0, &[2, 0, 0x80]);
    assert!(matches!(decoded, Ok(Section::Decoded(_))), "{decoded:?}");
    assert_eq!(server.blocked_bytes(), 768 * 1024);
    for stream in [8, 12, 20] {
        server.forget(stream);
    }
    assert_eq!(server.blocked_bytes(), 0);
}

/// K25: at most 16 streams are blocked.
#[test]
fn blocked_streams_are_bounded_in_number() {
    let mut server = begun(Side::Server);
    for n in 0..16 {
        assert_eq!(decode(&mut server, 4 * n, 100), Ok(true));
    }
    assert_eq!(
        decode(&mut server, 64, 100),
        Err((Code::QPACK_DECOMPRESSION_FAILED, Scope::Connection))
    );
}

/// Resetting a request and stopping its response counts once.
#[test]
fn request_is_cancelled_once() {
    // Even if many others are cancelled in between.
    let distant = |server: &mut Connection, n: u64| {
        server.on_request_opened(4 * n);
        server.on_cancelled(NOW, 4 * n)?;
        server.on_given_up(NOW, 4 * n.saturating_sub(1000))
    };
    assert_eq!(steps_until_error(distant), 1300);
    // Streams that were never opened, or are no longer remembered, count each time.
    let unopened = |server: &mut Connection, n: u64| {
        server.on_given_up(NOW, 4 * n)?;
        server.on_given_up(NOW, 4 * n)
    };
    assert_eq!(steps_until_error(unopened), 650);
    let old = |server: &mut Connection, n: u64| {
        server.on_request_opened(4 * (n + 1024));
        server.on_given_up(NOW, 4 * n)
    };
    assert_eq!(steps_until_error(old), 1300);
}

/// A74, CVE-2026-12523: the decoded size counts.
#[test]
fn repeated_entry_counts_each_time() {
    let mut server = begun(Side::Server);
    // `k` with 4000 bytes takes 4033 bytes in the table.
    let mut entry = vec![0x02, 0x3f, 0xe1, 0x1f, 0x41, b'k', 0x7f, 0xa1, 0x1e];
    entry.resize(entry.len() + 4000, b'v');
    assert_eq!(uni(&mut server, 6, &entry, false), Ok(UniFate::Read));
    let bomb = |times: usize| {
        let mut section = vec![2, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
        section.resize(section.len() + times, 0x80);
        section
    };
    for times in [1, 16, 17, 1000, 18_000] {
        let result = server.decode_request(4, &bomb(times));
        let is_as_expected = match result {
            Ok(Section::Decoded(Ok(_))) => times <= 16,
            Ok(Section::Decoded(Err(FieldsError::TooLarge(_)))) => times > 16,
            _ => false,
        };
        assert!(is_as_expected, "{times} times");
        assert!(server.memory() < 4096 + 1000, "{} bytes", server.memory());
    }
}

/// A78: memory depends on the bytes of a frame that have arrived, not on its announced length.
#[test]
fn announced_lengths_reserve_no_memory() {
    for value in [
        frame::SETTINGS,
        frame::GOAWAY,
        frame::PRIORITY_UPDATE_REQUEST,
        0x4242,
    ] {
        let mut bytes = vec![0x00];
        if value != frame::SETTINGS {
            bytes.extend_from_slice(&frame(frame::SETTINGS, &[]));
        }
        frame::encode_header(&mut bytes, value, usize::MAX >> 3);
        let mut server = connection(Side::Server);
        server.outgoing(UniStream::Control).clear();
        let expected = match value {
            0x4242 => Ok(UniFate::Read),
            _ => code(Code::EXCESSIVE_LOAD),
        };
        assert_eq!(control(&mut server, &bytes), expected, "{value:#x}");
        assert!(server.memory() < 100, "{} bytes", server.memory());
    }
}

/// A77, K84: instructions require sections.
#[test]
fn instructions_without_sections_are_bounded() {
    let mut server = begun(Side::Server);
    assert_eq!(uni(&mut server, 6, &[0x02], false), Ok(UniFate::Read));
    assert_eq!(uni(&mut server, 6, &[0x20; 8192], false), Ok(UniFate::Read));
    // One section with an indexed field line allows 128 more.
    let _ = server.decode_request(0, &[0, 0, 0xd1]).expect("a section");
    assert_eq!(uni(&mut server, 6, &[0x20; 128], false), Ok(UniFate::Read));
    assert_eq!(
        uni(&mut server, 6, &[0x20], false),
        code(Code::EXCESSIVE_LOAD)
    );
}

/// A77, K84: cancellations require sections.
#[test]
fn cancellations_without_sections_are_bounded() {
    let mut server = begun(Side::Server);
    assert_eq!(uni(&mut server, 6, &[0x03], false), Ok(UniFate::Read));
    assert_eq!(uni(&mut server, 6, &[0x44; 8192], false), Ok(UniFate::Read));
    assert_eq!(
        uni(&mut server, 6, &[0x44], false),
        code(Code::EXCESSIVE_LOAD)
    );
}

/// A77: instructions without effect use no memory.
#[test]
fn instructions_without_effect_use_no_memory() {
    let mut server = begun(Side::Server);
    // Capacity changes, one entry, and duplicates of it.
    let begin = [0x02, 0x3f, 0xe1, 0x1f, 0x41, b'k', 1, b'v'];
    assert_eq!(uni(&mut server, 6, &begin, false), Ok(UniFate::Read));
    for _ in 0..2_000 {
        let flap = [0x3f, 0xe1, 0x1f, 0x00, 0x00];
        assert_eq!(uni(&mut server, 6, &flap, false), Ok(UniFate::Read));
        let _ = std::mem::take(server.outgoing(UniStream::Decoder));
        assert!(server.memory() < 4096 + 1000, "{} bytes", server.memory());
    }
    // An increment beyond the inserts is an error.
    assert_eq!(
        uni(&mut server, 10, &[0x03, 0x3f, 0x01], false),
        code(Code::QPACK_DECODER_STREAM_ERROR)
    );
}

proptest! {
    /// Any bytes on any stream cause a result, never a panic, and use bounded memory.
    #[test]
    fn survives_any_bytes(chunks in prop::collection::vec((0u64..4, any::<Vec<u8>>(), any::<bool>()), 0..12)) {
        for side in SIDES {
            let mut connection = begun(side);
            for (stream, bytes, fin) in &chunks {
                // After a connection error no more bytes are read.
                let chunk = Bytes::copy_from_slice(bytes);
                if connection.handle_uni(NOW, 2 + 4 * stream, chunk, *fin).is_err() {
                    break;
                }
                let _ = connection.handle_datagram(Bytes::copy_from_slice(bytes));
                let _ = connection.decode_request(4 * stream, bytes);
                let _ = connection.decode_response(4 * stream, bytes);
            }
            prop_assert!(connection.memory() < 200_000);
        }
    }
}
