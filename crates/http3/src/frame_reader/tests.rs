use proptest::prelude::*;

use super::*;

/// Admits all frames with payloads of at most a hundred bytes.
struct Anything;

impl Rules for Anything {
    fn classify(&self, value: u64) -> FrameType {
        FrameType::from_value(value)
    }

    fn admit(&mut self, _frame_type: FrameType) -> Result<u64, Error> {
        Ok(100)
    }
}

fn frame(value: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_header(&mut out, value, payload.len());
    out.extend_from_slice(payload);
    out
}

/// Returns all parts, with the bytes of DATA joined.
fn read(bytes: &[u8], chunk: usize) -> Result<(Vec<Piece>, FrameReader), Error> {
    let mut reader = FrameReader::default();
    let mut pieces = Vec::new();
    for chunk in bytes.chunks(chunk.max(1)) {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(piece) = reader.poll(&mut Anything)? {
            match (pieces.last_mut(), piece) {
                (Some(Piece::Data(before)), Piece::Data(more)) => {
                    *before = [&before[..], &more[..]].concat().into();
                }
                (_, piece) => pieces.push(piece),
            }
        }
        assert!(reader.input.is_empty());
    }
    Ok((pieces, reader))
}

fn sample() -> Vec<u8> {
    let mut bytes = frame(frame::HEADERS, b"section");
    bytes.extend(frame(frame::DATA, &[b'd'; 3000]));
    bytes.extend(frame(frame::reserved(5), &[b'g'; 700]));
    bytes.extend(frame(frame::DATA, b""));
    bytes.extend(frame(frame::reserved(77_777), b""));
    bytes.extend(frame(frame::HEADERS, b""));
    bytes
}

const fn skipping(frame_type: u64, len: u64) -> Piece {
    Piece::Skipping { frame_type, len }
}

#[test]
fn frames_may_be_split_anywhere() {
    let bytes = sample();
    let expected = vec![
        Piece::Frame(FrameType::Headers, Bytes::from_static(b"section")),
        Piece::Data(vec![b'd'; 3000].into()),
        skipping(frame::reserved(5), 700),
        Piece::EmptyData,
        skipping(frame::reserved(77_777), 0),
        Piece::Frame(FrameType::Headers, Bytes::new()),
    ];
    for chunk in (1..40).chain([1000, 5000]) {
        let (pieces, reader) = read(&bytes, chunk).expect("frames");
        assert_eq!(pieces, expected, "{chunk}");
        assert_eq!(reader.finish(), Ok(()));
    }
}

/// RFC 9114 §7.1.
#[test]
fn stream_that_ends_inside_a_frame_is_an_error() {
    let bytes = sample();
    let ends: Vec<_> = (0..bytes.len())
        .filter(|&len| read(&bytes[..len], 1000).is_ok_and(|(_, reader)| reader.finish().is_ok()))
        .collect();
    assert_eq!(ends.len(), 6, "before each frame: {ends:?}");
    let (_, reader) = read(&bytes[..5], 5).expect("a part");
    let error = reader.finish().expect_err("not the end");
    assert_eq!(error.code, Code::FRAME_ERROR);
}

#[test]
fn refuses_a_frame_that_is_too_long_before_it_arrives() {
    let mut bytes = Vec::new();
    frame::encode_header(&mut bytes, frame::SETTINGS, 101);
    let error = read(&bytes, 100).expect_err("too long");
    assert_eq!(error.code, Code::EXCESSIVE_LOAD);
}

#[test]
fn oversized_headers_are_skipped_without_being_stored() {
    let len = 100_000;
    let mut bytes = frame(frame::HEADERS, &vec![7; len]);
    bytes.extend(frame(frame::HEADERS, &[8; 100]));
    let expected = [
        Piece::Oversized { len: len as u64 },
        Piece::Frame(FrameType::Headers, vec![8; 100].into()),
    ];
    for chunk in [1, 7, 1000, bytes.len()] {
        let (pieces, reader) = read(&bytes, chunk).expect("frames");
        assert_eq!(pieces, expected, "{chunk}");
        assert_eq!(reader.finish(), Ok(()));
    }
    let (_, reader) = read(&bytes[..len / 2], 1000).expect("a part");
    assert!(reader.memory() < 100, "{}", reader.memory());
    assert!(reader.finish().is_err());
}

/// The buffer of an incomplete section grows with the bytes that have arrived, up to its length.
#[test]
fn partial_section_takes_no_more_than_its_length() {
    let bytes = frame(frame::HEADERS, &[7; 90]);
    let mut reader = FrameReader::default();
    for byte in &bytes[..bytes.len() - 1] {
        reader.push(Bytes::copy_from_slice(&[*byte]));
        assert_eq!(reader.poll(&mut Anything), Ok(None));
        assert!(reader.partial.capacity() <= 90.min(2 * reader.partial.len().max(8)));
    }
    assert_eq!(reader.partial_section(), 90);
    reader.push(Bytes::from_static(&[7]));
    assert!(matches!(
        reader.poll(&mut Anything),
        Ok(Some(Piece::Frame(..)))
    ));
    assert_eq!((reader.partial_section(), reader.memory()), (0, 0));
}

#[test]
fn unknown_frames_are_skipped_without_being_stored() {
    let mut bytes = Vec::new();
    frame::encode_header(&mut bytes, frame::reserved(1), 1 << 30);
    bytes.extend_from_slice(&[0; 100_000]);
    let (_, reader) = read(&bytes, 1000).expect("the frame is skipped");
    assert!(reader.memory() < 1000);
    assert!(reader.finish().is_err());
}

#[test]
fn data_is_not_copied() {
    let chunk = Bytes::from(frame(frame::DATA, &[1; 500]));
    let mut reader = FrameReader::default();
    reader.push(chunk.clone());
    let Ok(Some(Piece::Data(data))) = reader.poll(&mut Anything) else {
        panic!("data");
    };
    assert_eq!(data.as_ptr(), chunk[3..].as_ptr());
}

proptest! {
    #[test]
    fn splits_do_not_change_the_result(bytes: Vec<u8>, chunk in 1usize..20) {
        let whole = read(&bytes, bytes.len()).map(|(pieces, _)| pieces);
        let parts = read(&bytes, chunk).map(|(pieces, _)| pieces);
        prop_assert_eq!(whole, parts);
    }
}
