use crate::http::{DATA, HEADERS, frame};

/// A HEADERS frame with these field lines behind the prefix.
fn response(lines: &[u8]) -> Vec<u8> {
    frame(HEADERS, &[&[0, 0], lines].concat())
}

#[test]
fn statuses_are_read_in_every_form() {
    for (lines, status) in [
        (&[0xd9][..], Some(200)),
        (&[0xdc], Some(503)),
        (&[0xff, 5], Some(403)),
        (&[0xff, 0], Some(100)),
        (b"\x5f\x09\x03429", Some(429)),
        // 429: 011010, 00010, 011111.
        (
            &[0x5f, 9, 0x83, 0b0110_1000, 0b0100_1111, 0b1111_1111],
            Some(429),
        ),
        (&[0x5f, 9, 0x83, 0, 0x80], None),
        (b"\x5f\x09\x03x29", None),
        (&[0xd1], None),
        (&[], None),
    ] {
        assert_eq!(super::status(&response(lines)), status, "{lines:?}");
    }
    assert_eq!(super::status(&frame(DATA, &[0, 0, 0xd9])), None);
    assert_eq!(super::status(&[]), None);
}
