//! AES-GCM with VAES, VPCLMULQDQ and AVX-512: vectors of four blocks.
//!
//! The blocks of a packet form one sequence, in which the text starts at the third:
//!
//! ```text
//! counter   0         1         2        3        4  ...
//! block     header    header    text     text     text ...      lengths
//! power     n         n-1       n-2      n-3      n-4 ...       1
//! ```
//!
//! Vectors are four aligned blocks of it, so each counter is a multiple of four with the lane added, which needs
//! no carry. The block with counter 1 is encrypted with the first text: it masks the tag.

use std::arch::x86_64::*;

use super::block;
use crate::schedule::{BLOCK_LEN, Block, PADDING, POWERS, Schedule};
use crate::text::Text;

/// Encrypts or decrypts a text and returns the tag of its ciphertext.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,vpclmulqdq,aes,pclmulqdq")]
pub(super) fn run<const ROUNDS: usize, const OPEN: bool>(
    schedule: &Schedule,
    number: u128,
    header: &[u8],
    text: &Text<'_>,
) -> __m128i {
    let cipher = Cipher::<ROUNDS>::new(schedule, number);
    let (header_blocks, before) = split_header(&schedule.powers, header);
    let blocks = HEADER_BLOCKS + text.len.div_ceil(BLOCK_LEN) + 1;
    let mut hash = Hash::new(&schedule.powers, blocks, before);

    // Positions in the sequence, in bytes. The text starts at `HEADER_SPACE`.
    let end = HEADER_SPACE + text.len;
    let mut at;
    let first;
    if end >= GROUP {
        // SAFETY: the sequence has `GROUP` bytes, of which all but the first ones are text.
        let (mut vectors, encrypted) = unsafe { cipher.group::<OPEN, true>(text, 0) };
        first = encrypted;
        vectors[0] = join(header_blocks, vectors[0]);
        hash.absorb_group(vectors);
        at = GROUP;
        while at + GROUP <= end {
            // SAFETY: the next `GROUP` bytes are text too.
            let (vectors, _) = unsafe { cipher.group::<OPEN, false>(text, at) };
            hash.absorb_group(vectors);
            at += GROUP;
        }
    } else {
        let (vector, encrypted) = cipher.first::<OPEN>(text);
        first = encrypted;
        hash.absorb(join(header_blocks, vector));
        at = VECTOR;
    }
    while at < end {
        hash.absorb(cipher.single::<OPEN>(text, at));
        at += VECTOR;
    }
    let tag_mask = _mm256_extracti128_si256(_mm512_castsi512_si256(first), 1);
    let lengths = block::lengths(header.len(), text.len);
    _mm_xor_si128(block::reverse(hash.finish(lengths)), tag_mask)
}

/// The round keys and the nonce of one packet.
struct Cipher<const ROUNDS: usize> {
    keys: [__m512i; 15],
    /// The first round key with the low bits of the counters of four vectors.
    starts: [__m512i; 4],
    nonce: __m512i,
}

impl<const ROUNDS: usize> Cipher<ROUNDS> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn new(schedule: &Schedule, number: u128) -> Self {
        let mut keys = [_mm512_setzero_si512(); 15];
        for (key, round) in keys.iter_mut().zip(&schedule.rounds.keys[..ROUNDS + 1]) {
            *key = _mm512_broadcast_i32x4(block::load(round));
        }
        Self {
            keys,
            starts: [0, 4, 8, 12].map(|first| _mm512_xor_si512(keys[0], lanes(first))),
            nonce: _mm512_broadcast_i32x4(block::nonce(&schedule.iv, number)),
        }
    }

    /// Encrypts or decrypts four vectors, from the byte `at` of the sequence. Returns their ciphertext,
    /// and the first vector after encryption. With `FIRST` the first vector is that of [`Cipher::first`].
    ///
    /// # Safety
    /// The sequence has `GROUP` bytes from there on, and `at` is 0 with `FIRST` only.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes")]
    unsafe fn group<const OPEN: bool, const FIRST: bool>(
        &self,
        text: &Text<'_>,
        at: usize,
    ) -> ([__m512i; 4], __m512i) {
        let base = self.base(at);
        let mut states = self.starts.map(|start| _mm512_xor_si512(base, start));
        let mut inputs = [_mm512_setzero_si512(); 4];
        for (index, input) in inputs.iter_mut().enumerate() {
            *input = if FIRST && index == 0 {
                load_first(text)
            } else {
                let offset = at + index * VECTOR - HEADER_SPACE;
                // SAFETY: the caller guarantees that the text has these bytes.
                unsafe { _mm512_loadu_si512(text.from.add(offset).cast()) }
            };
        }
        for key in &self.keys[1..ROUNDS] {
            for state in &mut states {
                *state = _mm512_aesenc_epi128(*state, *key);
            }
        }
        for (state, input) in states.iter_mut().zip(inputs) {
            let last = _mm512_xor_si512(self.keys[ROUNDS], input);
            *state = _mm512_aesenclast_epi128(*state, last);
        }
        for (index, state) in states.iter().enumerate() {
            if FIRST && index == 0 {
                store_first(text, *state);
            } else {
                let offset = at + index * VECTOR - HEADER_SPACE;
                // SAFETY: the caller guarantees that the text has these bytes.
                unsafe { _mm512_storeu_si512(text.to.add(offset).cast(), *state) };
            }
        }
        (if OPEN { inputs } else { states }, states[0])
    }

    /// Encrypts or decrypts the first vector, of which the upper half is text. Returns its ciphertext, and
    /// the vector after encryption.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes")]
    fn first<const OPEN: bool>(&self, text: &Text<'_>) -> (__m512i, __m512i) {
        let input = load_first(text);
        let state = self.encrypt(_mm512_xor_si512(self.nonce, self.starts[0]), input);
        store_first(text, state);
        if OPEN {
            return (input, state);
        }
        let mask = match text.len < HEADER_SPACE {
            true => ((1 << text.len) - 1) << HEADER_SPACE,
            false => !0,
        };
        (_mm512_maskz_mov_epi8(mask, state), state)
    }

    /// Encrypts or decrypts the remaining bytes of a later vector, at most a whole one, and returns their
    /// ciphertext.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes")]
    fn single<const OPEN: bool>(&self, text: &Text<'_>, at: usize) -> __m512i {
        let offset = at - HEADER_SPACE;
        let rest = text.len - offset;
        let mask = match rest < VECTOR {
            true => (1 << rest) - 1,
            false => !0,
        };
        // SAFETY: the mask leaves out what is behind the text.
        let input = unsafe { _mm512_maskz_loadu_epi8(mask, text.from.add(offset).cast()) };
        let state = self.encrypt(_mm512_xor_si512(self.base(at), self.starts[0]), input);
        // SAFETY: the mask leaves out what is behind the text.
        unsafe { _mm512_mask_storeu_epi8(text.to.add(offset).cast(), mask, state) };
        match OPEN {
            true => input,
            false => _mm512_maskz_mov_epi8(mask, state),
        }
    }

    /// Encrypts a vector of counters, after the first round key, and adds the text.
    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn encrypt(&self, mut state: __m512i, input: __m512i) -> __m512i {
        for key in &self.keys[1..ROUNDS] {
            state = _mm512_aesenc_epi128(state, *key);
        }
        _mm512_aesenclast_epi128(state, _mm512_xor_si512(self.keys[ROUNDS], input))
    }

    /// Returns the nonce with the counter of the block at the byte `at` of the sequence, which is the
    /// start of a vector.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn base(&self, at: usize) -> __m512i {
        let counter = (at / BLOCK_LEN) as u32;
        _mm512_mask_set1_epi32(self.nonce, LAST_WORDS, counter.swap_bytes() as i32)
    }
}

/// Returns the low bits of the counters of four blocks.
#[inline]
#[target_feature(enable = "avx512f")]
fn lanes(first: i64) -> __m512i {
    let counter = |lane| (first + lane) << 56;
    _mm512_set_epi64(counter(3), 0, counter(2), 0, counter(1), 0, counter(0), 0)
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
    #[target_feature(enable = "avx512f")]
    fn new(powers: &'a [Block; POWERS + PADDING], blocks: usize, carry: __m128i) -> Self {
        let left = blocks.min(POWERS);
        Self {
            powers,
            left,
            later: blocks - left,
            carry,
            sum: Product::zero(),
        }
    }

    /// Adds sixteen blocks.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq")]
    fn absorb_group(&mut self, vectors: [__m512i; 4]) {
        let first = POWERS - self.left;
        let powers = &self.powers[first..first + 16];
        let mut vectors = vectors.map(|vector| reverse(vector));
        vectors[0] = self.take_carry(vectors[0]);
        for (vector, powers) in vectors.into_iter().zip(powers.as_chunks::<4>().0) {
            self.sum = self.sum.plus(Product::new(vector, load(powers)));
        }
        self.count(16);
    }

    /// Adds four blocks, or fewer if they are the last ones before the lengths.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq")]
    fn absorb(&mut self, vector: __m512i) {
        let first = POWERS - self.left;
        let powers = self.powers[first..].first_chunk::<4>();
        let vector = self.take_carry(reverse(vector));
        let product = Product::new(vector, load(powers.expect("padding follows the powers")));
        self.sum = self.sum.plus(product);
        self.count(4);
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn take_carry(&mut self, vector: __m512i) -> __m512i {
        let carry = _mm512_zextsi128_si512(self.carry);
        self.carry = _mm_setzero_si128();
        _mm512_xor_si512(vector, carry)
    }

    /// Counts blocks, and reduces the sum when the powers are used up.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq")]
    fn count(&mut self, blocks: usize) {
        self.left = self.left.saturating_sub(blocks);
        if self.left == 0 && self.later > 0 {
            self.carry = self.sum.fold().reduce();
            self.sum = Product::zero();
            self.left = self.later.min(POWERS);
            self.later -= self.left;
        }
    }

    /// Adds the block of the lengths and returns the hash.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq")]
    fn finish(self, lengths: __m128i) -> __m128i {
        let hash_key = block::load(&self.powers[POWERS - 1]);
        let last = block::Product::new(_mm_xor_si128(lengths, self.carry), hash_key);
        self.sum.fold().plus(last).reduce()
    }
}

/// A sum of products before its reduction, in four lanes.
#[derive(Clone, Copy)]
struct Product {
    low: __m512i,
    middle: __m512i,
    high: __m512i,
}

impl Product {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> Self {
        let zero = _mm512_setzero_si512();
        Self {
            low: zero,
            middle: zero,
            high: zero,
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    fn new(blocks: __m512i, powers: __m512i) -> Self {
        Self {
            low: _mm512_clmulepi64_epi128(blocks, powers, 0x00),
            middle: _mm512_xor_si512(
                _mm512_clmulepi64_epi128(blocks, powers, 0x01),
                _mm512_clmulepi64_epi128(blocks, powers, 0x10),
            ),
            high: _mm512_clmulepi64_epi128(blocks, powers, 0x11),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn plus(self, other: Self) -> Self {
        Self {
            low: _mm512_xor_si512(self.low, other.low),
            middle: _mm512_xor_si512(self.middle, other.middle),
            high: _mm512_xor_si512(self.high, other.high),
        }
    }

    /// Adds up the four lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn fold(self) -> block::Product {
        let add = |lanes: __m512i| {
            let half = _mm256_xor_si256(
                _mm512_castsi512_si256(lanes),
                _mm512_extracti64x4_epi64(lanes, 1),
            );
            _mm_xor_si128(
                _mm256_castsi256_si128(half),
                _mm256_extracti128_si256(half, 1),
            )
        };
        block::Product {
            low: add(self.low),
            middle: add(self.middle),
            high: add(self.high),
        }
    }

    /// Reduces each lane to a block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
    fn reduce(self) -> __m512i {
        let low = _mm512_xor_si512(self.low, _mm512_bslli_epi128(self.middle, 8));
        let high = _mm512_xor_si512(self.high, _mm512_bsrli_epi128(self.middle, 8));
        let polynomial = _mm512_broadcast_i32x4(block::polynomial());
        let fold = |low: __m512i| {
            let product = _mm512_clmulepi64_epi128(low, polynomial, 0x10);
            _mm512_xor_si512(_mm512_shuffle_epi32(low, 0x4e), product)
        };
        _mm512_xor_si512(high, fold(fold(low)))
    }
}

/// Writes the powers of a twisted hash key in descending order. What follows them stays zero.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq")]
pub(super) fn raise(hash_key: __m128i, powers: &mut [Block; POWERS + PADDING]) {
    let [fourth, third, second, first] = block::first_powers(hash_key);
    let fourths = _mm512_broadcast_i32x4(fourth);
    let multiply = |powers, by| Product::new(powers, by).reduce();
    let mut last = _mm512_zextsi128_si512(fourth);
    last = _mm512_inserti32x4(last, third, 1);
    last = _mm512_inserti32x4(last, second, 2);
    last = _mm512_inserti32x4(last, first, 3);
    let eighths = multiply(fourths, fourths);
    let mut before_last = multiply(last, fourths);
    // Two chains, so that one is multiplied while the other waits.
    for eight in powers[..POWERS].rchunks_exact_mut(8) {
        let (higher, lower) = eight.split_at_mut(4);
        store(
            lower.first_chunk_mut().expect("the slice has four blocks"),
            last,
        );
        store(
            higher.first_chunk_mut().expect("the slice has four blocks"),
            before_last,
        );
        last = multiply(last, eighths);
        before_last = multiply(before_last, eighths);
    }
}

/// Loads the text of the first vector into its upper half.
///
/// A masked load of all 64 bytes would wait for stores into what the mask leaves out: the header, and the
/// tag of the packet before. For the same reason the text is stored without a mask if it is long enough:
/// the sample of header protection can then be read at once.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load_first(text: &Text<'_>) -> __m512i {
    let half = if text.len < HEADER_SPACE {
        let mask = (1 << text.len) - 1;
        // SAFETY: the mask leaves out what is behind the text.
        unsafe { _mm256_maskz_loadu_epi8(mask, text.from.cast()) }
    } else {
        // SAFETY: the text has these bytes.
        unsafe { _mm256_loadu_si256(text.from.cast()) }
    };
    _mm512_inserti64x4(_mm512_setzero_si512(), half, 1)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn store_first(text: &Text<'_>, value: __m512i) {
    let half = _mm512_extracti64x4_epi64(value, 1);
    if text.len < HEADER_SPACE {
        let mask = (1 << text.len) - 1;
        // SAFETY: the mask leaves out what is behind the text.
        unsafe { _mm256_mask_storeu_epi8(text.to.cast(), mask, half) };
    } else {
        // SAFETY: the text has these bytes.
        unsafe { _mm256_storeu_si256(text.to.cast(), half) };
    }
}

/// Replaces the lower half of the first vector by the blocks of the header.
#[inline]
#[target_feature(enable = "avx512f")]
fn join(header: __m256i, vector: __m512i) -> __m512i {
    _mm512_inserti64x4(vector, header, 0)
}

/// Returns the last blocks of a header as the first two blocks of the sequence, and the hash of what is
/// before them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,pclmulqdq")]
fn split_header(powers: &[Block; POWERS + PADDING], header: &[u8]) -> (__m256i, __m128i) {
    let zero = _mm_setzero_si128();
    if header.len() <= BLOCK_LEN {
        let mask = ((1_u32 << header.len()) - 1) as __mmask16;
        // SAFETY: the mask leaves out what is behind the header.
        let block = unsafe { _mm_maskz_loadu_epi8(mask, header.as_ptr().cast()) };
        return (
            _mm256_inserti128_si256(_mm256_setzero_si256(), block, 1),
            zero,
        );
    }
    let blocks = header.len().div_ceil(BLOCK_LEN) - HEADER_BLOCKS;
    let (before, rest) = header.split_at(blocks * BLOCK_LEN);
    let mask = ((1_u64 << rest.len()) - 1) as __mmask32;
    // SAFETY: the mask leaves out what is behind the header.
    let last = unsafe { _mm256_maskz_loadu_epi8(mask, rest.as_ptr().cast()) };
    if before.is_empty() {
        return (last, zero);
    }
    let hash_key = block::load(&powers[POWERS - 1]);
    (last, block::hash(before.as_chunks().0, hash_key))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(blocks: &[Block; 4]) -> __m512i {
    // SAFETY: four blocks have the 64 bytes that are read.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(blocks: &mut [Block; 4], value: __m512i) {
    // SAFETY: four blocks have the 64 bytes that are written.
    unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), value) }
}

/// Reverses the bytes of each block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn reverse(blocks: __m512i) -> __m512i {
    _mm512_shuffle_epi8(blocks, _mm512_broadcast_i32x4(block::reversed_order()))
}

/// Number of bytes in a vector.
const VECTOR: usize = 64;

/// Number of bytes that are encrypted side by side.
const GROUP: usize = 4 * VECTOR;

/// Number of blocks before the text.
const HEADER_BLOCKS: usize = 2;

const HEADER_SPACE: usize = HEADER_BLOCKS * BLOCK_LEN;

/// The last word of each block, which holds the counter.
const LAST_WORDS: __mmask16 = 0x8888;

// A group ends where the powers are used up.
const _: () = assert!(POWERS.is_multiple_of(16) && PADDING >= 3);
