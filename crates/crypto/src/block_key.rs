//! Single blocks of AES-128, for connection IDs that a load balancer can decrypt.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::cipher::{
    AES_128, DecryptingKey, DecryptionContext, EncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::constant_time;

/// An AES-128 key that encrypts and decrypts single blocks (ECB, NIST SP 800-38A §6.1).
///
/// Do not protect data with it, because equal blocks have equal ciphertexts. It is the building block of
/// draft-ietf-quic-load-balancers-21 §5.4.
#[derive(Clone)]
pub struct BlockKey(Arc<Directions>);

struct Directions {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
}

impl BlockKey {
    /// Creates a key from 16 random bytes.
    pub fn new(key: &[u8; BLOCK_LEN]) -> Self {
        let unbound = || UnboundCipherKey::new(&AES_128, key).expect("the key has 16 bytes");
        Self(Arc::new(Directions {
            encrypting: EncryptingKey::ecb(unbound()).expect("AES-128 has this mode"),
            decrypting: DecryptingKey::ecb(unbound()).expect("AES-128 has this mode"),
        }))
    }

    /// Encrypts one block in place.
    pub fn encrypt(&self, block: &mut [u8; BLOCK_LEN]) {
        let done = self.0.encrypting.encrypt(block);
        done.expect("the length is that of a block");
    }

    /// Decrypts one block in place.
    pub fn decrypt(&self, block: &mut [u8; BLOCK_LEN]) {
        let done = self.0.decrypting.decrypt(block, DecryptionContext::None);
        done.expect("the length is that of a block");
    }
}

impl PartialEq for BlockKey {
    /// Two keys are equal if they encrypt a block to the same bytes.
    fn eq(&self, other: &Self) -> bool {
        let [mut mine, mut its] = [[0; BLOCK_LEN]; 2];
        self.encrypt(&mut mine);
        other.encrypt(&mut its);
        constant_time::verify_slices_are_equal(&mine, &its).is_ok()
    }
}

impl Eq for BlockKey {}

impl fmt::Debug for BlockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlockKey(..)")
    }
}

/// Length of a block, and of a key, in bytes.
pub const BLOCK_LEN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 197 §C.1.
    #[test]
    fn block_of_the_standard_is_encrypted_and_decrypted() {
        let key = BlockKey::new(&std::array::from_fn(|index| {
            u8::try_from(index).expect("the value fits into a byte")
        }));
        let plain: [u8; 16] = std::array::from_fn(|index| {
            u8::try_from(index * 17).expect("the value fits into a byte")
        });
        let mut block = plain;
        key.encrypt(&mut block);
        assert_eq!(
            block,
            0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes()
        );
        key.decrypt(&mut block);
        assert_eq!(block, plain);
    }

    #[test]
    fn keys_are_comparable_and_hidden_in_debug_output() {
        let [one, same, other] = [[1; 16], [1; 16], [2; 16]].map(|key| BlockKey::new(&key));
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(format!("{one:?}"), "BlockKey(..)");
    }
}
