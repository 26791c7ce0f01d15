//! Nonces that are used once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use courser_wire::ConnectionId;

use crate::rng::Rng;

/// Numbers that count up from a random one (draft-ietf-quic-load-balancers-21 §9.6).
#[derive(Debug, Default)]
pub(super) struct Nonces {
    first: OnceLock<[u8; ConnectionId::MAX_LEN]>,
    used: AtomicU64,
}

impl Nonces {
    /// Writes the next number. All numbers have the same length.
    pub(super) fn next(&self, rng: &mut Rng, nonce: &mut [u8]) {
        let first = self.first.get_or_init(|| rng.array());
        let mut carry = self.used.fetch_add(1, Relaxed);
        for (byte, first) in nonce.iter_mut().zip(first).rev() {
            carry += u64::from(*first);
            // The low byte of the sum.
            *byte = carry.to_le_bytes()[0];
            carry >>= 8;
        }
    }
}

#[cfg(test)]
impl Nonces {
    /// Makes `nonce` the first one.
    pub(super) fn start_with(&self, nonce: &[u8]) {
        let mut first = [0; ConnectionId::MAX_LEN];
        first[..nonce.len()].copy_from_slice(nonce);
        self.first.set(first).expect("no nonce was used");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_up_from_a_random_one() {
        let (nonces, mut rng) = (Nonces::default(), Rng::new([7; 32]));
        let mut next = || {
            let mut nonce = [0; 4];
            nonces.next(&mut rng, &mut nonce);
            u32::from_be_bytes(nonce)
        };
        let first = next();
        assert_ne!(first, 0);
        for count in 1..1000 {
            assert_eq!(next(), first.wrapping_add(count));
        }
    }

    #[test]
    fn number_that_overflows_continues_with_zero() {
        let (nonces, mut rng) = (Nonces::default(), Rng::new([7; 32]));
        nonces.start_with(&[0xff; 20]);
        let mut nonce = [0; 18];
        nonces.next(&mut rng, &mut nonce);
        assert_eq!(nonce, [0xff; 18]);
        nonces.next(&mut rng, &mut nonce);
        assert_eq!(nonce, [0; 18]);
        nonces.used.store(0x0102, Relaxed);
        nonces.next(&mut rng, &mut nonce);
        assert_eq!(nonce[16..], [1, 1]);
    }
}
