//! Packets of random content through a kernel and through AWS-LC: the bytes must be the same.
//!
//! `COURSER_FUSED_PACKETS` sets the number of packets for each kernel and length of key, and
//! `COURSER_SEED` the first seed.

use aws_lc_rs::aead::quic::{self, HeaderProtectionKey};
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use courser_fused::{Forged, HeaderKey, IV_LEN, Kernel, PacketKey, TAG_LEN};

use crate::generator::Generator;
use crate::kernels;

/// Lengths up to this one are equally likely.
const USUAL: usize = 2048;
/// One packet in so many has a length up to `LARGEST`.
const RARE: usize = 64;
const LARGEST: usize = 65_535;
/// Packets that share a key.
const BATCH: usize = 256;

#[test]
fn random_packets_are_sealed_and_opened_as_by_aws_lc() {
    let packets = number("COURSER_FUSED_PACKETS", 4096);
    let seed = number("COURSER_SEED", 1);
    for kernel in kernels() {
        for key_len in [16, 32] {
            let mut generator = Generator::new(seed);
            let mut left = packets;
            while left > 0 {
                let mut pair = Pair::new(kernel, key_len, &mut generator);
                let batch = left.min(BATCH as u64);
                for _ in 0..batch {
                    let len = match generator.below(RARE) {
                        0 => generator.below(LARGEST + 1),
                        _ => generator.below(USUAL + 1),
                    };
                    let header = generator.below(48);
                    pair.compare(len, header, &mut generator);
                }
                left -= batch;
            }
        }
    }
}

#[test]
fn every_length_is_sealed_and_opened_as_by_aws_lc() {
    for kernel in kernels() {
        for key_len in [16, 32] {
            let mut generator = Generator::new(2);
            let mut pair = Pair::new(kernel, key_len, &mut generator);
            for len in (0..=USUAL).chain(LARGEST - 40..=LARGEST) {
                let header = generator.below(48);
                pair.compare(len, header, &mut generator);
            }
        }
    }
}

#[test]
fn headers_of_every_length_are_authenticated_as_by_aws_lc() {
    for kernel in kernels() {
        let mut generator = Generator::new(3);
        let mut pair = Pair::new(kernel, 16, &mut generator);
        for header in (0..300).chain([1200, 1500, 65_535]) {
            let len = generator.below(700);
            pair.compare(len, header, &mut generator);
        }
    }
}

#[test]
fn masks_are_those_of_aws_lc() {
    for kernel in kernels() {
        for (key_len, algorithm) in [(16, &quic::AES_128), (32, &quic::AES_256)] {
            let mut generator = Generator::new(4);
            for _ in 0..1000 {
                let mut key = vec![0; key_len];
                let mut sample = [0; 16];
                generator.fill(&mut key);
                generator.fill(&mut sample);
                let theirs = HeaderProtectionKey::new(algorithm, &key).unwrap();
                let ours = HeaderKey::with_kernel(kernel, &key).unwrap();
                let expected = theirs.new_mask(&sample).unwrap();
                assert_eq!(ours.mask(&sample), expected, "{kernel} {key_len}");
            }
        }
    }
}

/// The same key twice, and buffers for packets.
struct Pair {
    ours: PacketKey,
    theirs: LessSafeKey,
    iv: [u8; IV_LEN],
    name: String,
    plain: Vec<u8>,
    expected: Vec<u8>,
    found: Vec<u8>,
}

impl Pair {
    fn new(kernel: Kernel, key_len: usize, generator: &mut Generator) -> Self {
        let mut key = vec![0; key_len];
        let mut iv = [0; IV_LEN];
        generator.fill(&mut key);
        generator.fill(&mut iv);
        let algorithm = if key_len == 16 {
            &AES_128_GCM
        } else {
            &AES_256_GCM
        };
        Self {
            ours: PacketKey::with_kernel(kernel, &key, &iv).expect("the kernel is available"),
            theirs: LessSafeKey::new(
                UnboundKey::new(algorithm, &key).expect("the length is right"),
            ),
            iv,
            name: format!("{kernel} with a key of {key_len} bytes"),
            plain: Vec::new(),
            expected: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Seals and opens one packet in all ways.
    fn compare(&mut self, len: usize, header_len: usize, generator: &mut Generator) {
        let path_id = generator.next() >> 32;
        // Most connections have one path.
        let path_id = if path_id & 1 == 0 { 0 } else { path_id };
        let number = u128::from(path_id) << 64 | u128::from(generator.next() >> 2);
        let mut header = vec![0; header_len];
        generator.fill(&mut header);
        self.plain.resize(len, 0);
        generator.fill(&mut self.plain);
        let case = format!("{}: {len} bytes, header of {header_len}", self.name);
        let tag = self.seal(number, &header, &case);
        self.seal_elsewhere(number, &header, tag, &case);
        self.open(number, &header, tag, &case);
        self.open_forged((number, &header, tag), &case, generator);
    }

    fn seal(&mut self, number: u128, header: &[u8], case: &str) -> [u8; TAG_LEN] {
        let [mut expected_tag, mut tag] = [[0; TAG_LEN]; 2];
        self.expected.clone_from(&self.plain);
        self.theirs
            .seal_in_place_scatter(
                self.nonce(number),
                Aad::from(header),
                &mut self.expected,
                &[],
                &mut expected_tag,
            )
            .expect("a packet is shorter than the limit of AES-GCM");
        self.found.clone_from(&self.plain);
        self.ours.seal(number, header, &mut self.found, &mut tag);
        assert!(self.found == self.expected, "ciphertext: {case}");
        assert_eq!(tag, expected_tag, "tag: {case}");
        tag
    }

    /// Seals into another buffer, between bytes that must not change.
    fn seal_elsewhere(&mut self, number: u128, header: &[u8], expected: [u8; TAG_LEN], case: &str) {
        let len = self.plain.len();
        let mut room = vec![0x5a; len + 2 * GUARD];
        let mut tag = [0; TAG_LEN];
        let to = &mut room[GUARD..GUARD + len];
        self.ours
            .seal_from(number, header, &self.plain, to, &mut tag);
        assert!(room[GUARD..GUARD + len] == self.expected[..], "{case}");
        assert_eq!(tag, expected, "{case}");
        let (before, after) = (&room[..GUARD], &room[GUARD + len..]);
        assert!(
            [before, after].concat().iter().all(|byte| *byte == 0x5a),
            "{case}"
        );
    }

    fn open(&mut self, number: u128, header: &[u8], tag: [u8; TAG_LEN], case: &str) {
        let len = self.plain.len();
        let mut room = vec![0x5a; len + 2 * GUARD];
        let text = &mut room[GUARD..GUARD + len];
        text.copy_from_slice(&self.expected);
        let opened = self.ours.open(number, header, text, &tag);
        assert_eq!(opened, Ok(()), "{case}");
        assert!(
            room[GUARD..GUARD + len] == self.plain[..],
            "plaintext: {case}"
        );
        let (before, after) = (&room[..GUARD], &room[GUARD + len..]);
        assert!(
            [before, after].concat().iter().all(|byte| *byte == 0x5a),
            "{case}"
        );
    }

    /// Changes one bit of the text, the header, the tag, the path ID or the packet number.
    fn open_forged(
        &mut self,
        (number, header, tag): (u128, &[u8], [u8; TAG_LEN]),
        case: &str,
        generator: &mut Generator,
    ) {
        let mut forged = (number, header.to_vec(), tag);
        self.found.clone_from(&self.expected);
        let flip = |bytes: &mut [u8], generator: &mut Generator| {
            let bit = generator.below(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        };
        match generator.below(4) {
            0 if !self.found.is_empty() => flip(&mut self.found, generator),
            1 if !header.is_empty() => flip(&mut forged.1, generator),
            2 => forged.0 ^= 1 << generator.below(96),
            _ => flip(&mut forged.2, generator),
        }
        let mut theirs = self.found.clone();
        let opened = self
            .ours
            .open(forged.0, &forged.1, &mut self.found, &forged.2);
        assert_eq!(opened, Err(Forged), "{case}");
        assert!(
            self.found.iter().all(|byte| *byte == 0),
            "plaintext is left: {case}"
        );
        let aad = Aad::from(&forged.1);
        self.theirs
            .open_in_place_separate_tag(self.nonce(forged.0), aad, &forged.2, &mut theirs)
            .expect_err("AWS-LC refuses the forged packet");
        assert!(self.found == theirs, "AWS-LC leaves other bytes: {case}");
    }

    /// Returns the nonce of a packet. RFC 9001 §5.3, RFC 10069 §2.4.
    fn nonce(&self, number: u128) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce.iter_mut().zip(&number.to_be_bytes()[4..]) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse().expect("the variable is a number")
    })
}

/// Number of bytes around a packet that must not change.
const GUARD: usize = 80;
