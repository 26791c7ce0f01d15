//! The integrity tag of Retry packets. RFC 9001 §5.8, RFC 9369 §3.3.3.

use std::sync::LazyLock;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use courser_wire::{ConnectionId, VERSION_2};

use crate::TAG_LEN;
use crate::reset_token::equal;

/// Computes the integrity tag of a Retry packet that answers an Initial sent to
/// `original_destination`. The version field of the packet selects the key.
pub fn tag(original_destination: &ConnectionId, retry_without_tag: &[u8]) -> [u8; TAG_LEN] {
    // The pseudo-packet is associated data, which the AEAD accepts in one piece only.
    let id_len = u8::try_from(original_destination.len()).expect("at most 20 bytes");
    let mut pseudo_packet =
        Vec::with_capacity(1 + original_destination.len() + retry_without_tag.len());
    pseudo_packet.push(id_len);
    pseudo_packet.extend_from_slice(original_destination);
    pseudo_packet.extend_from_slice(retry_without_tag);
    let mut tag = [0; TAG_LEN];
    let version = retry_without_tag.get(1..5);
    let (key, nonce) = match version == Some(&VERSION_2.to_be_bytes()[..]) {
        true => (&*KEY_2, NONCE_VERSION_2),
        false => (&*KEY_1, NONCE_VERSION_1),
    };
    key.seal_in_place_scatter(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(&pseudo_packet),
        &mut [],
        &[],
        &mut tag,
    )
    .expect("an empty plaintext is shorter than any limit of the AEAD");
    tag
}

/// Returns true if `retry`, a whole Retry packet with its tag, answers an Initial sent to
/// `original_destination`. Takes the same time for every wrong tag.
pub fn is_valid(original_destination: &ConnectionId, retry: &[u8]) -> bool {
    retry
        .split_last_chunk::<TAG_LEN>()
        .is_some_and(|(packet, seen)| equal(&tag(original_destination, packet), seen))
}

/// The keys that compute integrity tags. They are public: a tag proves only that the Retry was not
/// damaged and that its sender saw the Initial.
static KEY_1: LazyLock<LessSafeKey> = LazyLock::new(|| aes_key(&KEY_VERSION_1));
static KEY_2: LazyLock<LessSafeKey> = LazyLock::new(|| aes_key(&KEY_VERSION_2));

fn aes_key(key: &[u8; 16]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).expect("the key has 16 bytes"))
}

const KEY_VERSION_1: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];
const NONCE_VERSION_1: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];

/// The key of version 2. RFC 9369 §3.3.3.
const KEY_VERSION_2: [u8; 16] = [
    0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92,
];
const NONCE_VERSION_2: [u8; 12] = [
    0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a,
];

#[cfg(test)]
mod tests;
