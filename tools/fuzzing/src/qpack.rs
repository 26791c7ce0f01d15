//! The encoder and the decoder of QPACK with hostile peers.

use courser_qpack::{Decoder, DecoderLimits, Encoder, EncoderLimits, FieldLine, Progress};

use crate::input::Steps;

const CAPACITY: u32 = 512;
const BLOCKED: u32 = 4;

fn decoder() -> Decoder {
    Decoder::new(DecoderLimits {
        max_table_capacity: CAPACITY,
        max_blocked_streams: BLOCKED,
    })
}

/// Passes arbitrary instructions and field sections to a decoder. It must not panic, and its memory
/// must stay bounded. An honest encoder must be able to encode the field lines that it accepted.
pub fn qpack_decoder(bytes: &[u8]) {
    let mut hostile = decoder();
    let (mut encoder, mut honest) = pair();
    for (operation, bytes) in Steps::new(bytes) {
        let stream = u64::from(operation >> 2);
        let mut lines = Vec::new();
        let is_accepted = match operation & 3 {
            0 => hostile.on_encoder_stream(bytes).is_ok(),
            1 => {
                hostile.cancel(stream);
                true
            }
            _ => {
                let result = hostile.decode(stream, bytes, |line| {
                    lines.push((line.name.to_bytes(), line.value.to_bytes()));
                });
                result.is_ok()
            }
        };
        if !is_accepted {
            return;
        }
        while hostile.poll_unblocked().is_some() {}
        assert!(hostile.blocked_streams() <= BLOCKED as usize);
        hostile.answers().clear();
        // The table and one incomplete instruction, of 4 times the capacity and its length.
        assert!(hostile.memory() <= 6 * CAPACITY as usize + 64);
        let lines: Vec<_> = lines
            .iter()
            .map(|(name, value)| FieldLine::new(name, value))
            .collect();
        round_trip(&mut encoder, &mut honest, stream, &lines);
    }
}

/// Passes arbitrary decoder instructions to an encoder. It must not panic, and its memory must stay
/// bounded. Without false instructions, a decoder must be able to read every section.
pub fn qpack_instructions(bytes: &[u8]) {
    let (mut encoder, mut honest) = pair();
    let mut had_false_instructions = false;
    for (operation, bytes) in Steps::new(bytes) {
        if operation & 3 == 0 {
            had_false_instructions = true;
            if encoder.on_decoder_stream(bytes).is_err() {
                return;
            }
        } else {
            let (name, value) = bytes.split_at(bytes.len() / 2);
            let mut line = FieldLine::new(name, value);
            line.is_sensitive = operation & 3 == 1;
            let lines = [line, FieldLine::new(b"always", b"the same"), line];
            let stream = u64::from(operation >> 2);
            if had_false_instructions {
                encoder.encode(stream, || lines, &mut Vec::new());
                encoder.instructions().clear();
            } else {
                round_trip(&mut encoder, &mut honest, stream, &lines);
            }
        }
        assert!(encoder.memory() <= CAPACITY as usize);
    }
}

fn pair() -> (Encoder, Decoder) {
    let limits = EncoderLimits {
        max_table_capacity: CAPACITY,
        max_blocked_streams: BLOCKED,
    };
    let mut encoder = Encoder::new(limits, 7);
    encoder.set_peer_limits(u64::from(CAPACITY), u64::from(BLOCKED));
    encoder.set_credit(1 << 20);
    (encoder, decoder())
}

/// Sends one section from an encoder to its decoder, and the acknowledgment back.
fn round_trip(encoder: &mut Encoder, decoder: &mut Decoder, stream: u64, lines: &[FieldLine<'_>]) {
    let mut section = Vec::new();
    encoder.encode(stream, || lines.iter().copied(), &mut section);
    let instructions = std::mem::take(encoder.instructions());
    decoder
        .on_encoder_stream(&instructions)
        .expect("instructions of an honest encoder");
    let mut expected = lines.iter();
    let progress = decoder.decode(stream, &section, |line| {
        let sent = expected.next().expect("a field line that was not sent");
        assert_eq!(line.name.as_bytes(), sent.name);
        assert_eq!(line.value.as_bytes(), sent.value);
        // The encoder may treat further field lines as sensitive.
        assert!(line.is_sensitive || !sent.is_sensitive);
    });
    assert_eq!(progress, Ok(Progress::Decoded));
    assert!(expected.next().is_none(), "field lines are missing");
    let answers = std::mem::take(decoder.answers());
    encoder
        .on_decoder_stream(&answers)
        .expect("instructions of an honest decoder");
}
