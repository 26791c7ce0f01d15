//! Parsers of packets, frames and transport parameters.

use courser_base::Side;
use courser_wire::{Frames, Packets, TransportParameters, Writer};

/// Decodes the packets of a datagram. Each must end after the one before it and within the datagram.
pub fn header(bytes: &[u8]) {
    let Some((&len, datagram)) = bytes.split_first() else {
        return;
    };
    let mut before = 0;
    for packet in Packets::new(datagram, usize::from(len) % 21).flatten() {
        assert!(packet.end > before && packet.end <= datagram.len());
        before = packet.end;
    }
}

/// Decodes the frames of a packet. Each must survive encoding and decoding again.
pub fn frames(bytes: &[u8]) {
    let mut count = 0;
    for frame in Frames::new(bytes).flatten() {
        count += 1;
        let mut buffer = vec![0; frame.encoded_len()];
        let mut writer = Writer::new(&mut buffer);
        frame.encode(&mut writer);
        assert_eq!(writer.remaining(), 0, "{frame:?}");
        let again: Vec<_> = Frames::new(&buffer).collect();
        assert_eq!(again, [Ok(frame)]);
    }
    assert!(count <= bytes.len());
}

/// Decodes transport parameters of either side. Accepted ones must survive encoding and decoding
/// again.
pub fn transport_parameters(bytes: &[u8]) {
    for side in [Side::Client, Side::Server] {
        let Ok(parameters) = TransportParameters::decode(bytes, side) else {
            continue;
        };
        let mut out = Vec::new();
        parameters.encode(&mut out, None);
        let again = TransportParameters::decode(&out, side);
        assert_eq!(again.as_ref(), Ok(&parameters));
    }
}
