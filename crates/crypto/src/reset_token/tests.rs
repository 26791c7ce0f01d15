use super::*;
use crate::testing::example_id;

#[test]
fn same_key_and_id_give_the_same_token() {
    let token = derive(&ResetKey::new(&[1; 32]), &example_id());
    assert_eq!(derive(&ResetKey::new(&[1; 32]), &example_id()), token);
}

#[test]
fn token_depends_on_key_and_id() {
    let key = ResetKey::new(&[1; 32]);
    let token = derive(&key, &example_id());
    assert_ne!(derive(&ResetKey::new(&[2; 32]), &example_id()), token);
    assert_ne!(derive(&key, &ConnectionId::new(&[0; 8]).unwrap()), token);
    assert_ne!(derive(&key, &ConnectionId::EMPTY), token);
}

#[test]
fn tokens_that_differ_in_one_bit_are_not_equal() {
    let token = derive(&ResetKey::new(&[1; 32]), &example_id());
    assert!(equal(&token, &token.clone()));
    for bit in 0..TOKEN_LEN * 8 {
        let mut other = token;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!equal(&token, &other), "bit {bit}");
    }
}

#[test]
fn debug_output_shows_no_key() {
    assert_eq!(format!("{:?}", ResetKey::new(&[1; 32])), "ResetKey(..)");
}
