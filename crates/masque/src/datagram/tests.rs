use proptest::prelude::*;

use super::*;

/// MQ-udp-018, MQ-udp-019, MQ-udp-020, attack A354.
#[test]
fn lengths_of_payloads_have_their_limits() {
    assert_eq!(decode(Bytes::new()), Err(Malformed::NoContext));
    for cut in [&[0x40][..], &[0x80, 0, 0], &[0xc0, 0, 0, 0, 0, 0, 0]] {
        assert_eq!(
            decode(Bytes::copy_from_slice(cut)),
            Err(Malformed::NoContext)
        );
    }
    assert_eq!(decode(encode(&[])), Ok(Decoded::Udp(Bytes::new())));
    let longest = encode(&[1; MAX_PAYLOAD]);
    assert_eq!(longest.len(), MAX_DATAGRAM);
    assert_eq!(
        decode(longest),
        Ok(Decoded::Udp(Bytes::from(vec![1; MAX_PAYLOAD])))
    );
    let error = decode(encode(&[1; MAX_PAYLOAD + 1])).unwrap_err();
    assert_eq!(error, Malformed::TooLong(65_528));
    assert_eq!(error.code(), Code::DATAGRAM_ERROR);
    let mut wide = vec![0x40, 0];
    wide.extend([1; MAX_PAYLOAD + 1]);
    assert_eq!(decode(wide.into()), Err(Malformed::TooLong(65_528)));
    // The limit is that of UDP payloads.
    let mut other = vec![1];
    other.extend([1; MAX_PAYLOAD + 1]);
    assert!(decode(other.into()).is_ok());
}

#[test]
fn contexts_are_read_in_every_length() {
    for bytes in [&[7, 1, 2][..], &[0x40, 7, 1, 2], &[0x80, 0, 0, 7, 1, 2]] {
        let (context, payload) = (7, Bytes::from_static(&[1, 2]));
        let decoded = decode(Bytes::copy_from_slice(bytes));
        assert_eq!(decoded, Ok(Decoded::Other { context, payload }));
    }
    assert_eq!(
        decode(Bytes::from_static(&[0x40, 0, 9])),
        Ok(Decoded::Udp(Bytes::from_static(&[9])))
    );
}

proptest! {
    #[test]
    fn batches_are_their_datagrams(contents in proptest::collection::vec(any::<u8>(), 0..300), size in 0..100_usize) {
        let mut out = Vec::new();
        encode_batch(&contents, size, &mut out);
        let expected: Vec<_> = match contents.is_empty() {
            true => vec![encode(&[])],
            false => contents.chunks(size.max(1)).map(encode).collect(),
        };
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn any_bytes_are_a_datagram_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
        match decode(bytes.clone().into()) {
            Ok(Decoded::Udp(payload)) => prop_assert!(bytes.ends_with(&payload)),
            Ok(Decoded::Other { context, payload }) => prop_assert!(context > 0 && bytes.ends_with(&payload)),
            Err(error) => prop_assert_eq!(error, Malformed::NoContext),
        }
    }
}
