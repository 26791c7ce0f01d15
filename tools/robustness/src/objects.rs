//! Objects whose content both ends can compute.

use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;

/// The sizes of the objects: short responses, pages, and long transfers.
const SIZES: [usize; 8] = [
    200,
    1000,
    5000,
    20_000,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];

/// The number of short objects, which fit into an immediate response.
pub(super) const SHORT: usize = 4;

/// The number of objects below one megabyte.
pub(super) const MEDIUM: usize = 6;

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) bytes: Bytes,
    /// The SHA-256 hash of the bytes in hexadecimal.
    pub(super) hash: String,
}

/// Returns all objects by their number.
pub(super) fn all() -> Arc<[Object]> {
    let objects = SIZES.iter().zip(0_u64..).map(|(size, number)| {
        let bytes = content(number, *size);
        let hash = hash(&bytes);
        Object { bytes, hash }
    });
    objects.collect()
}

/// Writes each object to the file `obj/NUMBER`.
pub(super) fn write(folder: &Path) -> std::io::Result<()> {
    let folder = folder.join("obj");
    std::fs::create_dir_all(&folder)?;
    for (number, object) in all().iter().enumerate() {
        std::fs::write(folder.join(number.to_string()), &object.bytes)?;
    }
    Ok(())
}

/// Returns the SHA-256 hash in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns incompressible bytes without repetitions, so that misplaced pieces are detected.
fn content(number: u64, size: usize) -> Bytes {
    let mut state = number.wrapping_add(1).wrapping_mul(GOLDEN);
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        // SplitMix64.
        state = state.wrapping_add(GOLDEN);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes.truncate(size);
    Bytes::from(bytes)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_different_and_always_the_same() {
        let (first, second) = (all(), all());
        for (number, object) in first.iter().enumerate() {
            assert_eq!(object.bytes.len(), SIZES[number]);
            assert_eq!(object.hash, second[number].hash, "{number}");
            assert_ne!(
                object.bytes[..8],
                first[(number + 1) % 8].bytes[..8],
                "{number}"
            );
        }
    }

    #[test]
    fn hash_is_sha_256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(b""), empty);
    }
}
