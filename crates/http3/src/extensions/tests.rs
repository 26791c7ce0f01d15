use super::*;

const HTTP2_SETTINGS: [u64; 4] = [0x02, 0x03, 0x04, 0x05];
const HTTP2_FRAMES: [u64; 4] = [0x02, 0x06, 0x08, 0x09];

fn claims(number: u64) -> [Result<Extensions, ClaimError>; 3] {
    [
        Extensions::new().setting(number, 1),
        Extensions::new().bidirectional_stream(number),
        Extensions::new().frame(number, FrameStream::Control, 10),
    ]
}

/// RFC 9114 §7.2.8, §11.2.1, §11.2.2.
#[test]
fn numbers_of_http2_cannot_be_claimed() {
    for id in HTTP2_SETTINGS {
        assert_eq!(
            Extensions::new().setting(id, 1),
            Err(ClaimError::Http2(id)),
            "{id}"
        );
    }
    for frame_type in HTTP2_FRAMES {
        let [_, signal, frame] = claims(frame_type);
        assert_eq!(signal, Err(ClaimError::Http2(frame_type)));
        assert_eq!(frame, Err(ClaimError::Http2(frame_type)));
    }
}

/// RFC 9114 §6.2.3, §7.2.4.1, §7.2.8.
#[test]
fn reserved_numbers_cannot_be_claimed() {
    for number in [0x21, 0x40, 0x1f * 1000 + 0x21] {
        let error = ClaimError::Reserved(number);
        for claim in claims(number) {
            assert_eq!(claim, Err(error));
        }
        assert_eq!(Extensions::new().unidirectional_stream(number), Err(error));
    }
}

#[test]
fn types_that_courser_implements_cannot_be_claimed() {
    for id in [0x01, 0x06, 0x07, 0x08, 0x33] {
        assert_eq!(
            Extensions::new().setting(id, 1),
            Err(ClaimError::Defined(id))
        );
    }
    for frame_type in [
        0x00, 0x01, 0x03, 0x04, 0x05, 0x07, 0x0c, 0x0d, 0xf0700, 0xf0701,
    ] {
        let [_, signal, frame] = claims(frame_type);
        assert_eq!(signal, Err(ClaimError::Defined(frame_type)));
        assert_eq!(frame, Err(ClaimError::Defined(frame_type)));
    }
    for stream_type in 0..=3 {
        assert_eq!(
            Extensions::new().unidirectional_stream(stream_type),
            Err(ClaimError::Defined(stream_type))
        );
    }
}

/// K200: the number of claims is limited, and duplicates are refused.
#[test]
fn claims_are_bounded_and_distinct() {
    let mut extensions = Extensions::new();
    for n in 0..16 {
        extensions = extensions
            .setting(0x1000 + n, n)
            .and_then(|it| it.unidirectional_stream(0x1000 + n))
            .and_then(|it| it.bidirectional_stream(0x1000 + n))
            .and_then(|it| it.frame(0x2000 + n, FrameStream::Request, 1))
            .expect("sixteen of each are allowed");
    }
    let too_many = [
        extensions.clone().setting(0x1010, 0),
        extensions.clone().unidirectional_stream(0x1010),
        extensions.clone().bidirectional_stream(0x1010),
        extensions.clone().frame(0x1010, FrameStream::Control, 0),
    ];
    assert_eq!(too_many, std::array::from_fn(|_| Err(ClaimError::TooMany)));
    let twice = [
        extensions.clone().setting(0x1001, 0),
        extensions.clone().unidirectional_stream(0x1001),
        extensions.clone().bidirectional_stream(0x1001),
        // A stream that starts with a frame of this type would be ambiguous.
        extensions.clone().frame(0x1001, FrameStream::Control, 0),
    ];
    assert_eq!(
        twice,
        std::array::from_fn(|_| Err(ClaimError::Twice(0x1001)))
    );
    assert_eq!(
        extensions.bidirectional_stream(0x2001),
        Err(ClaimError::Twice(0x2001))
    );
}

/// K201: payloads and values are limited.
#[test]
fn values_and_payloads_have_bounds() {
    let beyond = MAX_VARINT + 1;
    for claim in claims(beyond) {
        assert_eq!(claim, Err(ClaimError::OutOfRange(beyond)));
    }
    assert_eq!(
        Extensions::new().setting(0x1000, beyond),
        Err(ClaimError::OutOfRange(beyond))
    );
    let claim = |longest| Extensions::new().frame(0x1000, FrameStream::Request, longest);
    assert!(claim(65_536).is_ok());
    assert_eq!(claim(65_537), Err(ClaimError::TooLong(65_537)));
}

#[test]
fn frame_is_known_only_on_its_streams() {
    let extensions = Extensions::new()
        .frame(0x1000, FrameStream::Request, 7)
        .and_then(|it| it.bidirectional_stream(0x41))
        .expect("unclaimed numbers");
    for (stream, expected) in [
        (FrameStream::Request, FrameType::Claimed(0x1000)),
        (FrameStream::Control, FrameType::Unknown),
    ] {
        assert_eq!(extensions.classify(0x1000, stream), expected);
        assert_eq!(extensions.classify(0x41, stream), FrameType::Signal);
        assert_eq!(extensions.classify(0x1001, stream), FrameType::Unknown);
        assert_eq!(extensions.classify(0x00, stream), FrameType::Data);
    }
}

/// K580: groups keep their numbers apart, and are bounded.
#[test]
fn groups_are_bounded_and_distinct() {
    const NAMES: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let group = |n: u64| {
        let index = usize::try_from(n).expect("small");
        Extensions::new()
            .named(NAMES[index])
            .refuse_with(Code::from_value(n))
            .grant_streams(n, 10 - n)
            .unidirectional_stream(0x1000 + n)
            .and_then(|it| it.bidirectional_stream(0x1000 + n))
            .and_then(|it| it.frame(0x2000 + n, FrameStream::Request, 1))
            .expect("free numbers")
    };
    let mut all = Extensions::default();
    assert_eq!(all.granted_streams(), None);
    for n in 0..8 {
        all = all.and(group(n)).expect("eight groups are allowed");
    }
    assert_eq!(all.clone().and(group(8)), Err(ClaimError::TooManyGroups));
    assert_eq!(all.granted_streams(), Some((7, 10)));
    for (n, of) in (0..8).zip(all.groups()) {
        assert_eq!(all.group(NAMES[of.index()]), Some(of));
        assert_eq!(all.refusal(of), Code::from_value(n));
        assert_eq!(all.unidirectional(0x1000 + n), Some(of));
        assert_eq!(all.bidirectional(0x1000 + n), Some(of));
        let frame = all.group_of_frame(0x2000 + n, FrameStream::Request);
        assert_eq!(frame, Some(of));
        assert_eq!(all.group_of_frame(0x2000 + n, FrameStream::Control), None);
    }
    let twice = group(0).and(group(1).named("a"));
    assert_eq!(twice, Err(ClaimError::SameName("a")));
    let other = Extensions::new().frame(0x1000, FrameStream::Control, 1);
    let ambiguous = group(0).and(other.expect("free"));
    assert_eq!(ambiguous, Err(ClaimError::Twice(0x1000)));
    let nothing = Extensions::default();
    assert_eq!(group(0).and(nothing.clone()), Ok(group(0)));
    assert_eq!(nothing.and(group(0)), Ok(group(0)));
}

#[test]
fn groups_keep_their_values_when_they_are_joined() {
    let first = Extensions::new().named("first").with_value(7_u32);
    let second = Extensions::new().named("second").with_value("text");
    let clone = second.clone();
    assert_eq!(clone, second);
    assert_ne!(clone.with_value("text"), second);
    let joined = first.and(second).expect("different names");
    let first = joined.group("first").expect("a group");
    let second = joined.group("second").expect("a group");
    assert_eq!(joined.value::<u32>(first), Some(&7));
    assert_eq!(joined.value::<u32>(second), None);
    assert_eq!(joined.value::<&str>(second), Some(&"text"));
}
