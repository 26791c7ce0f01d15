//! Measures the time that one packet takes: sealing, opening, the mask of its header, and a new key, with
//! each kernel and with AWS-LC.
//!
//! ```sh
//! cargo run --release -p courser-fused --example packets
//! ```
//!
//! Each figure is the least of many rounds over 64 packets in nanoseconds, and in parentheses the median.

#![expect(clippy::disallowed_methods, reason = "measures the time of packets")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::quic::{self, HeaderProtectionKey};
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use courser_fused::{HeaderKey, IV_LEN, Kernel, PacketKey, TAG_LEN};

fn main() {
    for key_len in [16, 32] {
        println!("AES-{}-GCM, ns per packet: least (median)", key_len * 8);
        print!("{:<24}", "");
        for len in LENGTHS {
            print!("{:>16}", format!("seal {len}"));
        }
        for len in LENGTHS {
            print!("{:>16}", format!("open {len}"));
        }
        println!("{:>14}{:>16}{:>16}", "mask", "seal+mask 1424", "new key");
        let key = vec![7; key_len];
        row("AWS-LC", &Library::new(&key), &|| {
            drop(black_box(Library::new(&key)));
        });
        for kernel in Kernel::ALL
            .iter()
            .copied()
            .filter(|kernel| kernel.is_available())
        {
            let new = || Fused::new(kernel, &key);
            row(kernel.name(), &new(), &|| drop(black_box(new())));
        }
    }
}

/// A key of payloads and one of headers.
trait Keys {
    fn seal(&self, number: u64, header: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]);
    /// Returns true if the packet is authentic.
    fn open(&self, number: u64, header: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool;
    fn mask(&self, sample: &[u8; 16]) -> [u8; 5];
}

fn row(name: &str, keys: &impl Keys, new_keys: &dyn Fn()) {
    print!("{name:<24}");
    for len in LENGTHS {
        let mut packets = Packets::new(len);
        print!("{:>16}", measure(|| packets.seal(keys, false)));
    }
    for len in LENGTHS {
        let mut sealed = Packets::new(len);
        sealed.seal(keys, false);
        let mut packets = Packets::new(len);
        print!(
            "{:>16}",
            measure_after(
                &mut packets,
                |packets| packets.clone_from(&sealed),
                |packets| {
                    packets.open(keys);
                }
            )
        );
    }
    let sample = [3; 16];
    let mask = measure(|| {
        for _ in 0..PACKETS {
            black_box(keys.mask(black_box(&sample)));
        }
    });
    let mut packets = Packets::new(1424);
    let both = measure(|| packets.seal(keys, true));
    let new_key = measure(|| (0..PACKETS).for_each(|_| new_keys()));
    println!("{mask:>14}{both:>16}{new_key:>16}");
}

/// Runs a round of packets many times.
fn measure(mut round: impl FnMut()) -> String {
    measure_after(&mut (), |()| (), |()| round())
}

/// Runs a round of packets many times, each after a preparation that is not measured.
fn measure_after<T>(
    state: &mut T,
    mut prepare: impl FnMut(&mut T),
    mut round: impl FnMut(&mut T),
) -> String {
    let mut times: Vec<Duration> = (0..ROUNDS + WARM_UP)
        .map(|_| {
            prepare(state);
            let began = Instant::now();
            round(state);
            began.elapsed()
        })
        .skip(WARM_UP)
        .collect();
    times.sort();
    let each = |time: Duration| time.as_nanos() as f64 / PACKETS as f64;
    format!("{:.1} ({:.1})", each(times[0]), each(times[ROUNDS / 2]))
}

/// Packets side by side in memory, as in a batch.
#[derive(Clone)]
struct Packets {
    bytes: Vec<u8>,
    len: usize,
}

impl Packets {
    fn new(len: usize) -> Self {
        Self {
            bytes: vec![1; PACKETS * (HEADER_LEN + len + TAG_LEN)],
            len,
        }
    }

    fn seal(&mut self, keys: &impl Keys, masks: bool) {
        let packets = self.bytes.chunks_exact_mut(HEADER_LEN + self.len + TAG_LEN);
        for (packet, number) in packets.zip(0..) {
            let (header, body) = packet.split_at_mut(HEADER_LEN);
            let (payload, tag) = body.split_last_chunk_mut().expect("room for the tag");
            keys.seal(number, header, payload, tag);
            if masks {
                let mask = keys.mask(payload.first_chunk().expect("the payload has a sample"));
                header
                    .iter_mut()
                    .zip(mask)
                    .for_each(|(byte, mask)| *byte ^= mask);
            }
        }
    }

    fn open(&mut self, keys: &impl Keys) {
        let packets = self.bytes.chunks_exact_mut(HEADER_LEN + self.len + TAG_LEN);
        for (packet, number) in packets.zip(0..) {
            let (header, body) = packet.split_at_mut(HEADER_LEN);
            let (payload, tag) = body.split_last_chunk_mut().expect("room for the tag");
            assert!(keys.open(number, header, payload, tag), "it is authentic");
        }
    }
}

struct Fused {
    packet: PacketKey,
    header: HeaderKey,
}

impl Fused {
    fn new(kernel: Kernel, key: &[u8]) -> Self {
        Self {
            packet: PacketKey::with_kernel(kernel, key, &[9; IV_LEN])
                .expect("the kernel is available"),
            header: HeaderKey::with_kernel(kernel, key).expect("the kernel is available"),
        }
    }
}

impl Keys for Fused {
    fn seal(&self, number: u64, header: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        self.packet.seal(number.into(), header, payload, tag);
    }

    fn open(&self, number: u64, header: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        self.packet
            .open(number.into(), header, payload, tag)
            .is_ok()
    }

    fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        self.header.mask(sample)
    }
}

struct Library {
    packet: LessSafeKey,
    header: HeaderProtectionKey,
}

impl Library {
    fn new(key: &[u8]) -> Self {
        let (packet, header) = match key.len() {
            16 => (&AES_128_GCM, &quic::AES_128),
            _ => (&AES_256_GCM, &quic::AES_256),
        };
        Self {
            packet: LessSafeKey::new(UnboundKey::new(packet, key).expect("the length is right")),
            header: HeaderProtectionKey::new(header, key).expect("the length is right"),
        }
    }
}

impl Keys for Library {
    fn seal(&self, number: u64, header: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        self.packet
            .seal_in_place_scatter(nonce(number), Aad::from(header), payload, &[], tag)
            .expect("a packet is shorter than the limit of AES-GCM");
    }

    fn open(&self, number: u64, header: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        self.packet
            .open_in_place_separate_tag(nonce(number), Aad::from(header), tag, payload)
            .is_ok()
    }

    fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        self.header.new_mask(sample).expect("a sample has 16 bytes")
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [9; IV_LEN];
    nonce[4..].copy_from_slice(&(0x0909_0909_0909_0909 ^ number).to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Length of the short header: eight bytes of connection ID and four of packet number.
const HEADER_LEN: usize = 13;
/// Lengths of payloads. 1424 bytes are those of a datagram of 1452 with a connection ID of eight bytes.
const LENGTHS: [usize; 4] = [64, 256, 1200, 1424];
/// Packets of a round.
const PACKETS: usize = 64;
const ROUNDS: usize = 2000;
const WARM_UP: usize = 200;
