use super::*;

fn sealed(plaintext: &[u8], aad: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    TokenKey::new(&[7; 32]).seal([9; NONCE_LEN], plaintext, aad, &mut out);
    out
}

#[test]
fn sealed_token_opens() {
    let key = TokenKey::new(&[7; 32]);
    for len in [0, 1, 40, 200] {
        let token = sealed(&vec![3; len], b"aad");
        assert_eq!(token.len(), sealed_len(len), "{len}");
        assert_eq!(key.open(&token, b"aad"), Some(vec![3; len]), "{len}");
    }
}

#[test]
fn sealing_appends() {
    let mut out = b"kept".to_vec();
    TokenKey::new(&[7; 32]).seal([9; NONCE_LEN], b"plain", b"", &mut out);
    assert_eq!(&out[..4], b"kept");
    assert_eq!(out[4..], sealed(b"plain", b""));
}

#[test]
fn plaintext_does_not_show() {
    let token = sealed(b"192.0.2.1", b"");
    assert!(!token.windows(9).any(|window| window == b"192.0.2.1"));
}

#[test]
fn any_flipped_bit_is_rejected() {
    let key = TokenKey::new(&[7; 32]);
    let intact = sealed(b"an address and a time", b"aad");
    for bit in 0..intact.len() * 8 {
        let mut token = intact.clone();
        token[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(key.open(&token, b"aad"), None, "bit {bit}");
    }
}

#[test]
fn wrong_key_aad_or_length_is_rejected() {
    let token = sealed(b"plain", b"aad");
    assert_eq!(TokenKey::new(&[8; 32]).open(&token, b"aad"), None);
    let key = TokenKey::new(&[7; 32]);
    assert_eq!(key.open(&token, b"aae"), None);
    assert_eq!(key.open(&token, b""), None);
    for len in 0..token.len() {
        assert_eq!(key.open(&token[..len], b"aad"), None, "{len}");
    }
    assert_eq!(key.open(&[&token[..], &[0]].concat(), b"aad"), None);
}
