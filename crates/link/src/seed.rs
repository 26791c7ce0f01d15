//! Seeds derived from one seed, so that a run can be replayed exactly.

/// Derives the seed of a part from the seed of the whole and the name of the part.
///
/// Each part has its own seed, so that adding a host, a link or a random decision does not affect
/// the others.
pub fn derive(seed: u64, name: &str) -> u64 {
    let name = name.bytes().fold(FNV_OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    });
    mix(seed ^ mix(name))
}

/// Expands a seed to the 32 bytes that endpoints require.
pub fn widen(seed: u64) -> [u8; 32] {
    let mut wide = [0; 32];
    for (index, part) in (0_u64..).zip(wide.chunks_exact_mut(8)) {
        part.copy_from_slice(&mix(seed.wrapping_add(index.wrapping_mul(GOLDEN))).to_le_bytes());
    }
    wide
}

/// Returns the output of SplitMix64: every bit of the result depends on every bit of the seed.
pub const fn mix(seed: u64) -> u64 {
    finalize(seed.wrapping_add(GOLDEN))
}

/// Returns the finalizer of SplitMix64: every bit of the result depends on every bit of `z`.
pub(crate) const fn finalize(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 2^64 divided by the golden ratio, whose multiples are evenly distributed.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The offset basis of FNV-1a, 64 bits.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_seed_depends_on_name_and_seed() {
        assert_ne!(derive(1, "client"), derive(1, "server"));
        assert_ne!(derive(1, "client"), derive(2, "client"));
        assert_eq!(derive(1, "client"), derive(1, "client"));
    }

    #[test]
    fn mixing_is_splitmix64() {
        // The first outputs of the reference generator for seed 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(GOLDEN), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn wide_seed_does_not_repeat() {
        let wide = widen(7);
        assert_ne!(wide[..8], wide[8..16]);
        assert_ne!(wide[8..16], wide[16..24]);
    }
}
