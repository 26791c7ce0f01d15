//! aarch64: safe functions around its kernel.
//!
//! The functions here are safe: keys exist only if the processor has the instructions, and the
//! pointers of a [`Text`] come from slices.
#![allow(unsafe_code)]

mod aes;
pub(crate) mod block;

use crate::kernel::Kernel;
use crate::schedule::{MASK_LEN, Rounds, SAMPLE_LEN, Schedule, TAG_LEN};
use crate::text::Text;

/// Expands an AES key into its round keys.
pub(crate) fn expand(_: Kernel, key: &[u8], rounds: &mut Rounds) {
    // SAFETY: the caller has a kernel that is available, and the only one needs these features.
    unsafe { block::expand(key, rounds) }
}

/// Computes the powers of the hash key from the round keys.
pub(crate) fn raise(_: Kernel, schedule: &mut Schedule) {
    // SAFETY: the caller has a kernel that is available.
    unsafe {
        let hash_key = match schedule.rounds.is_long {
            false => block::hash_key::<10>(&schedule.rounds),
            true => block::hash_key::<14>(&schedule.rounds),
        };
        block::raise(hash_key, &mut schedule.powers);
    }
}

/// Encrypts in place and returns the tag.
#[inline]
pub(crate) fn seal(
    _: Kernel,
    schedule: &Schedule,
    number: u128,
    header: &[u8],
    payload: &mut [u8],
) -> [u8; TAG_LEN] {
    block::bytes(run::<false>(
        schedule,
        number,
        header,
        &Text::in_place(payload),
    ))
}

/// Encrypts from the first text into the second, which has the same length, and returns the tag.
#[inline]
pub(crate) fn seal_from(
    _: Kernel,
    schedule: &Schedule,
    number: u128,
    header: &[u8],
    (from, to): (&[u8], &mut [u8]),
) -> [u8; TAG_LEN] {
    block::bytes(run::<false>(
        schedule,
        number,
        header,
        &Text::between(from, to),
    ))
}

/// Decrypts in place. Returns true if the tag is the right one; the caller erases the text otherwise.
#[inline]
pub(crate) fn open(
    _: Kernel,
    schedule: &Schedule,
    number: u128,
    (header, tag): (&[u8], &[u8; TAG_LEN]),
    ciphertext: &mut [u8],
) -> bool {
    let found = run::<true>(schedule, number, header, &Text::in_place(ciphertext));
    block::are_equal(found, block::load(tag))
}

/// Returns the mask of header protection for a sample.
#[inline]
pub(crate) fn mask(_: Kernel, rounds: &Rounds, sample: &[u8; SAMPLE_LEN]) -> [u8; MASK_LEN] {
    // SAFETY: the key has a kernel that is available.
    let encrypted = unsafe {
        match rounds.is_long {
            false => block::encrypt::<10>(rounds, block::load(sample)),
            true => block::encrypt::<14>(rounds, block::load(sample)),
        }
    };
    let [mask @ .., _, _, _, _, _, _, _, _, _, _, _] = block::bytes(encrypted);
    mask
}

/// Encrypts or decrypts a text and returns the tag of its ciphertext.
#[inline]
fn run<const OPEN: bool>(
    schedule: &Schedule,
    number: u128,
    header: &[u8],
    text: &Text<'_>,
) -> block::Vector {
    // SAFETY: the key has a kernel that is available.
    unsafe {
        match schedule.rounds.is_long {
            false => aes::run::<10, OPEN>(schedule, number, header, text),
            true => aes::run::<14, OPEN>(schedule, number, header, text),
        }
    }
}
