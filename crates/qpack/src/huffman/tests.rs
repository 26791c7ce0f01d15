use proptest::prelude::*;

use super::*;

fn coded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(text, &mut out);
    out
}

fn decoded(coded: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::new();
    decode(coded, &mut out).map(|()| out)
}

/// RFC 7541 §C.4, §C.6.
#[test]
fn encodes_and_decodes_the_examples() {
    let examples: [(&[u8], &[u8]); 4] = [
        (
            b"www.example.com",
            &[
                0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
            ],
        ),
        (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
        (b"302", &[0x64, 0x02]),
        (b"", &[]),
    ];
    for (text, bytes) in examples {
        assert_eq!(coded(text), bytes);
        assert_eq!(decoded(bytes).as_deref(), Ok(text));
    }
}

/// RFC 7541 §5.2, RFC 9204 §4.1.2.
#[test]
fn refuses_padding_that_is_not_a_prefix_of_eos() {
    // '0' is five zeros. The remaining bits are padding.
    assert_eq!(decoded(&[0b0000_0111]).as_deref(), Ok(&b"0"[..]));
    assert!(decoded(&[0b0000_0110]).is_err());
    assert!(decoded(&[0b0000_0011]).is_err());
    assert!(decoded(&[0xff]).is_err());
    assert!(decoded(&[0b0000_0111, 0xff]).is_err());
}

#[test]
fn refuses_the_end_of_string_symbol() {
    assert!(decoded(&[0xff, 0xff, 0xff, 0xff]).is_err());
    assert!(decoded(&[0b0000_0111, 0xff, 0xff, 0xff, 0xff, 0xff]).is_err());
}

#[test]
fn encodes_and_decodes_every_byte() {
    for byte in 0..=u8::MAX {
        for copies in 1..5 {
            let text = vec![byte; copies];
            let bytes = coded(&text);
            assert_eq!(bytes.len(), encoded_len(&text));
            assert_eq!(decoded(&bytes), Ok(text));
        }
    }
}

proptest! {
    #[test]
    fn round_trips(text: Vec<u8>) {
        let bytes = coded(&text);
        prop_assert_eq!(bytes.len(), encoded_len(&text));
        prop_assert_eq!(decoded(&bytes), Ok(text));
    }

    /// Every input that decodes is the only encoding of its text.
    #[test]
    fn each_text_has_one_encoding(bytes: Vec<u8>) {
        if let Ok(text) = decoded(&bytes) {
            prop_assert_eq!(coded(&text), bytes);
        }
    }
}
