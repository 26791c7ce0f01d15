//! x86-64: safe functions around its kernels, and the code that they share.
//!
//! The functions here are safe: keys exist only for kernels that the processor can run, and the
//! pointers of a [`Text`] come from slices.
#![allow(unsafe_code)]

mod aes_ni;
mod avx512;
pub(crate) mod block;
mod vaes;

use std::arch::x86_64::{__m128i, _mm_testz_si128, _mm_xor_si128};

use crate::kernel::Kernel;
use crate::schedule::{MASK_LEN, Rounds, SAMPLE_LEN, Schedule, TAG_LEN};
use crate::text::Text;

/// Expands an AES key into its round keys.
pub(crate) fn expand(_: Kernel, key: &[u8], rounds: &mut Rounds) {
    // SAFETY: the caller has a kernel that is available, and each of them needs these features.
    unsafe {
        match key.first_chunk::<32>() {
            Some(key) => block::expand_256(key, rounds),
            None => block::expand_128(key.first_chunk().expect("the slice has 16 bytes"), rounds),
        }
    }
}

/// Computes the powers of the hash key from the round keys.
pub(crate) fn raise(kernel: Kernel, schedule: &mut Schedule) {
    // SAFETY: the caller has a kernel that is available.
    unsafe {
        let hash_key = match schedule.rounds.is_long {
            false => block::hash_key::<10>(&schedule.rounds),
            true => block::hash_key::<14>(&schedule.rounds),
        };
        match kernel {
            Kernel::Avx512 => avx512::raise(hash_key, &mut schedule.powers),
            Kernel::Vaes | Kernel::AesNi | Kernel::ArmAes => {
                block::raise(hash_key, &mut schedule.powers);
            }
        }
    }
}

/// Encrypts in place and returns the tag.
#[inline]
pub(crate) fn seal(
    kernel: Kernel,
    schedule: &Schedule,
    number: u128,
    header: &[u8],
    payload: &mut [u8],
) -> [u8; TAG_LEN] {
    let text = Text::in_place(payload);
    block::bytes(run::<false>(kernel, schedule, number, header, text))
}

/// Encrypts from the first text into the second, which has the same length, and returns the tag.
#[inline]
pub(crate) fn seal_from(
    kernel: Kernel,
    schedule: &Schedule,
    number: u128,
    header: &[u8],
    (from, to): (&[u8], &mut [u8]),
) -> [u8; TAG_LEN] {
    let text = Text::between(from, to);
    block::bytes(run::<false>(kernel, schedule, number, header, text))
}

/// Decrypts in place. Returns true if the tag is the right one; the caller erases the text otherwise.
#[inline]
pub(crate) fn open(
    kernel: Kernel,
    schedule: &Schedule,
    number: u128,
    (header, tag): (&[u8], &[u8; TAG_LEN]),
    ciphertext: &mut [u8],
) -> bool {
    let text = Text::in_place(ciphertext);
    let found = run::<true>(kernel, schedule, number, header, text);
    // SAFETY: the kernel needs SSE4.1, as all of them do, and the key has one that is available.
    unsafe { are_equal(found, block::load(tag)) }
}

/// Returns the mask of header protection for a sample.
#[inline]
pub(crate) fn mask(_: Kernel, rounds: &Rounds, sample: &[u8; SAMPLE_LEN]) -> [u8; MASK_LEN] {
    // SAFETY: the key has a kernel that is available, and each of them needs these features.
    let encrypted = unsafe {
        match rounds.is_long {
            false => block::encrypt_bytes::<10>(rounds, sample),
            true => block::encrypt_bytes::<14>(rounds, sample),
        }
    };
    let [mask @ .., _, _, _, _, _, _, _, _, _, _, _] = block::bytes(encrypted);
    mask
}

/// Encrypts or decrypts a text and returns the tag of its ciphertext.
#[inline]
fn run<const OPEN: bool>(
    kernel: Kernel,
    schedule: &Schedule,
    number: u128,
    header: &[u8],
    text: Text<'_>,
) -> __m128i {
    // SAFETY: the key has a kernel that is available.
    unsafe {
        match (kernel, schedule.rounds.is_long) {
            (Kernel::Avx512, false) => avx512::run::<10, OPEN>(schedule, number, header, &text),
            (Kernel::Avx512, true) => avx512::run::<14, OPEN>(schedule, number, header, &text),
            (Kernel::Vaes, false) => vaes::run::<10, OPEN>(schedule, number, header, &text),
            (Kernel::Vaes, true) => vaes::run::<14, OPEN>(schedule, number, header, &text),
            (Kernel::AesNi, false) => aes_ni::run::<10, OPEN>(schedule, number, header, &text),
            (Kernel::AesNi, true) => aes_ni::run::<14, OPEN>(schedule, number, header, &text),
            (Kernel::ArmAes, _) => unreachable!("no key exists without an available kernel"),
        }
    }
}

/// Compares two blocks without a branch on their bytes.
#[inline]
#[target_feature(enable = "sse4.1")]
fn are_equal(one: __m128i, other: __m128i) -> bool {
    let difference = _mm_xor_si128(one, other);
    _mm_testz_si128(difference, difference) == 1
}
