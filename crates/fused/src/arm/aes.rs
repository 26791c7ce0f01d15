//! AES-GCM with the AES and PMULL instructions of Armv8: one block in each instruction, eight of them side by
//! side.

use std::arch::aarch64::*;

use super::block::{self, Product, Vector};
use crate::blocks::{Cipher, Hash, counter_at, kernel};
use crate::schedule::{BLOCK_LEN, Block, Schedule};
use crate::text::Text;

kernel!("neon,aes");

/// Encrypts or decrypts a group from an offset of the text on.
///
/// # Safety
/// The text has `GROUP` blocks from there on.
#[inline]
#[target_feature(enable = "neon,aes")]
unsafe fn group<const ROUNDS: usize>(cipher: &Cipher<'_, ROUNDS>, text: &Text<'_>, offset: usize) {
    let keys = &cipher.rounds.keys;
    let first = counter_at(offset);
    let mut states: [Vector; GROUP] = [block::zero(); GROUP];
    for (place, state) in states.iter_mut().enumerate() {
        *state = cipher.counter(first + place);
    }
    for key in &keys[..ROUNDS - 1] {
        let key = block::load(key);
        for state in &mut states {
            *state = vaesmcq_u8(vaeseq_u8(*state, key));
        }
    }
    let (key, last) = (block::load(&keys[ROUNDS - 1]), block::load(&keys[ROUNDS]));
    for (index, state) in states.into_iter().enumerate() {
        let at = offset + index * BLOCK_LEN;
        // SAFETY: the caller guarantees that the text has these bytes.
        let input = block::load(unsafe { text.block(at) });
        let output = block::xor(vaeseq_u8(state, key), block::xor(last, input));
        // SAFETY: as above, and `input` was loaded.
        unsafe { text.write(at, block::bytes(output)) };
    }
}

/// Adds up the products of a group and as many powers, after `carry` was added to the first.
#[inline]
#[target_feature(enable = "neon,aes")]
fn multiply(blocks: &[Block; GROUP], mut carry: Vector, powers: &[Block; GROUP]) -> Product {
    let mut sum = Product::zero();
    for (block, power) in blocks.iter().zip(powers) {
        let block = block::xor(block::reverse(block::load(block)), carry);
        sum = sum.plus(Product::new(block, block::load(power)));
        carry = block::zero();
    }
    sum
}

/// Number of blocks that are encrypted side by side.
const GROUP: usize = 8;
