//! Encodes or decodes field sections for interoperability tests; started by `interop/qpack/run`.
//!
//! It reads blocks from standard input and writes blocks to standard output, in the format of the
//! offline interop set: stream ID (8 bytes), length (4 bytes), and that many bytes. Stream 0 is the
//! encoder stream in one direction and the decoder stream in the other. A list of field lines has
//! one name, tab and value per line.

use std::io::{self, BufWriter, Read, Write};

use courser_qpack::{Decoder, DecoderLimits, Encoder, EncoderLimits, FieldLine, Progress};

const CAPACITY: u32 = 4096;
const BLOCKED: u32 = 16;

fn main() -> io::Result<()> {
    let (input, out) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    match std::env::args().nth(1).as_deref() {
        Some("encode") => encode(input, out, CAPACITY),
        Some("encode-static") => encode(input, out, 0),
        Some("decode") => decode(input, out),
        _ => Err(io::Error::other(
            "usage: qpack_peer encode|encode-static|decode",
        )),
    }
}

/// Reads lists of field lines and writes field sections and encoder instructions.
fn encode(mut input: impl Read, mut out: impl Write, capacity: u32) -> io::Result<()> {
    let limits = EncoderLimits {
        max_table_capacity: capacity,
        max_blocked_streams: BLOCKED,
    };
    let mut encoder = Encoder::new(limits, 1);
    encoder.set_peer_limits(u64::from(CAPACITY), u64::from(BLOCKED));
    encoder.set_credit(1 << 20);
    while let Some((stream, block)) = read(&mut input)? {
        if stream == 0 {
            encoder
                .on_decoder_stream(&block)
                .map_err(io::Error::other)?;
            continue;
        }
        let text = String::from_utf8(block).map_err(io::Error::other)?;
        let lines = || {
            let lines = text.lines().filter_map(|line| line.split_once('\t'));
            lines.map(|(name, value)| FieldLine::new(name.as_bytes(), value.as_bytes()))
        };
        let mut section = Vec::new();
        encoder.encode(stream, lines, &mut section);
        write(&mut out, 0, &std::mem::take(encoder.instructions()))?;
        write(&mut out, stream, &section)?;
        out.flush()?;
    }
    Ok(())
}

/// Reads field sections and encoder instructions and writes lists of field lines and decoder
/// instructions.
fn decode(mut input: impl Read, mut out: impl Write) -> io::Result<()> {
    let mut decoder = Decoder::new(DecoderLimits {
        max_table_capacity: CAPACITY,
        max_blocked_streams: BLOCKED,
    });
    while let Some((stream, block)) = read(&mut input)? {
        if stream == 0 {
            decoder
                .on_encoder_stream(&block)
                .map_err(io::Error::other)?;
            continue;
        }
        let mut list = Vec::new();
        let progress = decoder.decode(stream, &block, |line| {
            list.extend_from_slice(line.name.as_bytes());
            list.push(b'\t');
            list.extend_from_slice(line.value.as_bytes());
            list.push(b'\n');
        });
        if progress.map_err(io::Error::other)? == Progress::Blocked {
            return Err(io::Error::other("a section arrived before its entries"));
        }
        write(&mut out, 0, &std::mem::take(decoder.answers()))?;
        write(&mut out, stream, &list)?;
        out.flush()?;
    }
    Ok(())
}

/// Reads the next block. Returns `None` at the end of input.
fn read(input: &mut impl Read) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut stream = [0; 8];
    match input.read_exact(&mut stream) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let mut len = [0; 4];
    input.read_exact(&mut len)?;
    let mut block = vec![0; u32::from_be_bytes(len) as usize];
    input.read_exact(&mut block)?;
    Ok(Some((u64::from_be_bytes(stream), block)))
}

fn write(out: &mut impl Write, stream: u64, block: &[u8]) -> io::Result<()> {
    let len = u32::try_from(block.len()).map_err(io::Error::other)?;
    out.write_all(&stream.to_be_bytes())?;
    out.write_all(&len.to_be_bytes())?;
    out.write_all(block)
}
