use super::*;

#[test]
fn same_seed_gives_the_same_numbers() {
    let mut a = Rng::new([1; 32]);
    let mut b = Rng::new([1; 32]);
    assert_eq!([(); 100].map(|()| a.u64()), [(); 100].map(|()| b.u64()));
}

#[test]
fn different_seeds_give_different_numbers() {
    assert_ne!(
        Rng::new([1; 32]).array::<32>(),
        Rng::new([2; 32]).array::<32>()
    );
}

#[test]
fn numbers_do_not_depend_on_how_they_are_drawn() {
    let mut whole = [0; 1000];
    Rng::new([1; 32]).fill(&mut whole);
    let mut pieces = Rng::new([1; 32]);
    let mut position = 0;
    for len in (1..).take_while(|len| len * (len + 1) / 2 <= 1000) {
        let mut piece = vec![0; len];
        pieces.fill(&mut piece);
        assert_eq!(piece, whole[position..][..len], "at {position}");
        position += len;
    }
}

/// AES-256 in counter mode with a zero key and a zero counter starts with the encryption of the
/// zero block, a known answer. It becomes the first half of the next key and is never returned.
#[test]
fn first_pool_is_aes_256_in_counter_mode() {
    let mut rng = Rng::new([0; 32]);
    rng.fill(&mut [0]);
    assert_eq!(
        rng.key[..16],
        [
            0xdc, 0x95, 0xc0, 0x78, 0xa2, 0x40, 0x89, 0x89, 0xad, 0x48, 0xa2, 0x14, 0x92, 0x84,
            0x20, 0x87
        ]
    );
}

#[test]
fn drawn_bytes_are_erased() {
    let mut rng = Rng::new([1; 32]);
    rng.fill(&mut [0; 100]);
    let pool = rng
        .pool
        .as_ref()
        .expect("the first number allocates the pool");
    assert_eq!(pool.bytes[..KEY_LEN + 100], [0; KEY_LEN + 100]);
    assert_ne!(rng.key, [1; 32]);
}

#[test]
fn numbers_after_the_pool_is_dropped_are_those_of_the_next_pool() {
    let mut whole = [0; 2 * (POOL_LEN - KEY_LEN)];
    Rng::new([1; 32]).fill(&mut whole);
    let mut rng = Rng::new([1; 32]);
    rng.shrink();
    assert_eq!(rng.array::<100>(), whole[..100]);
    rng.shrink();
    assert_eq!(rng.array::<100>(), whole[POOL_LEN - KEY_LEN..][..100]);
}

#[test]
fn fork_is_deterministic_and_independent() {
    let mut parent = Rng::new([1; 32]);
    let mut child = parent.fork();
    let mut again = Rng::new([1; 32]).fork();
    let first: [u8; 64] = child.array();
    assert_eq!(first, again.array());
    assert_ne!(first, parent.array());
}

#[test]
fn numbers_below_a_bound_are_uniform() {
    let mut rng = Rng::new([1; 32]);
    let mut seen = [0_u32; 7];
    for _ in 0..7000 {
        seen[usize::try_from(rng.below(7)).unwrap()] += 1;
    }
    assert!(
        seen.iter().all(|count| (850..1150).contains(count)),
        "{seen:?}"
    );
    assert_eq!(rng.below(1), 0);
    assert!((0..1000).all(|_| rng.below(u64::MAX) < u64::MAX));
}

#[test]
fn bits_are_balanced() {
    let mut bytes = [0; 100_000];
    Rng::new([1; 32]).fill(&mut bytes);
    let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
    assert!((398_000..402_000).contains(&ones), "{ones}");
}

#[test]
#[should_panic(expected = "no number below zero")]
fn below_zero_panics() {
    Rng::new([1; 32]).below(0);
}
