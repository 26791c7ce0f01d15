//! Encryption of server IDs and nonces, draft-ietf-quic-load-balancers-21 §5.4.

use courser_crypto::{BLOCK_LEN, BlockKey};

/// Encrypts a server ID with its nonce, 5 to 19 bytes.
pub(super) fn encrypt(key: &BlockKey, text: &mut [u8]) {
    if let Ok(block) = <&mut [u8; BLOCK_LEN]>::try_from(&mut *text) {
        return key.encrypt(block);
    }
    let mut halves = Halves::split(text);
    for pass in [1, 2, 3, 4] {
        halves.pass(key, pass);
    }
    halves.join(text);
}

/// Decrypts a server ID with its nonce, 5 to 19 bytes.
pub(super) fn decrypt(key: &BlockKey, text: &mut [u8]) {
    if let Ok(block) = <&mut [u8; BLOCK_LEN]>::try_from(&mut *text) {
        return key.decrypt(block);
    }
    let mut halves = Halves::split(text);
    for pass in [4, 3, 2, 1] {
        halves.pass(key, pass);
    }
    halves.join(text);
}

/// The halves of a text in a Feistel network. If the number of bytes is odd, each half has four bits
/// of the middle byte, and zeros instead of the other four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Halves {
    left: [u8; MAX_HALF],
    right: [u8; MAX_HALF],
    /// Length of the whole text in bytes.
    length: usize,
}

impl Halves {
    fn split(text: &[u8]) -> Self {
        debug_assert!((5..=19).contains(&text.len()));
        let half = text.len().div_ceil(2);
        let (mut left, mut right) = ([0; MAX_HALF], [0; MAX_HALF]);
        left[..half].copy_from_slice(&text[..half]);
        right[..half].copy_from_slice(&text[text.len() - half..]);
        let mut halves = Self {
            left,
            right,
            length: text.len(),
        };
        halves.clear();
        halves
    }

    fn join(&self, text: &mut [u8]) {
        let half = self.half();
        text.fill(0);
        text[..half].copy_from_slice(&self.left[..half]);
        let right = &mut text[self.length - half..];
        for (byte, half) in right.iter_mut().zip(self.right) {
            *byte |= half;
        }
    }

    const fn half(&self) -> usize {
        self.length.div_ceil(2)
    }

    /// Clears the bits of the middle byte that belong to the other half.
    fn clear(&mut self) {
        if self.length % 2 == 1 {
            self.left[self.half() - 1] &= 0xf0;
            self.right[0] &= 0x0f;
        }
    }

    /// Combines one half with the encryption of the other. Odd passes change the right half. The same pass
    /// again restores it.
    fn pass(&mut self, key: &BlockKey, pass: u8) {
        let half = self.half();
        let (source, target) = match pass % 2 {
            1 => (&self.left, &mut self.right),
            _ => (&self.right, &mut self.left),
        };
        let mut block = [0; BLOCK_LEN];
        block[..half].copy_from_slice(&source[..half]);
        block[BLOCK_LEN - 2] = u8::try_from(self.length).expect("at most 19 bytes");
        block[BLOCK_LEN - 1] = pass;
        key.encrypt(&mut block);
        for (byte, mask) in target[..half].iter_mut().zip(block) {
            *byte ^= mask;
        }
        self.clear();
    }
}

/// Bytes of the longest half.
const MAX_HALF: usize = 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Follows draft-ietf-quic-load-balancers-21 §5.4.2.4.
    #[test]
    fn example_of_the_draft_is_encrypted_step_by_step() {
        let key = BlockKey::new(&0xfdf7_26a9_893e_c05c_0632_d395_6680_baf0_u128.to_be_bytes());
        let plain = [0x31, 0x44, 0x1a, 0x9c, 0x69, 0xc2, 0x75];
        let mut halves = Halves::split(&plain);
        assert_eq!(halves.left[..4], [0x31, 0x44, 0x1a, 0x90]);
        assert_eq!(halves.right[..4], [0x0c, 0x69, 0xc2, 0x75]);
        halves.pass(&key, 1);
        assert_eq!(halves.right[..4], [0x0e, 0x3c, 0x1f, 0xf9]);
        halves.pass(&key, 2);
        assert_eq!(halves.left[..4], [0xd4, 0xa0, 0x48, 0x50]);
        halves.pass(&key, 3);
        assert_eq!(halves.right[..4], [0x09, 0xbe, 0x05, 0x4a]);
        halves.pass(&key, 4);
        assert_eq!(halves.left[..4], [0x67, 0x94, 0x7d, 0x20]);
        let mut text = plain;
        encrypt(&key, &mut text);
        assert_eq!(text, [0x67, 0x94, 0x7d, 0x29, 0xbe, 0x05, 0x4a]);
        decrypt(&key, &mut text);
        assert_eq!(text, plain);
    }

    proptest! {
        #[test]
        fn decryption_reverses_encryption(
            key in any::<[u8; 16]>(),
            plain in prop::collection::vec(any::<u8>(), 5..=19),
            place in any::<prop::sample::Index>(),
        ) {
            let key = BlockKey::new(&key);
            let mut text = plain.clone();
            encrypt(&key, &mut text);
            prop_assert_ne!(&text, &plain);
            let sealed = text.clone();
            decrypt(&key, &mut text);
            prop_assert_eq!(&text, &plain);
            // A change of one bit changes more than one encrypted byte.
            text[place.index(plain.len())] ^= 1;
            encrypt(&key, &mut text);
            let changed = sealed.iter().zip(&text).filter(|(one, other)| one != other);
            prop_assert!(changed.count() > 1);
        }
    }
}
