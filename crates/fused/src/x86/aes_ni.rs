//! AES-GCM with AES-NI and PCLMULQDQ: one block in each instruction, eight of them side by side.

use std::arch::x86_64::*;

use super::block::{self, Product};
use crate::blocks::{Cipher, Hash, counter_at, is_without_carry, kernel};
use crate::schedule::{BLOCK_LEN, Block, Schedule};
use crate::text::Text;

kernel!("avx,aes,pclmulqdq");

/// Encrypts or decrypts a group from an offset of the text on.
///
/// # Safety
/// The text has `GROUP` blocks from there on.
#[inline]
#[target_feature(enable = "avx,aes,pclmulqdq")]
unsafe fn group<const ROUNDS: usize>(cipher: &Cipher<'_, ROUNDS>, text: &Text<'_>, offset: usize) {
    let keys = &cipher.rounds.keys;
    let first = counter_at(offset);
    let is_simple = is_without_carry(first, GROUP);
    let base = cipher.counter(first);
    let mut states = [0, 1, 2, 3, 4, 5, 6, 7].map(|place: i32| {
        let counter = match is_simple {
            true => _mm_add_epi32(base, _mm_set_epi32(place << 24, 0, 0, 0)),
            false => cipher.counter(first + place as usize),
        };
        _mm_xor_si128(counter, block::load(&keys[0]))
    });
    for key in &keys[1..ROUNDS] {
        let key = block::load(key);
        for state in &mut states {
            *state = _mm_aesenc_si128(*state, key);
        }
    }
    let last = block::load(&keys[ROUNDS]);
    for (index, state) in states.into_iter().enumerate() {
        let at = offset + index * BLOCK_LEN;
        // SAFETY: the caller guarantees that the text has these bytes.
        let input = unsafe { _mm_loadu_si128(text.from.add(at).cast()) };
        let output = _mm_aesenclast_si128(state, _mm_xor_si128(last, input));
        // SAFETY: as above.
        unsafe { _mm_storeu_si128(text.to.add(at).cast(), output) };
    }
}

/// Adds up the products of a group and as many powers, after `carry` was added to the first.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
fn multiply(blocks: &[Block; GROUP], mut carry: __m128i, powers: &[Block; GROUP]) -> Product {
    let mut sum = Product::zero();
    for (block, power) in blocks.iter().zip(powers) {
        let block = _mm_xor_si128(block::reverse(block::load(block)), carry);
        sum = sum.plus(Product::new(block, block::load(power)));
        carry = _mm_setzero_si128();
    }
    sum
}

/// Number of blocks that are encrypted side by side.
const GROUP: usize = 8;
