//! The peer's QPACK encoder and decoder, which are honest unless the input decides otherwise.

use courser_adversary::put_varint;
use courser_base::Side;
use courser_http3::{FieldsToSend, Settings};
use courser_qpack::{Decoder, DecoderLimits, Encoder, EncoderLimits, FieldLine, Progress};

use crate::input::Input;

/// The state of QPACK at the peer.
pub(super) struct Peer {
    encoder: Encoder,
    decoder: Decoder,
    /// Encoder instructions in transit.
    instructions: Vec<u8>,
    /// Decoder instructions in transit.
    answers: Vec<u8>,
    is_used: [bool; 3],
    had_false_instructions: bool,
    has_settings: bool,
    /// The stream type of the victim's encoder stream was received.
    has_type: bool,
}

impl Peer {
    pub(super) fn new(setup: u8) -> Self {
        let limits = EncoderLimits {
            max_table_capacity: 4096,
            max_blocked_streams: 16,
        };
        let mut encoder = Encoder::new(limits, 7);
        if setup & 8 == 0 {
            encoder.set_peer_limits(4096, 16);
        }
        encoder.set_credit(1 << 20);
        Self {
            encoder,
            decoder: Decoder::new(DecoderLimits {
                max_table_capacity: 4096,
                max_blocked_streams: 16,
            }),
            instructions: Vec::new(),
            answers: Vec::new(),
            is_used: [false; 3],
            had_false_instructions: false,
            has_settings: false,
            has_type: false,
        }
    }

    /// Returns true on the first use of a critical stream, which then needs its stream type.
    pub(super) fn is_first_use(&mut self, number: u64) -> bool {
        let used = self.is_used.get_mut(number as usize);
        used.is_some_and(|used| !std::mem::replace(used, true))
    }

    /// Gives the decoder the capacity that the first SETTINGS announced. The victim's encoder uses the
    /// dynamic table only after it has received them.
    pub(super) fn on_settings(&mut self, settings: &Settings) {
        if std::mem::replace(&mut self.has_settings, true) {
            return;
        }
        let Ok(max_table_capacity) = settings.qpack_max_table_capacity.try_into() else {
            // No decoder has a table of this size.
            return self.on_false_instruction();
        };
        self.decoder = Decoder::new(DecoderLimits {
            max_table_capacity,
            max_blocked_streams: 16,
        });
    }

    /// Records that false decoder instructions were sent.
    pub(super) fn on_false_instruction(&mut self) {
        self.had_false_instructions = true;
    }

    pub(super) fn take_instructions(&mut self, len: usize) -> Vec<u8> {
        let len = len.min(self.instructions.len());
        self.instructions.drain(..len).collect()
    }

    pub(super) fn take_answers(&mut self, len: usize) -> Vec<u8> {
        let len = len.min(self.answers.len());
        self.answers.drain(..len).collect()
    }

    /// Encodes a HEADERS frame with a valid message, arbitrary field lines, or both.
    pub(super) fn headers(&mut self, stream: u64, side: Side, input: &mut Input<'_>) -> Vec<u8> {
        let operation = input.byte();
        let mut lines: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        if operation & 8 == 0 {
            let whole: &[(&str, &str)] = match side {
                Side::Server => &REQUEST,
                Side::Client => &RESPONSE,
            };
            lines.extend(
                whole
                    .iter()
                    .map(|(name, value)| ((*name).into(), (*value).into())),
            );
        }
        for _ in 0..operation & 7 {
            lines.push(line(input));
        }
        let fields = lines.iter().map(|(name, value)| {
            let mut field = FieldLine::new(name, value);
            field.is_sensitive = operation & 16 != 0;
            field
        });
        let mut section = Vec::new();
        self.encoder.encode(stream, || fields.clone(), &mut section);
        self.instructions.append(self.encoder.instructions());
        let mut frame = Vec::new();
        put_varint(&mut frame, 1);
        put_varint(&mut frame, section.len() as u64);
        frame.extend_from_slice(&section);
        frame
    }

    /// Processes bytes of the victim's encoder stream.
    pub(super) fn on_instructions(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if !self.has_type && !bytes.is_empty() {
            assert_eq!(bytes[0], 2, "the stream type");
            self.has_type = true;
            bytes = &bytes[1..];
        }
        let result = self.decoder.on_encoder_stream(bytes);
        assert!(
            result.is_ok(),
            "instructions of an honest encoder: {result:?}"
        );
    }

    /// Checks that a HEADERS frame of the victim decodes to the field lines that it sent.
    pub(super) fn check_section(&mut self, stream: u64, frame: &[u8], fields: &FieldsToSend<'_>) {
        let mut reader = courser_wire::Reader::new(frame);
        let header = (reader.varint(), reader.varint());
        assert!(matches!(header, (Ok(1), Ok(_))), "{header:?}");
        let section = &frame[reader.offset()..];
        let mut expected = fields.lines();
        let mut is_same = true;
        let progress = self.decoder.decode(stream, section, |line| {
            let sent = expected.next();
            is_same &= sent.is_some_and(|sent| {
                line.name.as_bytes() == sent.name && line.value.as_bytes() == sent.value
            });
        });
        if !self.had_false_instructions {
            assert_eq!(progress, Ok(Progress::Decoded));
            assert!(
                is_same && expected.next().is_none(),
                "different field lines"
            );
        }
        self.answers.append(self.decoder.answers());
    }
}

const REQUEST: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a.example"),
    (":path", "/"),
];

const RESPONSE: [(&str, &str); 1] = [(":status", "200")];

/// Returns a field line: a known one, a known name with an arbitrary value, or an arbitrary one.
pub(super) fn line(input: &mut Input<'_>) -> (Vec<u8>, Vec<u8>) {
    let operation = input.byte();
    let (name, value) = KNOWN[usize::from(operation) % KNOWN.len()];
    match operation >> 6 {
        0 | 1 => (name.into(), value.into()),
        2 => (name.into(), input.bytes().to_vec()),
        _ => (input.bytes().to_vec(), input.bytes().to_vec()),
    }
}

const KNOWN: [(&str, &str); 26] = [
    (":method", "POST"),
    (":method", "CONNECT"),
    (":method", "HEAD"),
    (":scheme", "http"),
    (":authority", "b.example:443"),
    (":path", "*"),
    (":protocol", "websocket"),
    (":status", "103"),
    (":status", "304"),
    ("host", "a.example"),
    ("content-length", "5"),
    ("content-length", "0"),
    ("cookie", "a=b"),
    ("cookie", "c=d"),
    ("te", "trailers"),
    ("te", "gzip"),
    ("connection", "close"),
    ("transfer-encoding", "chunked"),
    ("priority", "u=1, i"),
    (
        "x-long",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ),
    ("Upper", "1"),
    ("x\r\ny", "1"),
    ("x", "a\r\nb"),
    ("accept", "*/*"),
    ("authorization", "secret"),
    ("", "empty"),
];
