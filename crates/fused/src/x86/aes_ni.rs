//! AES-GCM with AES-NI and PCLMULQDQ: vectors of one block, eight of them side by side.
//!
//! Blocks of text are numbered by their counters, from 2. Groups are eight blocks from a multiple of
//! eight, so the counter of each is that of the first with its place added, which needs no carry.

use std::arch::x86_64::*;

use super::block;
use super::text::Text;
use crate::schedule::{BLOCK_LEN, Block, PADDING, POWERS, Rounds, Schedule};
use block::Product;

/// Encrypts or decrypts a text and returns the tag of its ciphertext.
#[target_feature(enable = "avx,aes,pclmulqdq")]
pub(super) fn run<const ROUNDS: usize, const OPEN: bool>(
    schedule: &Schedule,
    number: u64,
    header: &[u8],
    text: &Text<'_>,
) -> __m128i {
    let cipher = Cipher::<ROUNDS>::new(schedule, number);
    let blocks = header.len().div_ceil(BLOCK_LEN) + text.len.div_ceil(BLOCK_LEN);
    let mut hash = Hash::new(&schedule.powers, blocks + 1);
    let (full, rest) = header.as_chunks::<BLOCK_LEN>();
    for block in full {
        hash.absorb(block::load(block));
    }
    if !rest.is_empty() {
        hash.absorb(block::load_part(rest));
    }
    let tag_mask = cipher.key_stream(1);

    let end = text.len + TEXT_START;
    let mut at = TEXT_START;
    while at + BLOCK_LEN <= end {
        if at.is_multiple_of(GROUP) && at + GROUP <= end {
            // SAFETY: the text has `GROUP` bytes from there on.
            hash.absorb_group(unsafe { cipher.group::<OPEN>(text, at) });
            at += GROUP;
        } else {
            // SAFETY: the text has a block from there on.
            hash.absorb(unsafe { cipher.single::<OPEN>(text, at) });
            at += BLOCK_LEN;
        }
    }
    if at < end {
        hash.absorb(cipher.part::<OPEN>(text, at));
    }
    let lengths = block::lengths(header.len(), text.len);
    _mm_xor_si128(block::reverse(hash.finish(lengths)), tag_mask)
}

/// The round keys and the nonce of one packet.
struct Cipher<'a, const ROUNDS: usize> {
    rounds: &'a Rounds,
    nonce: __m128i,
}

impl<'a, const ROUNDS: usize> Cipher<'a, ROUNDS> {
    #[inline]
    #[target_feature(enable = "avx")]
    fn new(schedule: &'a Schedule, number: u64) -> Self {
        Self {
            rounds: &schedule.rounds,
            nonce: block::nonce(&schedule.iv, number),
        }
    }

    /// Encrypts or decrypts eight blocks and returns their ciphertext. `at` is [`TEXT_START`] plus the
    /// offset in the text.
    ///
    /// # Safety
    /// The text has `GROUP` bytes from there on.
    #[inline]
    #[target_feature(enable = "avx,aes")]
    unsafe fn group<const OPEN: bool>(&self, text: &Text<'_>, at: usize) -> [__m128i; 8] {
        let base = _mm_xor_si128(
            self.counter(at / BLOCK_LEN),
            block::load(&self.rounds.keys[0]),
        );
        let mut states = [0, 1, 2, 3, 4, 5, 6, 7]
            .map(|place| _mm_xor_si128(base, _mm_set_epi64x(place << 56, 0)));
        for key in &self.rounds.keys[1..ROUNDS] {
            let key = block::load(key);
            for state in &mut states {
                *state = _mm_aesenc_si128(*state, key);
            }
        }
        let last = block::load(&self.rounds.keys[ROUNDS]);
        for (index, state) in states.iter_mut().enumerate() {
            let offset = at - TEXT_START + index * BLOCK_LEN;
            // SAFETY: the caller guarantees that the text has these bytes.
            let input = unsafe { _mm_loadu_si128(text.from.add(offset).cast()) };
            let output = _mm_aesenclast_si128(*state, _mm_xor_si128(last, input));
            // SAFETY: as above.
            unsafe { _mm_storeu_si128(text.to.add(offset).cast(), output) };
            *state = if OPEN { input } else { output };
        }
        states
    }

    /// Encrypts or decrypts one block, as [`Cipher::group`] does.
    ///
    /// # Safety
    /// The text has a block from there on.
    #[inline]
    #[target_feature(enable = "avx,aes")]
    unsafe fn single<const OPEN: bool>(&self, text: &Text<'_>, at: usize) -> __m128i {
        let offset = at - TEXT_START;
        // SAFETY: the caller guarantees that the text has these bytes.
        let input = unsafe { _mm_loadu_si128(text.from.add(offset).cast()) };
        let output = _mm_xor_si128(self.key_stream(at / BLOCK_LEN), input);
        // SAFETY: as above.
        unsafe { _mm_storeu_si128(text.to.add(offset).cast(), output) };
        if OPEN { input } else { output }
    }

    /// Encrypts or decrypts the end of the text, which is less than a block.
    #[inline]
    #[target_feature(enable = "avx,aes")]
    fn part<const OPEN: bool>(&self, text: &Text<'_>, at: usize) -> __m128i {
        let offset = at - TEXT_START;
        let len = text.len - offset;
        let [mut input, mut output] = [[0; BLOCK_LEN]; 2];
        // SAFETY: the text has `len` bytes from `offset` on, which are fewer than a block.
        unsafe {
            text.from
                .add(offset)
                .copy_to_nonoverlapping(input.as_mut_ptr(), len)
        };
        let encrypted = _mm_xor_si128(self.key_stream(at / BLOCK_LEN), block::load(&input));
        block::store(&mut output, encrypted);
        // SAFETY: as above.
        unsafe {
            text.to
                .add(offset)
                .copy_from_nonoverlapping(output.as_ptr(), len)
        };
        if OPEN {
            return block::load(&input);
        }
        output[len..].fill(0);
        block::load(&output)
    }

    #[inline]
    #[target_feature(enable = "avx,aes")]
    fn key_stream(&self, counter: usize) -> __m128i {
        block::encrypt::<ROUNDS>(self.rounds, self.counter(counter))
    }

    #[inline]
    #[target_feature(enable = "avx")]
    fn counter(&self, counter: usize) -> __m128i {
        _mm_insert_epi32(self.nonce, (counter as u32).swap_bytes() as i32, 3)
    }
}

/// The hash of a sequence of blocks: a sum of products with descending powers.
struct Hash<'a> {
    powers: &'a [Block; POWERS + PADDING],
    /// Number of blocks until the end or the next reduction.
    left: usize,
    /// Number of blocks after that reduction.
    later: usize,
    /// The reduced hash of what came before. It is added to the next block.
    carry: __m128i,
    sum: Product,
}

impl<'a> Hash<'a> {
    /// Starts the hash of `blocks` blocks, of which there is at least one.
    #[inline]
    #[target_feature(enable = "avx")]
    fn new(powers: &'a [Block; POWERS + PADDING], blocks: usize) -> Self {
        let left = blocks.min(POWERS);
        let zero = _mm_setzero_si128();
        Self {
            powers,
            left,
            later: blocks - left,
            carry: zero,
            sum: Product::zero(),
        }
    }

    /// Adds eight blocks of ciphertext.
    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    fn absorb_group(&mut self, blocks: [__m128i; 8]) {
        if self.left < blocks.len() {
            for block in blocks {
                self.absorb(block);
            }
            return;
        }
        let powers = &self.powers[POWERS - self.left..][..blocks.len()];
        for (block, power) in blocks.into_iter().zip(powers) {
            let block = self.take_carry(block::reverse(block));
            self.sum = self.sum.plus(Product::new(block, block::load(power)));
        }
        self.count(blocks.len());
    }

    /// Adds one block.
    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    fn absorb(&mut self, block: __m128i) {
        let block = self.take_carry(block::reverse(block));
        let power = block::load(&self.powers[POWERS - self.left]);
        self.sum = self.sum.plus(Product::new(block, power));
        self.count(1);
    }

    #[inline]
    #[target_feature(enable = "avx")]
    fn take_carry(&mut self, block: __m128i) -> __m128i {
        let carry = std::mem::replace(&mut self.carry, _mm_setzero_si128());
        _mm_xor_si128(block, carry)
    }

    /// Counts blocks, and reduces the sum when the powers are used up.
    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    fn count(&mut self, blocks: usize) {
        self.left -= blocks;
        if self.left == 0 && self.later > 0 {
            self.carry = self.sum.reduce();
            self.sum = Product::zero();
            self.left = self.later.min(POWERS);
            self.later -= self.left;
        }
    }

    /// Adds the block of the lengths and returns the hash.
    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    fn finish(mut self, lengths: __m128i) -> __m128i {
        let hash_key = block::load(&self.powers[POWERS - 1]);
        let lengths = self.take_carry(lengths);
        self.sum.plus(Product::new(lengths, hash_key)).reduce()
    }
}

/// Number of bytes that are encrypted side by side.
const GROUP: usize = 8 * BLOCK_LEN;

/// The place of the text among the blocks: its first counter is 2.
const TEXT_START: usize = 2 * BLOCK_LEN;
