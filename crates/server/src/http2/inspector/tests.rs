use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `GET https://localhost/`, without entries of the dynamic table.
const REQUEST: &[u8] = b"\x82\x87\x84\x01\x09localhost";

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

fn inspector() -> Inspector {
    Inspector::new(Marks::default(), 65_536)
}

/// Reads pieces of a connection and returns what h2 gets.
fn read<'a>(inspector: &mut Inspector, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        let mut output = Vec::new();
        match inspector.read(piece, &mut output) {
            Passed::Received(len) => out.extend_from_slice(&piece[..len]),
            Passed::Output => out.extend_from_slice(&output),
        }
    }
    out
}

fn with_field(line: &[u8]) -> Vec<u8> {
    [REQUEST, line].concat()
}

#[test]
fn valid_frames_pass_unchanged_wherever_they_are_split() {
    let priority = [&[0, 0, 0, 0, 15][..], REQUEST].concat();
    let padded = [&[3][..], REQUEST, &[0; 3]].concat();
    let sent = [
        PREFACE,
        &frame(4, 0, 0, &[]),
        &frame(HEADERS, END_HEADERS, 1, REQUEST),
        &frame(0, 0, 1, b"content"),
        &frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x00\x01x\x011"),
        &frame(HEADERS, END_HEADERS | PRIORITY, 3, &priority),
        &frame(HEADERS, END_HEADERS | PADDED, 5, &padded),
        &frame(HEADERS, 0, 7, &REQUEST[..5]),
        &frame(CONTINUATION, 0, 7, &REQUEST[5..7]),
        &frame(CONTINUATION, END_HEADERS, 7, &REQUEST[7..]),
        &frame(0, 1, 7, b"content"),
    ]
    .concat();
    for piece in 1..=sent.len() {
        let mut inspector = inspector();
        let passed = read(&mut inspector, sent.chunks(piece));
        assert_eq!(passed, sent, "pieces of {piece}");
        assert!(inspector.held.is_empty() && !inspector.is_over());
    }
}

#[test]
fn malformed_requests_become_marked_ones_wherever_they_are_split() {
    let bad = with_field(b"\x40\x01X\x011");
    let sent = [
        PREFACE,
        &frame(HEADERS, END_HEADERS, 1, REQUEST),
        &frame(HEADERS, 0, 3, &bad[..4]),
        &frame(CONTINUATION, END_HEADERS, 3, &bad[4..]),
        &frame(0, 1, 3, b"content"),
        &frame(HEADERS, END_HEADERS | END_STREAM, 5, REQUEST),
    ]
    .concat();
    let marks = Marks::default();
    let (name, mark) = marks
        .field(&crate::exchange::marks::Mark::Malformed(
            crate::cause::Cause::InvalidField,
        ))
        .expect("random numbers");
    let mut changed = b"\x82\x87\x84\x40\x01x\x01x\x00".to_vec();
    crate::http2::hpack::put_string(&mut changed, name.as_bytes());
    crate::http2::hpack::put_string(&mut changed, &mark);
    let expected = [
        PREFACE,
        &frame(HEADERS, END_HEADERS, 1, REQUEST),
        &frame(HEADERS, END_HEADERS, 3, &changed),
        &frame(0, 1, 3, b"content"),
        &frame(HEADERS, END_HEADERS | END_STREAM, 5, REQUEST),
    ]
    .concat();
    for piece in 1..=sent.len() {
        let mut inspector = Inspector::new(marks.clone(), 65_536);
        assert_eq!(
            read(&mut inspector, sent.chunks(piece)),
            expected,
            "pieces of {piece}"
        );
        assert_eq!(inspector.take_malformed().collect::<Vec<_>>(), [3]);
    }
}

#[test]
fn changed_blocks_that_are_longer_than_a_frame_are_continued() {
    let path = [b"/?", &[b'"'; 10_000][..]].concat();
    let mut block = b"\x82\x87\x01\x09localhost\x04".to_vec();
    crate::http2::hpack::put_string(&mut block, &path);
    let sent = [
        PREFACE,
        &frame(HEADERS, END_HEADERS | END_STREAM, 1, &block),
    ]
    .concat();
    let passed = read(&mut inspector(), [&sent[..]]);
    let mut rest = &passed[PREFACE.len()..];
    let mut frames = Vec::new();
    while let Some(header) = FrameHeader::read(rest) {
        frames.push((header.kind, header.flags, header.stream));
        assert!(header.len <= MAX_FRAME);
        rest = &rest[HEADER_LEN + header.len..];
    }
    let continued = (CONTINUATION, END_HEADERS, 1);
    assert_eq!(
        frames,
        [(HEADERS, END_STREAM, 1), (CONTINUATION, 0, 1), continued]
    );
}

/// h2 resets the stream for them, with PROTOCOL_ERROR if the request has not ended before, and with STREAM_CLOSED
/// otherwise.
#[test]
fn malformed_trailers_are_not_the_end_of_a_request() {
    const ENDED: u8 = END_HEADERS | END_STREAM;
    const DATA: u8 = 0;
    for (before, flags) in [
        (vec![frame(HEADERS, END_HEADERS, 3, REQUEST)], END_HEADERS),
        (vec![frame(HEADERS, ENDED, 3, REQUEST)], ENDED),
        (
            vec![
                frame(HEADERS, END_HEADERS, 3, REQUEST),
                frame(DATA, END_STREAM, 3, b"content"),
            ],
            ENDED,
        ),
    ] {
        let before = [PREFACE, &before.concat()].concat();
        let sent = [&before[..], &frame(HEADERS, ENDED, 3, REQUEST)].concat();
        let passed = read(&mut inspector(), [&sent[..]]);
        assert_eq!(
            passed,
            [&before[..], &frame(HEADERS, flags, 3, &[])].concat()
        );
    }
}

/// Limit K412.
#[test]
fn streams_that_do_not_end_are_counted() {
    let mut unended = Unended::default();
    for stream in 0..2 * MAX_UNENDED {
        unended.add(2 * stream as u32 + 1, Content::Body);
    }
    assert_eq!(unended.streams.len(), MAX_UNENDED);
    assert!(unended.contains(1_000_001), "it may be one of them");
}

/// Fault F180: hyper would take some resets for the end of what was cut off.
#[test]
fn resets_of_requests_that_have_not_ended_are_no_ends() {
    let connect = b"\x42\x07CONNECT\x01\x0bproxy.a:443";
    let begin = [
        PREFACE,
        &frame(HEADERS, END_HEADERS, 1, REQUEST),
        &frame(HEADERS, END_HEADERS, 3, connect),
        &frame(HEADERS, END_HEADERS | END_STREAM, 5, REQUEST),
    ]
    .concat();
    let reset = |stream, code: u32| frame(RST_STREAM, 0, stream, &code.to_be_bytes());
    for (stream, code, expected) in [
        (1, NO_ERROR, CANCEL),
        (1, CANCEL, CANCEL),
        (1, 2, 2),
        (3, NO_ERROR, CONNECT_ERROR),
        (3, CANCEL, CONNECT_ERROR),
        (3, 2, 2),
        // It has ended, so that nothing is cut off.
        (5, NO_ERROR, NO_ERROR),
        (5, CANCEL, CANCEL),
        (7, CANCEL, CANCEL),
    ] {
        // The second one is for a stream that is no longer known.
        let sent = [&begin[..], &reset(stream, code), &reset(stream, code)].concat();
        let expected = [&begin[..], &reset(stream, expected), &reset(stream, code)].concat();
        for piece in 1..=sent.len() {
            let passed = read(&mut inspector(), sent.chunks(piece));
            assert_eq!(passed, expected, "{stream} {code}, pieces of {piece}");
        }
    }
    // A wrong length is for h2 to judge.
    let sent = [&begin[..], &frame(RST_STREAM, 0, 3, &[0; 3])].concat();
    assert_eq!(read(&mut inspector(), [&sent[..]]), sent);
}

/// h2 does not decode such a block, after which it would not know what later ones refer to.
#[test]
fn requests_that_depend_on_themselves_are_malformed() {
    let block = [&[0x80, 0, 0, 1, 15][..], REQUEST].concat();
    let sent = [PREFACE, &frame(HEADERS, END_HEADERS | PRIORITY, 1, &block)].concat();
    let mut inspector = inspector();
    let passed = read(&mut inspector, [&sent[..]]);
    assert_eq!(passed[PREFACE.len() + 4], END_HEADERS, "without a priority");
    assert_eq!(inspector.take_malformed().collect::<Vec<_>>(), [1]);
}

#[test]
fn errors_of_the_connection_pass_and_end_it() {
    let many: Vec<u8> = (0..6)
        .flat_map(|_| frame(CONTINUATION, 0, 1, b"\x82"))
        .collect();
    for frames in [
        frame(HEADERS, END_HEADERS | PADDED, 1, &[5, 0x82]),
        frame(HEADERS, END_HEADERS | PADDED, 1, &[]),
        frame(HEADERS, END_HEADERS | PRIORITY, 1, &[0; 4]),
        frame(HEADERS, END_HEADERS, 1, &[0; MAX_FRAME + 1]),
        frame(HEADERS, END_HEADERS, 1, &[0xff, 0xff]),
        [frame(HEADERS, 0, 1, REQUEST), frame(0, 0, 1, b"x")].concat(),
        [
            frame(HEADERS, 0, 1, REQUEST),
            frame(CONTINUATION, 4, 3, b"x"),
        ]
        .concat(),
        [frame(HEADERS, 0, 1, b""), many].concat(),
    ] {
        let sent = [PREFACE, &frames].concat();
        let mut inspector = inspector();
        let passed = read(&mut inspector, sent.chunks(7));
        assert!(inspector.is_over());
        assert_eq!(passed, sent);
    }
}

/// Limit K409.
#[test]
fn held_blocks_are_bounded() {
    let mut inspector = inspector();
    let mut held = 0;
    let first = [PREFACE, &frame(HEADERS, 0, 1, &[0; MAX_FRAME])].concat();
    read(&mut inspector, [&first[..]]);
    let next = frame(CONTINUATION, 0, 1, &[0; MAX_FRAME]);
    while !inspector.is_over() {
        held = held.max(inspector.held.len());
        read(&mut inspector, [&next[..]]);
    }
    assert_eq!(held, 6 * (HEADER_LEN + MAX_FRAME));
    assert!(inspector.held.is_empty());
}
