//! AES-GCM with VAES, VPCLMULQDQ and AVX2: two blocks in each instruction, sixteen of them side by side.

use std::arch::x86_64::*;

use super::block::{self, Product};
use crate::blocks::{Cipher, Hash, counter_at, is_without_carry, kernel};
use crate::schedule::{BLOCK_LEN, Block, Schedule};
use crate::text::Text;

kernel!("avx2,vaes,vpclmulqdq,aes,pclmulqdq");

/// Encrypts or decrypts a group from an offset of the text on.
///
/// # Safety
/// The text has `GROUP` blocks from there on.
#[inline]
#[target_feature(enable = "avx2,vaes,aes,pclmulqdq")]
unsafe fn group<const ROUNDS: usize>(cipher: &Cipher<'_, ROUNDS>, text: &Text<'_>, offset: usize) {
    let keys = &cipher.rounds.keys;
    let broadcast = |key| _mm256_broadcastsi128_si256(block::load(key));
    let last = broadcast(&keys[ROUNDS]);
    let first = counter_at(offset);
    let is_simple = is_without_carry(first, GROUP);
    let base = _mm256_broadcastsi128_si256(cipher.counter(first));
    let mut states = [0, 2, 4, 6, 8, 10, 12, 14].map(|place: i32| {
        let counters = match is_simple {
            true => {
                let step = _mm256_set_epi32((place + 1) << 24, 0, 0, 0, place << 24, 0, 0, 0);
                _mm256_add_epi32(base, step)
            }
            false => {
                let counter = |place| cipher.counter(first + place as usize);
                _mm256_set_m128i(counter(place + 1), counter(place))
            }
        };
        _mm256_xor_si256(counters, broadcast(&keys[0]))
    });
    for key in &keys[1..ROUNDS] {
        let key = broadcast(key);
        for state in &mut states {
            *state = _mm256_aesenc_epi128(*state, key);
        }
    }
    for (index, state) in states.into_iter().enumerate() {
        let at = offset + 2 * index * BLOCK_LEN;
        // SAFETY: the caller guarantees that the text has these bytes.
        let input = unsafe { _mm256_loadu_si256(text.from.add(at).cast()) };
        let output = _mm256_aesenclast_epi128(state, _mm256_xor_si256(last, input));
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(text.to.add(at).cast(), output) };
    }
}

/// Adds up the products of a group and as many powers, after `carry` was added to the first.
#[inline]
#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq")]
fn multiply(blocks: &[Block; GROUP], carry: __m128i, powers: &[Block; GROUP]) -> Product {
    let order = _mm256_broadcastsi128_si256(block::reversed_order());
    let mut carry = _mm256_zextsi128_si256(carry);
    let zero = _mm256_setzero_si256();
    let (mut low, mut middle, mut high) = (zero, zero, zero);
    for (blocks, powers) in blocks.as_chunks().0.iter().zip(powers.as_chunks().0) {
        let blocks = _mm256_xor_si256(_mm256_shuffle_epi8(load(blocks), order), carry);
        carry = zero;
        let powers = load(powers);
        low = _mm256_xor_si256(low, _mm256_clmulepi64_epi128(blocks, powers, 0x00));
        middle = _mm256_xor_si256(middle, _mm256_clmulepi64_epi128(blocks, powers, 0x01));
        middle = _mm256_xor_si256(middle, _mm256_clmulepi64_epi128(blocks, powers, 0x10));
        high = _mm256_xor_si256(high, _mm256_clmulepi64_epi128(blocks, powers, 0x11));
    }
    let add = |lanes: __m256i| {
        let upper = _mm256_extracti128_si256(lanes, 1);
        _mm_xor_si128(_mm256_castsi256_si128(lanes), upper)
    };
    Product {
        low: add(low),
        middle: add(middle),
        high: add(high),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(blocks: &[Block; 2]) -> __m256i {
    // SAFETY: two blocks have the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) }
}

/// Number of blocks that are encrypted side by side.
const GROUP: usize = 16;
