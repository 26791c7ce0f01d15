//! Single blocks: key expansion, AES, and products in the field of GHASH.

pub(crate) use std::arch::aarch64::uint8x16_t as Vector;
use std::arch::aarch64::*;

use crate::schedule::{BLOCK_LEN, Block, PADDING, POWERS, Rounds};

#[inline]
pub(crate) fn load(block: &Block) -> Vector {
    // SAFETY: a block has the 16 bytes that are read, and NEON is part of aarch64.
    unsafe { vld1q_u8(block.as_ptr()) }
}

#[inline]
pub(crate) fn store(block: &mut Block, value: Vector) {
    // SAFETY: a block has the 16 bytes that are written, and NEON is part of aarch64.
    unsafe { vst1q_u8(block.as_mut_ptr(), value) }
}

#[inline]
pub(crate) fn bytes(value: Vector) -> Block {
    let mut bytes = [0; BLOCK_LEN];
    store(&mut bytes, value);
    bytes
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn zero() -> Vector {
    vdupq_n_u8(0)
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn xor(one: Vector, other: Vector) -> Vector {
    veorq_u8(one, other)
}

/// Compares two blocks without a branch on their bytes.
#[inline]
pub(crate) fn are_equal(one: Vector, other: Vector) -> bool {
    // SAFETY: NEON is part of aarch64.
    unsafe { vmaxvq_u8(veorq_u8(one, other)) == 0 }
}

/// Replaces the last word of a nonce by a counter.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn with_counter(nonce: Vector, counter: u32) -> Vector {
    let words = vreinterpretq_u32_u8(nonce);
    vreinterpretq_u8_u32(vsetq_lane_u32::<3>(counter.swap_bytes(), words))
}

/// Loads less than a block, and zeros behind it.
#[inline]
pub(crate) fn load_part(bytes: &[u8]) -> Vector {
    let mut block = [0; BLOCK_LEN];
    block[..bytes.len()].copy_from_slice(bytes);
    load(&block)
}

/// Expands a key of AES-128 or AES-256. FIPS 197 §5.2.
#[target_feature(enable = "neon,aes")]
pub(crate) fn expand(key: &[u8], rounds: &mut Rounds) {
    let words = key.len() / 4;
    let flat = rounds.keys.as_flattened_mut();
    flat[..key.len()].copy_from_slice(key);
    let count = 4 * (words + 7);
    let mut constant: u8 = 1;
    for index in words..count {
        let at = 4 * index;
        let mut word = [flat[at - 4], flat[at - 3], flat[at - 2], flat[at - 1]];
        if index.is_multiple_of(words) {
            word.rotate_left(1);
            word = substitute(word);
            word[0] ^= constant;
            constant = (constant << 1) ^ ((constant >> 7) * 0x1b);
        } else if words == 8 && index % 8 == 4 {
            word = substitute(word);
        }
        for (place, byte) in word.into_iter().enumerate() {
            flat[at + place] = flat[at + place - key.len()] ^ byte;
        }
    }
}

/// Replaces each byte of a word by that of the S-box. All columns are the same, so that the rows that AESE
/// shifts stay as they are.
#[inline]
#[target_feature(enable = "neon,aes")]
fn substitute(word: [u8; 4]) -> [u8; 4] {
    let state = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(word)));
    vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vaeseq_u8(state, zero()))).to_le_bytes()
}

/// Encrypts one block with all `ROUNDS` rounds.
#[inline]
#[target_feature(enable = "neon,aes")]
pub(crate) fn encrypt<const ROUNDS: usize>(rounds: &Rounds, mut block: Vector) -> Vector {
    for key in &rounds.keys[..ROUNDS - 1] {
        block = vaesmcq_u8(vaeseq_u8(block, load(key)));
    }
    let block = vaeseq_u8(block, load(&rounds.keys[ROUNDS - 1]));
    veorq_u8(block, load(&rounds.keys[ROUNDS]))
}

/// Returns the hash key H, twisted.
#[target_feature(enable = "neon,aes")]
pub(crate) fn hash_key<const ROUNDS: usize>(rounds: &Rounds) -> Vector {
    twist(reverse(encrypt::<ROUNDS>(rounds, zero())))
}

/// Writes the powers of a twisted hash key in descending order. What follows them stays zero.
#[target_feature(enable = "neon,aes")]
pub(crate) fn raise(hash_key: Vector, powers: &mut [Block; POWERS + PADDING]) {
    let mut last = hash_key;
    for power in powers[..POWERS].iter_mut().rev() {
        store(power, last);
        last = Product::new(last, hash_key).reduce();
    }
}

/// Reverses the bytes of a block: GHASH numbers bits from the other end.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn reverse(block: Vector) -> Vector {
    swap(vrev64q_u8(block))
}

/// Exchanges the halves of a block.
#[inline]
#[target_feature(enable = "neon")]
fn swap(block: Vector) -> Vector {
    vextq_u8::<8>(block, block)
}

/// Multiplies a block by x in the reversed field, as `x86::block` does.
#[inline]
fn twist(block: Vector) -> Vector {
    let value = u128::from_le_bytes(bytes(block));
    let overflow = (value >> 127).wrapping_neg();
    load(&(value << 1 ^ (overflow & POLYNOMIAL)).to_le_bytes())
}

/// A sum of products before its reduction.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    low: Vector,
    middle: Vector,
    high: Vector,
}

impl Product {
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn zero() -> Self {
        let zero = zero();
        Self {
            low: zero,
            middle: zero,
            high: zero,
        }
    }

    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn new(block: Vector, power: Vector) -> Self {
        let swapped = swap(power);
        Self {
            low: multiply_low(block, power),
            middle: veorq_u8(multiply_low(block, swapped), multiply_high(block, swapped)),
            high: multiply_high(block, power),
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            low: veorq_u8(self.low, other.low),
            middle: veorq_u8(self.middle, other.middle),
            high: veorq_u8(self.high, other.high),
        }
    }

    /// Reduces the sum to a block.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn reduce(self) -> Vector {
        let low = veorq_u8(self.low, vextq_u8::<8>(zero(), self.middle));
        let high = veorq_u8(self.high, vextq_u8::<8>(self.middle, zero()));
        let polynomial = load(&POLYNOMIAL.rotate_left(64).to_le_bytes());
        let fold = |low: Vector| veorq_u8(swap(low), multiply_low(low, polynomial));
        veorq_u8(high, fold(fold(low)))
    }
}

#[inline]
#[target_feature(enable = "neon,aes")]
fn multiply_low(one: Vector, other: Vector) -> Vector {
    let half = |vector| vgetq_lane_p64::<0>(vreinterpretq_p64_u8(vector));
    vreinterpretq_u8_p128(vmull_p64(half(one), half(other)))
}

#[inline]
#[target_feature(enable = "neon,aes")]
fn multiply_high(one: Vector, other: Vector) -> Vector {
    vreinterpretq_u8_p128(vmull_high_p64(
        vreinterpretq_p64_u8(one),
        vreinterpretq_p64_u8(other),
    ))
}

/// Returns the nonce of a packet with a counter of zero, from the 96 bits of path ID and packet number.
/// RFC 9001 §5.3, RFC 10069 §2.4.
#[inline]
pub(crate) fn nonce(iv: &Block, number: u128) -> Vector {
    load(&(u128::from_be_bytes(*iv) ^ number << 32).to_be_bytes())
}

/// Returns the block with the lengths of header and text, reversed.
#[inline]
pub(crate) fn lengths(header: usize, text: usize) -> Vector {
    let bits = |len: usize| len as u128 * 8;
    load(&(bits(header) << 64 | bits(text)).to_le_bytes())
}

/// The polynomial of GHASH, reversed: x^128 + x^127 + x^126 + x^121 + 1.
const POLYNOMIAL: u128 = 0xc200_0000_0000_0000_0000_0000_0000_0001;
