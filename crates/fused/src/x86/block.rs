//! Single blocks: key expansion, AES, and products in the field of GHASH.

pub(crate) use std::arch::x86_64::__m128i as Vector;
use std::arch::x86_64::*;

use crate::schedule::{BLOCK_LEN, Block, PADDING, POWERS, Rounds, SAMPLE_LEN};

#[inline]
pub(crate) fn load(block: &Block) -> __m128i {
    // SAFETY: a block has the 16 bytes that are read.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
pub(crate) fn store(block: &mut Block, value: __m128i) {
    // SAFETY: a block has the 16 bytes that are written.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), value) }
}

#[inline]
pub(crate) fn bytes(value: __m128i) -> Block {
    let mut bytes = [0; BLOCK_LEN];
    store(&mut bytes, value);
    bytes
}

#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn zero() -> __m128i {
    _mm_setzero_si128()
}

#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn xor(one: __m128i, other: __m128i) -> __m128i {
    _mm_xor_si128(one, other)
}

/// Replaces the last word of a nonce by a counter.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn with_counter(nonce: __m128i, counter: u32) -> __m128i {
    _mm_insert_epi32(nonce, counter.swap_bytes() as i32, 3)
}

/// Loads less than a block, and zeros behind it.
#[inline]
pub(crate) fn load_part(bytes: &[u8]) -> __m128i {
    let mut block = [0; BLOCK_LEN];
    block[..bytes.len()].copy_from_slice(bytes);
    load(&block)
}

/// Expands a key of AES-128. FIPS 197 §5.2.
#[target_feature(enable = "avx,aes")]
pub(crate) fn expand_128(key: &[u8; 16], rounds: &mut Rounds) {
    let mut last = load(key);
    store(&mut rounds.keys[0], last);
    macro_rules! round {
        ($round:literal, $constant:literal) => {
            let word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(last, $constant), 0xff);
            last = _mm_xor_si128(spread(last), word);
            store(&mut rounds.keys[$round], last);
        };
    }
    round!(1, 0x01);
    round!(2, 0x02);
    round!(3, 0x04);
    round!(4, 0x08);
    round!(5, 0x10);
    round!(6, 0x20);
    round!(7, 0x40);
    round!(8, 0x80);
    round!(9, 0x1b);
    round!(10, 0x36);
}

/// Expands a key of AES-256. FIPS 197 §5.2.
#[target_feature(enable = "avx,aes")]
pub(crate) fn expand_256(key: &[u8; 32], rounds: &mut Rounds) {
    let mut even = load(key.first_chunk().expect("the slice has 32 bytes"));
    let mut odd = load(key.last_chunk().expect("the slice has 32 bytes"));
    store(&mut rounds.keys[0], even);
    store(&mut rounds.keys[1], odd);
    macro_rules! even {
        ($round:literal, $constant:literal) => {
            let word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(odd, $constant), 0xff);
            even = _mm_xor_si128(spread(even), word);
            store(&mut rounds.keys[$round], even);
        };
    }
    macro_rules! odd {
        ($round:literal) => {
            let word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(even, 0), 0xaa);
            odd = _mm_xor_si128(spread(odd), word);
            store(&mut rounds.keys[$round], odd);
        };
    }
    even!(2, 0x01);
    odd!(3);
    even!(4, 0x02);
    odd!(5);
    even!(6, 0x04);
    odd!(7);
    even!(8, 0x08);
    odd!(9);
    even!(10, 0x10);
    odd!(11);
    even!(12, 0x20);
    odd!(13);
    even!(14, 0x40);
}

/// Adds to each word of a key all words before it.
#[inline]
#[target_feature(enable = "avx")]
fn spread(key: __m128i) -> __m128i {
    let key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    _mm_xor_si128(key, _mm_slli_si128(key, 8))
}

/// Encrypts one block with all `ROUNDS` rounds.
#[inline]
#[target_feature(enable = "avx,aes")]
pub(crate) fn encrypt<const ROUNDS: usize>(rounds: &Rounds, block: __m128i) -> __m128i {
    let mut block = _mm_xor_si128(block, load(&rounds.keys[0]));
    for key in &rounds.keys[1..ROUNDS] {
        block = _mm_aesenc_si128(block, load(key));
    }
    _mm_aesenclast_si128(block, load(&rounds.keys[ROUNDS]))
}

#[target_feature(enable = "avx,aes")]
pub(crate) fn encrypt_bytes<const ROUNDS: usize>(
    rounds: &Rounds,
    block: &[u8; SAMPLE_LEN],
) -> __m128i {
    encrypt::<ROUNDS>(rounds, load(block))
}

/// Returns the hash key H, twisted.
#[target_feature(enable = "avx,aes")]
pub(crate) fn hash_key<const ROUNDS: usize>(rounds: &Rounds) -> __m128i {
    twist(reverse(encrypt::<ROUNDS>(rounds, _mm_setzero_si128())))
}

/// Writes the powers of a twisted hash key in descending order, and zeros behind them.
#[target_feature(enable = "avx,pclmulqdq")]
pub(crate) fn raise(hash_key: __m128i, powers: &mut [Block; POWERS + PADDING]) {
    let mut last = first_powers(hash_key);
    let fourth = last[0];
    for four in powers[..POWERS].rchunks_exact_mut(4) {
        for (power, value) in four.iter_mut().zip(&mut last) {
            store(power, *value);
            *value = multiply(*value, fourth);
        }
    }
}

/// Returns the fourth power of a twisted hash key down to the first.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub(crate) fn first_powers(hash_key: __m128i) -> [__m128i; 4] {
    let second = multiply(hash_key, hash_key);
    let third = multiply(second, hash_key);
    [multiply(second, second), third, second, hash_key]
}

/// Reverses the bytes of a block: GHASH numbers bits from the other end.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn reverse(block: __m128i) -> __m128i {
    _mm_shuffle_epi8(block, reversed_order())
}

/// Returns the order of bytes that reverses a block when it is shuffled.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn reversed_order() -> __m128i {
    _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f)
}

/// Returns the polynomial of GHASH, reversed: x^128 + x^127 + x^126 + x^121 + 1.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn polynomial() -> __m128i {
    _mm_set_epi64x(0xc200_0000_0000_0000_u64 as i64, 1)
}

/// Multiplies a block by x in the reversed field, so that products with it need no shift. A product of
/// a block and a twisted block is a block, and one of two twisted blocks is twisted.
///
/// S. Gueron, "AES-GCM for Efficient Authenticated Encryption", 2013.
#[inline]
#[target_feature(enable = "avx")]
fn twist(block: __m128i) -> __m128i {
    let carried = _mm_srli_epi64(_mm_slli_si128(block, 8), 63);
    let doubled = _mm_or_si128(_mm_slli_epi64(block, 1), carried);
    let overflow = _mm_shuffle_epi32(_mm_srai_epi32(block, 31), 0xff);
    _mm_xor_si128(doubled, _mm_and_si128(overflow, polynomial()))
}

/// A sum of products before its reduction.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub(crate) low: __m128i,
    pub(crate) middle: __m128i,
    pub(crate) high: __m128i,
}

impl Product {
    #[inline]
    #[target_feature(enable = "avx")]
    pub(crate) fn zero() -> Self {
        let zero = _mm_setzero_si128();
        Self {
            low: zero,
            middle: zero,
            high: zero,
        }
    }

    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    pub(crate) fn new(block: __m128i, power: __m128i) -> Self {
        Self {
            low: _mm_clmulepi64_si128(block, power, 0x00),
            middle: _mm_xor_si128(
                _mm_clmulepi64_si128(block, power, 0x01),
                _mm_clmulepi64_si128(block, power, 0x10),
            ),
            high: _mm_clmulepi64_si128(block, power, 0x11),
        }
    }

    #[inline]
    #[target_feature(enable = "avx")]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            low: _mm_xor_si128(self.low, other.low),
            middle: _mm_xor_si128(self.middle, other.middle),
            high: _mm_xor_si128(self.high, other.high),
        }
    }

    /// Reduces the sum to a block.
    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    pub(crate) fn reduce(self) -> __m128i {
        let low = _mm_xor_si128(self.low, _mm_slli_si128(self.middle, 8));
        let high = _mm_xor_si128(self.high, _mm_srli_si128(self.middle, 8));
        let fold = |low: __m128i| {
            let product = _mm_clmulepi64_si128(low, polynomial(), 0x10);
            _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), product)
        };
        _mm_xor_si128(high, fold(fold(low)))
    }
}

/// Multiplies a block by a twisted block.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub(crate) fn multiply(block: __m128i, power: __m128i) -> __m128i {
    Product::new(block, power).reduce()
}

/// Hashes full blocks one after the other, for headers that are longer than those of 1-RTT packets.
#[cold]
#[target_feature(enable = "avx,pclmulqdq")]
pub(crate) fn hash(blocks: &[Block], hash_key: __m128i) -> __m128i {
    let mut hash = _mm_setzero_si128();
    for block in blocks {
        hash = multiply(_mm_xor_si128(hash, reverse(load(block))), hash_key);
    }
    hash
}

/// Returns the nonce of a packet with a counter of zero, from the 96 bits of path ID and packet number.
/// RFC 9001 §5.3, RFC 10069 §2.4.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn nonce(iv: &Block, number: u128) -> __m128i {
    let number = (number << 32).swap_bytes();
    let number = _mm_set_epi64x((number >> 64) as i64, number as i64);
    _mm_xor_si128(load(iv), number)
}

/// Returns the block with the lengths of header and text, reversed.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn lengths(header: usize, text: usize) -> __m128i {
    _mm_set_epi64x(header as i64 * 8, text as i64 * 8)
}
