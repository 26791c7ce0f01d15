//! Key logs (RFC 9850), and the keys made of them.

use std::collections::HashMap;

use courser_base::Side;
use courser_crypto::header_protection::unprotect;
use courser_crypto::{CipherSuite, HeaderKey, Keys, PacketKey, Secret};
use courser_wire::packet::short;
use courser_wire::packet_number;

/// The secrets of a key log.
#[derive(Debug, Default)]
pub(crate) struct KeyLog(HashMap<(String, [u8; 32]), Vec<u8>>);

impl KeyLog {
    /// Reads a key log. Lines that are not secrets are skipped.
    pub(crate) fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let label = words.next()?.to_owned();
            let random = from_hex(words.next()?)?.try_into().ok()?;
            Some(((label, random), from_hex(words.next()?)?))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// Returns true if no secret of a handshake is known.
    pub(crate) fn is_empty(&self) -> bool {
        !self
            .0
            .keys()
            .any(|(label, _)| label.ends_with("HANDSHAKE_TRAFFIC_SECRET"))
    }

    pub(crate) fn handshake(
        &self,
        random: [u8; 32],
        sender: Side,
        suite: CipherSuite,
        version: u32,
    ) -> Option<Keys> {
        let label = match sender {
            Side::Client => "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            Side::Server => "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        };
        let secret = self.secret(label, random, suite)?;
        Some(secret.of_version(version).keys())
    }

    pub(crate) fn one_rtt(
        &self,
        random: [u8; 32],
        sender: Side,
        suite: CipherSuite,
        version: u32,
    ) -> Option<OneRttKeys> {
        let label = match sender {
            Side::Client => "CLIENT_TRAFFIC_SECRET_0",
            Side::Server => "SERVER_TRAFFIC_SECRET_0",
        };
        let secret = self.secret(label, random, suite)?;
        Some(OneRttKeys::new(secret.of_version(version)))
    }

    fn secret(&self, label: &str, random: [u8; 32], suite: CipherSuite) -> Option<Secret> {
        let bytes = self.0.get(&(label.to_owned(), random))?;
        let fits = bytes.len() == suite.hash().output_len();
        fits.then(|| Secret::new(suite, bytes))
    }
}

/// The keys of one direction after the handshake, across key updates.
#[derive(Debug)]
pub(crate) struct OneRttKeys {
    header: HeaderKey,
    /// The keys of all generations up to the next one.
    generations: Vec<PacketKey>,
    /// The secret of the last of them.
    last: Secret,
    /// The newest generation that opened a packet.
    current: usize,
}

impl OneRttKeys {
    fn new(secret: Secret) -> Self {
        let next = secret.next();
        Self {
            header: secret.header_key(),
            generations: vec![secret.packet_key(), next.packet_key()],
            last: next,
            current: 0,
        }
    }

    /// Decrypts a packet and returns its number, its key phase and its payload.
    pub(crate) fn open(
        &mut self,
        packet: &[u8],
        number_offset: usize,
        largest: Option<u64>,
    ) -> Option<(u64, bool, Vec<u8>)> {
        let mut bytes = packet.to_vec();
        let (len, truncated) = unprotect(&self.header, &mut bytes, number_offset)?;
        let number = packet_number::expand(truncated, len, next_after(largest));
        let phase = short::key_phase_bit(bytes[0]);
        let is_current = phase == (self.current % 2 == 1);
        let tried = if is_current {
            [Some(self.current), None]
        } else {
            [Some(self.current + 1), self.current.checked_sub(1)]
        };
        for generation in tried.into_iter().flatten() {
            let key = self.generations.get(generation)?;
            let mut copy = bytes.clone();
            let (header, payload) = copy.split_at_mut(number_offset + len);
            if let Ok(len) = key.open(number, header, payload) {
                let plain = payload[..len].to_vec();
                self.on_opened(generation);
                return Some((number, phase, plain));
            }
        }
        None
    }

    fn on_opened(&mut self, generation: usize) {
        self.current = self.current.max(generation);
        if self.current + 1 == self.generations.len() {
            self.last = self.last.next();
            self.generations.push(self.last.packet_key());
        }
    }
}

/// Decrypts a packet with a long header and returns its number and its payload.
pub(crate) fn open_long(
    keys: &Keys,
    packet: &[u8],
    number_offset: usize,
    largest: Option<u64>,
) -> Option<(u64, Vec<u8>)> {
    let mut bytes = packet.to_vec();
    let (len, truncated) = unprotect(&keys.header, &mut bytes, number_offset)?;
    let number = packet_number::expand(truncated, len, next_after(largest));
    let (header, payload) = bytes.split_at_mut(number_offset + len);
    let plain = keys.packet.open(number, header, payload).ok()?;
    Some((number, payload[..plain].to_vec()))
}

/// Returns the suite with this number in the TLS registry.
pub(crate) fn suite(number: u16) -> Option<CipherSuite> {
    match number {
        0x1301 => Some(CipherSuite::Aes128Gcm),
        0x1302 => Some(CipherSuite::Aes256Gcm),
        0x1303 => Some(CipherSuite::ChaCha20Poly1305),
        _ => None,
    }
}

fn next_after(largest: Option<u64>) -> u64 {
    largest.map_or(0, |number| number + 1)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_by_label_and_random() {
        let random = "07".repeat(32);
        let text = format!(
            "# a comment\nCLIENT_HANDSHAKE_TRAFFIC_SECRET {random} {}\nbroken\n",
            "2a".repeat(32)
        );
        let log = KeyLog::parse(&text);
        assert!(!log.is_empty());
        let suite = CipherSuite::Aes128Gcm;
        assert!(log.handshake([7; 32], Side::Client, suite, 1).is_some());
        assert!(log.handshake([7; 32], Side::Server, suite, 1).is_none());
        assert!(log.handshake([8; 32], Side::Client, suite, 1).is_none());
        let longer = CipherSuite::Aes256Gcm;
        assert!(log.handshake([7; 32], Side::Client, longer, 1).is_none());
    }

    #[test]
    fn packets_are_opened_across_key_updates_and_out_of_order() {
        let secret = || Secret::new(CipherSuite::Aes128Gcm, &[9; 32]);
        let header_key = secret().header_key();
        let sealed = |generation: usize, number: u8| {
            let secret = (0..generation).fold(secret(), |secret, _| secret.next());
            let phase = if generation % 2 == 1 { 0x04 } else { 0 };
            let mut packet = vec![0x40 | phase, number];
            packet.extend([0x01; 20]);
            packet.extend([0; 16]);
            secret
                .packet_key()
                .seal_packet(u64::from(number), &mut packet, 2);
            courser_crypto::header_protection::protect(&header_key, &mut packet, 1, 1);
            packet
        };
        let mut keys = OneRttKeys::new(secret());
        let mut opened = |generation, number| {
            let found = keys.open(&sealed(generation, number), 1, None);
            found.map(|(number, phase, payload)| (number, phase, payload.len()))
        };
        assert_eq!(opened(0, 1), Some((1, false, 20)));
        assert_eq!(opened(1, 3), Some((3, true, 20)));
        assert_eq!(opened(0, 2), Some((2, false, 20)));
        assert_eq!(opened(2, 4), Some((4, false, 20)));
        assert_eq!(opened(7, 5), None);
    }
}
