//! Measures whether the time of a comparison reveals where two secrets differ (attack A67), and whether the
//! time of sealing, opening and masking a packet depends on its bytes.
//!
//! The method is that of dudect. Two classes of inputs, which differ in the first or in the last
//! byte, are compared in random order. For packets the classes are zeros and random bytes. The result is Welch's t over the times, without the slowest
//! tenth. As a control, the same is done with a comparison that stops at the first difference. If
//! that one is not detected, the machine is too noisy.
//!
//! ```sh
//! cargo run --release -p courser-crypto --example timing
//! cargo run --release -p courser-crypto --example timing --features fused
//! ```
//!
//! Exits with 0 if no comparison reveals a difference, with 1 if one does, and with 77 if the
//! machine is too noisy.

#![expect(
    clippy::disallowed_methods,
    reason = "measures the time of comparisons"
)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use courser_base::Side;
use courser_crypto::header_protection::SAMPLE_LEN;
use courser_crypto::initial::initial_keys;
use courser_crypto::token_seal::{NONCE_LEN, TokenKey};
use courser_crypto::{KeyPair, PacketKey, Rng, TAG_LEN, reset_token};
use courser_wire::{ConnectionId, VERSION_1};

fn main() -> ExitCode {
    let secret = [0x5a; reset_token::TOKEN_LEN];
    let naive = measure(SAMPLES, classes(&secret), &mut |guess| {
        early_exit(&secret, guess)
    });
    println!("{:>8.1}  control: a comparison that stops early", naive);
    if !reveals(naive) {
        println!("the machine is too noisy for a result");
        return ExitCode::from(77);
    }
    let found = [
        ("stateless reset token", reset_tokens(SAMPLES, &secret)),
        ("tag of an address token", address_tokens(SAMPLES)),
        ("tag of a packet", packets(SAMPLES)),
        ("sealing of a packet", sealing(SAMPLES)),
        ("opening of a packet", opening(SAMPLES)),
        ("mask of a header", masks(SAMPLES)),
    ];
    println!(
        "packets: {}",
        courser_crypto::CipherSuite::Aes128Gcm.implementation()
    );
    let mut code = ExitCode::SUCCESS;
    for (name, t) in found {
        let note = if reveals(t) {
            code = ExitCode::FAILURE;
            ": timing reveals the difference"
        } else {
            ""
        };
        println!("{t:>8.1}  {name}{note}");
    }
    code
}

/// Returns true if this value of t indicates a difference. NaN, the result of a clock that is too coarse,
/// indicates none.
fn reveals(t: f64) -> bool {
    t.abs() >= LIMIT
}

fn reset_tokens(samples: usize, secret: &[u8; reset_token::TOKEN_LEN]) -> f64 {
    measure(samples, classes(secret), &mut |guess| {
        let guess = guess.first_chunk().expect("as long as the secret");
        reset_token::equal(secret, guess)
    })
}

fn address_tokens(samples: usize) -> f64 {
    let key = TokenKey::new(&[7; 32]);
    let mut sealed = Vec::new();
    key.seal([9; NONCE_LEN], b"an address and a time", b"", &mut sealed);
    measure(samples, classes_of_tag(&sealed), &mut |sealed| {
        key.open(sealed, b"").is_some()
    })
}

fn packets(samples: usize) -> f64 {
    let mut sealed = vec![3; 64];
    sealed.resize(sealed.len() + TAG_LEN, 0);
    let (client, server) = initial_pair();
    client.local.packet.seal_packet(1, &mut sealed, 0);
    let key: &PacketKey = &server.peer.packet;
    let mut opened = sealed.clone();
    assert!(key.open(1, &[], &mut opened).is_ok(), "the tag is right");
    measure(samples, classes_of_tag(&sealed), &mut |sealed| {
        // A failed open destroys the packet, so each run needs a fresh copy.
        opened.copy_from_slice(sealed);
        key.open(1, &[], &mut opened).is_ok()
    })
}

/// Measures whether sealing depends on the plaintext. The ciphertext is discarded.
fn sealing(samples: usize) -> f64 {
    let (key, _) = initial_pair();
    let mut packet = vec![0; PACKET + TAG_LEN];
    measure(samples, contents(PACKET), &mut |plaintext| {
        let (text, tag) = packet
            .split_last_chunk_mut::<TAG_LEN>()
            .expect("room for the tag");
        key.local
            .packet
            .seal_from(1, &[0x40; 13], plaintext, text, tag);
        false
    })
}

/// Measures whether opening depends on the plaintext of authentic packets.
fn opening(samples: usize) -> f64 {
    let (sender, receiver) = initial_pair();
    let classes = contents(PACKET).map(|mut packet| {
        packet.resize(PACKET + TAG_LEN, 0);
        sender.local.packet.seal_packet(1, &mut packet, 0);
        packet
    });
    let mut opened = vec![0; PACKET + TAG_LEN];
    measure(samples, classes, &mut |sealed| {
        opened.copy_from_slice(sealed);
        receiver.peer.packet.open(1, &[], &mut opened).is_err()
    })
}

/// Measures whether a mask depends on the sample.
fn masks(samples: usize) -> f64 {
    let (key, _) = initial_pair();
    measure(samples, contents(SAMPLE_LEN), &mut |sample| {
        black_box(
            key.local
                .header
                .mask(sample.first_chunk().expect("16 bytes")),
        );
        false
    })
}

/// Returns the keys of both ends of one connection.
fn initial_pair() -> (KeyPair, KeyPair) {
    let id = ConnectionId::new(&[1; 8]).expect("eight bytes fit");
    let keys = |side| initial_keys(VERSION_1, &id, side);
    (keys(Side::Client), keys(Side::Server))
}

/// Returns zeros, and random bytes.
fn contents(len: usize) -> [Vec<u8>; 2] {
    let mut random = vec![0; len];
    let mut rng = Rng::new([3; 32]);
    random.fill_with(|| rng.array::<1>()[0]);
    [vec![0; len], random]
}

/// Returns two inputs that differ from `secret`, one in the first byte and one in the last.
fn classes(secret: &[u8]) -> [Vec<u8>; 2] {
    classes_from(secret, 0)
}

/// Returns two sealed messages that differ from `sealed` in the first or in the last byte of the
/// tag.
fn classes_of_tag(sealed: &[u8]) -> [Vec<u8>; 2] {
    classes_from(sealed, sealed.len() - TAG_LEN)
}

fn classes_from(secret: &[u8], first: usize) -> [Vec<u8>; 2] {
    [first, secret.len() - 1].map(|at| {
        let mut input = secret.to_vec();
        input[at] ^= 0x80;
        input
    })
}

/// Measures both classes of inputs in random order and returns Welch's t.
fn measure(count: usize, classes: [Vec<u8>; 2], compare: &mut dyn FnMut(&[u8]) -> bool) -> f64 {
    let mut rng = Rng::new([1; 32]);
    // Both classes share one buffer, so that they differ in nothing but their bytes.
    let mut input = classes[0].clone();
    let mut samples: Vec<(usize, f64)> = Vec::with_capacity(count);
    for round in 0..count + WARM_UP {
        let class = usize::from(rng.array::<1>()[0] & 1);
        input.copy_from_slice(&classes[class]);
        let began = Instant::now();
        for _ in 0..REPEATS {
            assert!(
                !black_box(compare(black_box(&input))),
                "the result is the same"
            );
        }
        let time = began.elapsed();
        if round >= WARM_UP {
            samples.push((class, time.as_secs_f64() * 1e9));
        }
    }
    welch(&crop(samples))
}

/// Compares like code that must not be used for secrets: it stops at the first difference.
#[inline(never)]
fn early_exit(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| black_box(a) == black_box(b))
}

/// Drops the slowest tenth of all samples, which interrupts and other processes have disturbed.
fn crop(mut samples: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    let mut times: Vec<f64> = samples.iter().map(|(_, time)| *time).collect();
    times.sort_by(f64::total_cmp);
    let longest = times[(times.len() - 1) * 9 / 10];
    samples.retain(|(_, time)| *time <= longest);
    samples
}

/// Returns Welch's t of two classes of samples: the distance of their means in standard errors.
fn welch(samples: &[(usize, f64)]) -> f64 {
    let [one, other] = [0, 1].map(|class| {
        let of_class = || samples.iter().filter(move |sample| sample.0 == class);
        let count = of_class().count() as f64;
        let mean = of_class().map(|(_, time)| time).sum::<f64>() / count;
        let squares: f64 = of_class().map(|(_, time)| (time - mean).powi(2)).sum();
        (mean, squares / (count - 1.0) / count)
    });
    (one.0 - other.0) / (one.1 + other.1).sqrt()
}

/// Number of samples of both classes together.
const SAMPLES: usize = 400_000;
/// Number of samples discarded while caches and clocks settle.
const WARM_UP: usize = 10_000;
/// Length of a packet that is sealed and opened, in bytes.
const PACKET: usize = 200;
/// Number of comparisons per sample, because the clock is coarse.
const REPEATS: usize = 16;
/// The t from which on a difference counts. Chance alone exceeds 5 once in a million runs; dudect
/// treats 10 as certain.
const LIMIT: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns times of both classes in turn, with noise of up to 100 ns and `more` ns added to one
    /// class.
    fn noisy(more: f64) -> Vec<(usize, f64)> {
        let mut rng = Rng::new([2; 32]);
        let samples = (0..100_000).map(|index| {
            let noise = f64::from(rng.array::<1>()[0]) / 2.55;
            // Now and then the machine runs another process.
            let pause = if index % 50 < 2 { 1e6 * noise } else { 0.0 };
            let class = index / 2 % 2;
            (class, 500.0 + noise + pause + more * class as f64)
        });
        samples.collect()
    }

    #[test]
    fn welch_agrees_with_a_calculation_by_hand() {
        let of = |class, times: [f64; 5]| times.map(|time| (class, time));
        let samples = [
            of(0, [1.0, 2.0, 3.0, 4.0, 5.0]),
            of(1, [2.0, 4.0, 6.0, 8.0, 10.0]),
        ];
        assert!((welch(&samples.concat()) + 1.8974).abs() < 1e-3);
    }

    #[test]
    fn a_difference_of_a_hundredth_is_found_in_noise() {
        assert!(welch(&crop(noisy(5.0))).abs() > LIMIT);
        assert!(welch(&crop(noisy(0.0))).abs() < LIMIT / 2.0);
        let uncropped = welch(&noisy(5.0)).abs();
        assert!(uncropped < LIMIT, "pauses hide it: {uncropped}");
    }

    /// Takes quick measurements, which can detect a comparison that stops early if they detect the control.
    /// Passes without a result on a noisy machine, where the program would exit with 77.
    #[test]
    fn comparisons_take_the_same_time_wherever_they_differ() {
        const FEW: usize = 40_000;
        let secret = [0x5a; reset_token::TOKEN_LEN];
        let control = || {
            let classes = classes(&secret);
            measure(FEW, classes, &mut |guess| early_exit(&secret, guess)).abs()
        };
        let is_found = std::iter::repeat_with(control)
            .take(5)
            .any(|t| t > 4.0 * LIMIT);
        if !is_found {
            return;
        }
        let comparisons: [(&str, &dyn Fn() -> f64); 3] = [
            ("stateless reset token", &|| reset_tokens(FEW, &secret)),
            ("tag of an address token", &|| address_tokens(FEW)),
            ("tag of a packet", &|| packets(FEW)),
        ];
        for (name, comparison) in comparisons {
            let mut tries = std::iter::repeat_with(comparison).take(3);
            assert!(!tries.all(reveals), "{name}: three times");
        }
    }

    #[test]
    fn nan_counts_as_no_difference() {
        let equal = [(0, 1.0), (1, 1.0), (0, 1.0), (1, 1.0)];
        assert!(welch(&equal).is_nan());
        assert!(!reveals(welch(&equal)));
        assert!(reveals(-LIMIT));
    }

    #[test]
    fn classes_differ_from_the_secret_in_one_byte() {
        let secret = [0x5a; reset_token::TOKEN_LEN];
        for (class, at) in classes(&secret).iter().zip([0, secret.len() - 1]) {
            let differing = (0..secret.len()).filter(|&index| class[index] != secret[index]);
            assert_eq!(differing.collect::<Vec<_>>(), [at]);
        }
        assert!(early_exit(&secret, &secret));
    }
}
