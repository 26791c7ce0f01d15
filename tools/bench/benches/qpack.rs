//! Field sections, encoded and decoded.

use courser_qpack::{Decoder, DecoderLimits, Encoder, EncoderLimits, FieldLine, Progress};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// A section that repeats, whose lines are in the dynamic table.
#[divan::bench]
fn encode_repeated(bencher: Bencher<'_, '_>) {
    let (mut encoder, mut decoder) = pair(4096);
    let mut out = Vec::new();
    settle(&mut encoder, &mut decoder);
    bencher.bench_local(|| {
        out.clear();
        encoder.encode(0, lines, &mut out);
        // Acknowledged at once: the encoder remembers sections that are not.
        let acknowledged = encoder.on_decoder_stream(&[0x80]);
        acknowledged.expect("a section is outstanding");
    });
}

/// All lines are literals.
#[divan::bench]
fn encode_without_a_table(bencher: Bencher<'_, '_>) {
    let (mut encoder, _) = pair(0);
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        encoder.encode(0, lines, &mut out);
    });
}

#[divan::bench]
fn decode_repeated(bencher: Bencher<'_, '_>) {
    let (mut encoder, mut decoder) = pair(4096);
    settle(&mut encoder, &mut decoder);
    let mut section = Vec::new();
    encoder.encode(0, lines, &mut section);
    bencher.bench_local(|| {
        decode(&mut decoder, black_box(&section));
        decoder.answers().clear();
    });
}

#[divan::bench]
fn decode_without_a_table(bencher: Bencher<'_, '_>) {
    let (mut encoder, mut decoder) = pair(0);
    let mut section = Vec::new();
    encoder.encode(0, lines, &mut section);
    bencher.bench_local(|| decode(&mut decoder, black_box(&section)));
}

/// The first section of a connection, at both ends.
#[divan::bench]
fn first_section(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(|| pair(4096))
        .bench_local_refs(|(encoder, decoder)| {
            let mut section = Vec::new();
            encoder.encode(0, lines, &mut section);
            let instructions = std::mem::take(encoder.instructions());
            let taken = decoder.on_encoder_stream(&instructions);
            taken.expect("the encoder is honest");
            decode(decoder, &section);
        });
}

/// Returns both ends with dynamic tables of up to `capacity` bytes.
fn pair(capacity: u32) -> (Encoder, Decoder) {
    let mut encoder = Encoder::new(
        EncoderLimits {
            max_table_capacity: capacity,
            max_blocked_streams: 16,
        },
        1,
    );
    encoder.set_peer_limits(u64::from(capacity), 16);
    let decoder = Decoder::new(DecoderLimits {
        max_table_capacity: capacity,
        max_blocked_streams: 16,
    });
    (encoder, decoder)
}

/// Sends sections until all lines are in the table, and acknowledges them.
fn settle(encoder: &mut Encoder, decoder: &mut Decoder) {
    for stream in [0, 4, 8] {
        let mut section = Vec::new();
        encoder.encode(stream, lines, &mut section);
        let instructions = std::mem::take(encoder.instructions());
        let taken = decoder.on_encoder_stream(&instructions);
        taken.expect("the encoder is honest");
        let progress = decoder.decode(stream, &section, |_| {});
        assert_eq!(progress, Ok(Progress::Decoded));
        let answers = std::mem::take(decoder.answers());
        let taken = encoder.on_decoder_stream(&answers);
        taken.expect("the decoder is honest");
    }
}

fn decode(decoder: &mut Decoder, section: &[u8]) {
    let mut count = 0;
    let progress = decoder.decode(0, section, |line| {
        black_box(line.value.as_bytes());
        count += 1;
    });
    assert_eq!((progress, count), (Ok(Progress::Decoded), LINES.len()));
}

fn lines() -> impl Iterator<Item = FieldLine<'static>> {
    let line = |&(name, value): &(&'static str, &'static str)| {
        FieldLine::new(name.as_bytes(), value.as_bytes())
    };
    LINES.iter().map(line)
}

/// A request of a browser.
const LINES: [(&str, &str); 10] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "example.org"),
    (":path", "/images/picture.png"),
    ("accept", "image/avif,image/webp,*/*;q=0.8"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-language", "en-GB,en;q=0.7"),
    ("cookie", "session=0123456789abcdef"),
    ("referer", "https://example.org/"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)"),
];
