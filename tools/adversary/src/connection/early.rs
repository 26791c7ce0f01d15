//! 0-RTT packets of a hostile client. RFC 9001 §4.6, §5.6.

use courser_crypto::{Keys, Space, TAG_LEN, header_protection};
use courser_wire::packet::{LongHeader, PacketKind, patch_length};
use courser_wire::{VERSION_1, Writer, packet_number};

use super::Connection;
use super::send::NUMBER_LEN;

impl Connection {
    /// Returns true if the client resumes a session that permits early data: then 0-RTT packets can be
    /// sent.
    pub fn begin_early(&mut self) -> bool {
        if self.early.is_none() {
            let secret = self.tls.take_early_secret();
            self.early = secret.map(|secret| secret.keys());
        }
        self.early.is_some()
    }

    /// Queues a datagram with one 0-RTT packet of these encoded frames, if there are keys for it, whatever the state
    /// of the handshake.
    pub fn send_early(&mut self, frames: &[Vec<u8>]) {
        let number = self.next_number(Space::Application);
        if let Some(keys) = &self.early {
            let datagram = self.seal_early(keys, number, frames);
            self.datagrams.push_back(datagram);
            self.skip_numbers(Space::Application, 1);
        }
    }

    fn seal_early(&self, keys: &Keys, number: u64, frames: &[Vec<u8>]) -> Vec<u8> {
        let header = LongHeader {
            kind: PacketKind::ZeroRtt,
            version: VERSION_1,
            destination: self.peer_id,
            source: self.local_id,
            token: &[],
        };
        let mut bytes = vec![0; header.encoded_len() + NUMBER_LEN];
        let mut writer = Writer::new(&mut bytes);
        let length_at = header.encode(&mut writer, NUMBER_LEN);
        packet_number::write(&mut writer, number, NUMBER_LEN);
        let header_len = writer.position();
        bytes.truncate(header_len);
        frames
            .iter()
            .for_each(|frame| bytes.extend_from_slice(frame));
        bytes.resize(bytes.len() + TAG_LEN, 0);
        let number_at = header_len - NUMBER_LEN;
        let len = bytes.len() - number_at;
        patch_length(&mut bytes, length_at, len);
        keys.packet.seal_packet(number, &mut bytes, header_len);
        header_protection::protect(&keys.header, &mut bytes, number_at, NUMBER_LEN);
        bytes
    }
}
