//! Both ends of QPACK.

use courser_qpack::{Decoder, DecoderLimits, Encoder, EncoderLimits, FieldLine, Progress};

use crate::Steps;

const CAPACITY: u32 = 512;
const BLOCKED: u32 = 4;

fn decoder() -> Decoder {
    Decoder::new(DecoderLimits {
        max_table_capacity: CAPACITY,
        max_blocked_streams: BLOCKED,
    })
}

/// An encoder that says anything: no panic, bounded memory, and lines that an honest encoder can
/// say again.
pub fn qpack_decoder(bytes: &[u8]) {
    let mut hostile = decoder();
    let (mut encoder, mut honest) = pair();
    for (what, bytes) in Steps::new(bytes) {
        let stream = u64::from(what >> 2);
        let mut lines = Vec::new();
        let go_on = match what & 3 {
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
        if !go_on {
            return;
        }
        while hostile.poll_unblocked().is_some() {}
        assert!(hostile.blocked_streams() <= BLOCKED as usize);
        hostile.answers().clear();
        // The table, and one instruction that is not whole: 4 times the capacity and its length.
        assert!(hostile.memory() <= 6 * CAPACITY as usize + 64);
        let lines: Vec<_> = lines
            .iter()
            .map(|(name, value)| FieldLine::new(name, value))
            .collect();
        carry(&mut encoder, &mut honest, stream, &lines);
    }
}

/// A decoder that acknowledges anything: no panic, bounded memory, and never a section that a
/// decoder cannot read while what it says is true.
pub fn qpack_instructions(bytes: &[u8]) {
    let (mut encoder, mut honest) = pair();
    let mut is_lied_to = false;
    for (what, bytes) in Steps::new(bytes) {
        if what & 3 == 0 {
            is_lied_to = true;
            if encoder.on_decoder_stream(bytes).is_err() {
                return;
            }
        } else {
            let (name, value) = bytes.split_at(bytes.len() / 2);
            let mut line = FieldLine::new(name, value);
            line.is_sensitive = what & 3 == 1;
            let lines = [line, FieldLine::new(b"always", b"the same"), line];
            let stream = u64::from(what >> 2);
            if is_lied_to {
                encoder.encode(stream, || lines, &mut Vec::new());
                encoder.instructions().clear();
            } else {
                carry(&mut encoder, &mut honest, stream, &lines);
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

/// One section from an encoder to its decoder and its acknowledgement back.
fn carry(encoder: &mut Encoder, decoder: &mut Decoder, stream: u64, lines: &[FieldLine<'_>]) {
    let mut section = Vec::new();
    encoder.encode(stream, || lines.iter().copied(), &mut section);
    let instructions = std::mem::take(encoder.instructions());
    decoder
        .on_encoder_stream(&instructions)
        .expect("our own instructions");
    let mut expected = lines.iter();
    let progress = decoder.decode(stream, &section, |line| {
        let sent = expected.next().expect("no more lines than were sent");
        assert_eq!(line.name.as_bytes(), sent.name);
        assert_eq!(line.value.as_bytes(), sent.value);
        // The encoder may protect more than it was told to.
        assert!(line.is_sensitive || !sent.is_sensitive);
    });
    assert_eq!(progress, Ok(Progress::Decoded));
    assert!(expected.next().is_none(), "all lines");
    let answers = std::mem::take(decoder.answers());
    encoder
        .on_decoder_stream(&answers)
        .expect("our own answers");
}
