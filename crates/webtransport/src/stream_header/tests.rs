use super::*;

fn id(number: u64) -> SessionId {
    SessionId::new(number).expect("a session ID")
}

fn read(mut reader: StreamHeaderReader, bytes: &[u8], size: usize) -> Result<HeaderStep, Error> {
    let mut pieces = bytes.chunks(size);
    let mut last = HeaderStep::Incomplete;
    while let Some(piece) = pieces.next() {
        last = reader.read(Bytes::copy_from_slice(piece))?;
        if let HeaderStep::Complete { session, len, rest } = last {
            let mut whole = rest.to_vec();
            pieces.for_each(|piece| whole.extend_from_slice(piece));
            return Ok(complete(session, len, whole.into()));
        }
    }
    Ok(last)
}

/// draft-ietf-webtrans-http3-16 §4.2, §4.3; WT-h3-054, WT-h3-057.
#[test]
fn streams_begin_with_their_type_and_the_session() {
    let uni = StreamHeader::new(Direction::Unidirectional, id(0));
    assert_eq!(uni.as_ref(), [0x40, 0x54, 0]);
    let bidi = StreamHeader::new(Direction::Bidirectional, id(256));
    assert_eq!(bidi.as_ref(), [0x40, 0x41, 0x41, 0x00]);
    let longest = StreamHeader::new(Direction::Bidirectional, id((1 << 62) - 4));
    assert_eq!((longest.len(), longest.is_empty()), (LONGEST, false));
}

#[test]
fn headers_are_read_wherever_they_are_cut() {
    for direction in [Direction::Unidirectional, Direction::Bidirectional] {
        for number in [0, 4, 64, 0x3ffc, 0x4000, 1 << 30, (1 << 62) - 4] {
            let header = StreamHeader::new(direction, id(number));
            let mut bytes = header.as_ref().to_vec();
            bytes.extend_from_slice(b"body");
            for size in 1..=bytes.len() {
                let step = read(StreamHeaderReader::whole(direction), &bytes, size);
                let expected = complete(id(number), header.len(), Bytes::from_static(b"body"));
                assert_eq!(step, Ok(expected.clone()), "{number} in pieces of {size}");
                let step = read(StreamHeaderReader::after_type(), &bytes[2..], size);
                let expected = complete(id(number), header.len() - 2, Bytes::from_static(b"body"));
                assert_eq!(step, Ok(expected), "{number} in pieces of {size}");
            }
        }
    }
}

#[test]
fn integers_of_more_bytes_than_needed_are_read() {
    // 0x41 and 8, in eight bytes each.
    let bytes = [
        0xc0, 0, 0, 0, 0, 0, 0, 0x41, 0xc0, 0, 0, 0, 0, 0, 0, 8, b'x',
    ];
    for size in 1..=bytes.len() {
        let step = read(
            StreamHeaderReader::whole(Direction::Bidirectional),
            &bytes,
            size,
        );
        let expected = complete(id(8), 16, Bytes::from_static(b"x"));
        assert_eq!(step, Ok(expected), "{size}");
    }
}

/// draft-ietf-webtrans-http3-16 §4; WT-h3-009.
#[test]
fn number_of_another_stream_is_an_error_of_the_connection() {
    for number in [1, 2, 3, 7] {
        let error = read(StreamHeaderReader::after_type(), &[number], 1).expect_err("no session");
        assert_eq!(
            (error.code, error.scope),
            (Code::ID_ERROR, Scope::Connection)
        );
    }
}

/// RFC 9114 §6.1; WT-h3-058.
#[test]
fn bidirectional_stream_with_another_number_is_an_error_of_the_connection() {
    for bytes in [&[0x00, 4][..], &[0x40, 0x54, 0], &[0x40, 0x42, 0]] {
        let reader = StreamHeaderReader::whole(Direction::Bidirectional);
        let error = read(reader, bytes, 1).expect_err("another stream");
        let expected = (Code::STREAM_CREATION_ERROR, Scope::Connection);
        assert_eq!((error.code, error.scope), expected);
    }
}

/// draft-ietf-webtrans-http3-16 §4.2; WT-h3-055.
#[test]
fn stream_that_ends_inside_its_header_names_no_session() {
    let header = StreamHeader::new(Direction::Unidirectional, id((1 << 62) - 4));
    for len in 0..header.len() {
        let reader = StreamHeaderReader::whole(Direction::Unidirectional);
        let step = read(reader, &header.as_ref()[..len], 3);
        assert_eq!(step, Ok(HeaderStep::Incomplete), "{len}");
    }
}
