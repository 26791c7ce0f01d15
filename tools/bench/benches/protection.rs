//! Packet protection: AES-GCM, ChaCha20-Poly1305, header protection, new keys.

use courser_crypto::{CipherSuite, PacketKey, Secret, TAG_LEN, header_protection};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

#[divan::bench(args = CASES)]
fn seal(bencher: Bencher<'_, '_>, (suite, len): (CipherSuite, usize)) {
    let key = secret(suite).packet_key();
    let mut packet = vec![0; HEADER_LEN + len + TAG_LEN];
    let mut number = 0;
    bencher.counter(BytesCount::new(len)).bench_local(|| {
        number += 1;
        key.seal_packet(number, black_box(&mut packet), HEADER_LEN);
    });
}

#[divan::bench(args = CASES)]
fn open(bencher: Bencher<'_, '_>, (suite, len): (CipherSuite, usize)) {
    let key = secret(suite).packet_key();
    let packet = sealed(&key, len);
    bencher
        .counter(BytesCount::new(len))
        .with_inputs(|| packet.clone())
        .bench_local_refs(|packet| {
            let (header, payload) = packet.split_at_mut(HEADER_LEN);
            key.open(1, header, payload).expect("it is authentic")
        });
}

#[divan::bench(args = SUITES)]
fn mask_header(bencher: Bencher<'_, '_>, suite: CipherSuite) {
    let key = secret(suite).header_key();
    let mut packet = vec![0x40; 1200];
    bencher.bench_local(|| header_protection::protect(&key, black_box(&mut packet), 9, 2));
}

#[divan::bench(args = SUITES)]
fn derive_keys(bencher: Bencher<'_, '_>, suite: CipherSuite) {
    let secret = secret(suite);
    bencher.bench_local(|| black_box(&secret).keys());
}

fn secret(suite: CipherSuite) -> Secret {
    Secret::new(suite, &vec![9; suite.hash().output_len()])
}

fn sealed(key: &PacketKey, len: usize) -> Vec<u8> {
    let mut packet = vec![0; HEADER_LEN + len + TAG_LEN];
    key.seal_packet(1, &mut packet, HEADER_LEN);
    packet
}

const SUITES: [CipherSuite; 3] = [
    CipherSuite::Aes128Gcm,
    CipherSuite::Aes256Gcm,
    CipherSuite::ChaCha20Poly1305,
];
/// A small packet and a full one with each suite.
const CASES: [(CipherSuite, usize); 6] = [
    (CipherSuite::Aes128Gcm, 64),
    (CipherSuite::Aes128Gcm, 1424),
    (CipherSuite::Aes256Gcm, 64),
    (CipherSuite::Aes256Gcm, 1424),
    (CipherSuite::ChaCha20Poly1305, 64),
    (CipherSuite::ChaCha20Poly1305, 1424),
];
/// Eight bytes of connection ID and two of packet number.
const HEADER_LEN: usize = 11;
