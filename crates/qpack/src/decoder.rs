//! The decoder (RFC 9204 §2.2).

use bytes::Bytes;
use courser_telemetry::{Pending, QpackRecord};

use crate::blocked::Blocked;
use crate::decoder_stream::Instruction as DecoderInstruction;
use crate::dynamic_table::{DynamicTable, Entry};
use crate::encoder_stream::{Instruction, NameSource};
use crate::error::{Error, Malformed};
use crate::field_line::{DecodedLine, Origin, Text};
use crate::insert_count;
use crate::records::{self, Records};
use crate::representation::{Prefix, Reference, Representation};
use crate::static_table;
use crate::string::Literal;

/// Limits for the peer's encoder. The caller sends them in SETTINGS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecoderLimits {
    /// The largest capacity of the dynamic table in bytes, `SETTINGS_QPACK_MAX_TABLE_CAPACITY`.
    pub max_table_capacity: u32,
    /// The largest number of blocked streams at a time, `SETTINGS_QPACK_BLOCKED_STREAMS`.
    pub max_blocked_streams: u32,
}

/// The result of decoding a field section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All field lines were passed to the sink.
    Decoded,
    /// The section refers to entries that have not arrived, and no field line was passed to the
    /// sink. Decode it again when [`Decoder::poll_unblocked`] returns its stream.
    Blocked,
}

/// Decodes the field sections of a connection.
#[derive(Debug)]
pub struct Decoder {
    limits: DecoderLimits,
    table: DynamicTable,
    blocked: Blocked,
    /// The first bytes of an incomplete instruction.
    partial: Vec<u8>,
    /// Decoded Huffman strings of the current field line.
    scratch: Vec<u8>,
    /// Instructions to send on the decoder stream.
    answers: Vec<u8>,
    /// Number of inserts that have been acknowledged to the peer.
    acknowledged: u64,
    /// Number of encoder instructions applied so far.
    applied: u64,
    /// The Required Insert Count of the section that was decoded last.
    required: u64,
    records: Records,
}

impl Decoder {
    /// Creates a decoder with an empty dynamic table. The peer's encoder sets its capacity.
    pub fn new(limits: DecoderLimits) -> Self {
        Self {
            limits,
            table: DynamicTable::default(),
            blocked: Blocked::default(),
            partial: Vec::new(),
            scratch: Vec::new(),
            answers: Vec::new(),
            acknowledged: 0,
            applied: 0,
            required: 0,
            records: Records::new(true),
        }
    }

    /// Returns the records of this decoder, its table and its instructions. They are off initially.
    pub fn records(&mut self) -> &mut Pending {
        self.records.pending()
    }

    /// Processes bytes received on the encoder stream. They must be in order but may be split anywhere.
    ///
    /// # Errors
    ///
    /// [`Error::EncoderStream`] if an instruction is invalid.
    pub fn on_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.partial.is_empty() {
            let mut input = bytes;
            self.apply_instructions(&mut input)?;
            self.partial.extend_from_slice(input);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            let mut input = &joined[..];
            self.apply_instructions(&mut input)?;
            let consumed = joined.len() - input.len();
            joined.drain(..consumed);
            self.partial = joined;
        }
        self.records.state(&self.table, self.acknowledged);
        Ok(())
    }

    /// Decodes a field section of `stream` and passes its field lines to `sink` in order.
    ///
    /// # Errors
    ///
    /// [`Error::DecompressionFailed`] if the section is invalid or would exceed the limit of blocked
    /// streams. Some field lines may already have been passed to `sink`.
    pub fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        sink: impl FnMut(DecodedLine<'_>),
    ) -> Result<Progress, Error> {
        let mut input = section;
        let prefix = Prefix::decode(&mut input).map_err(decompression_failed)?;
        let required = self.blocked.required(stream).or_else(|| {
            insert_count::decode(
                prefix.encoded_insert_count,
                self.table.insert_count(),
                u64::from(self.limits.max_table_capacity),
            )
        });
        let required =
            required.ok_or(Error::DecompressionFailed("invalid Required Insert Count"))?;
        let base = prefix
            .base(required)
            .ok_or(Error::DecompressionFailed("negative Base"))?;
        if required > self.table.insert_count() {
            let most = self.limits.max_blocked_streams as usize;
            let was_blocked = self.blocked.required(stream).is_some();
            return if self.blocked.add(required, stream, most) {
                if !was_blocked {
                    self.record_blocked(stream, true);
                }
                Ok(Progress::Blocked)
            } else {
                Err(Error::DecompressionFailed(
                    "more blocked streams than allowed",
                ))
            };
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let lines = SectionDecoder {
            table: &self.table,
            base,
            required,
            needed: 0,
        };
        let result = lines.decode(input, &mut scratch, sink);
        if scratch.capacity() <= MAX_SCRATCH {
            self.scratch = scratch;
        }
        result?;
        self.required = required;
        self.repeat(stream, required);
        Ok(Progress::Decoded)
    }

    /// Returns a number that changes whenever identical bytes could decode to other field lines.
    pub const fn state(&self) -> u64 {
        self.applied
    }

    /// Returns the Required Insert Count of the section that was decoded last.
    pub const fn required(&self) -> u64 {
        self.required
    }

    /// Acknowledges a section that the caller does not decode, because its bytes equal those of a
    /// section decoded in the same [`state`](Self::state). `required` is the
    /// [Required Insert Count](Self::required) of that section.
    pub fn repeat(&mut self, stream: u64, required: u64) {
        self.blocked.remove(stream);
        if required > 0 {
            self.acknowledged = self.acknowledged.max(required);
            self.answer(DecoderInstruction::SectionAcknowledgment { stream });
            self.records.state(&self.table, self.acknowledged);
        }
    }

    /// Returns a stream that is no longer blocked. Call this until it returns `None` after each
    /// [`on_encoder_stream`](Self::on_encoder_stream).
    pub fn poll_unblocked(&mut self) -> Option<u64> {
        let stream = self.blocked.pop(self.table.insert_count())?;
        self.record_blocked(stream, false);
        Some(stream)
    }

    /// Returns the number of blocked streams.
    pub fn blocked_streams(&self) -> usize {
        self.blocked.len()
    }

    /// Cancels a stream that was reset or is no longer read (§2.2.2.2).
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.remove(stream);
        if self.limits.max_table_capacity > 0 {
            self.answer(DecoderInstruction::StreamCancellation { stream });
        }
    }

    /// Returns the bytes to send on the decoder stream. The caller removes from the front what it
    /// has sent.
    ///
    /// The buffer grows with every section while nothing is sent. A caller without flow control
    /// credit on the decoder stream should therefore stop accepting requests (§7.3).
    pub fn answers(&mut self) -> &mut Vec<u8> {
        let increment = self.table.insert_count() - self.acknowledged;
        if increment > 0 {
            self.acknowledged += increment;
            self.answer(DecoderInstruction::InsertCountIncrement(increment));
            self.records.state(&self.table, self.acknowledged);
        }
        &mut self.answers
    }

    /// Returns true if [`answers`](Self::answers) would return bytes to send.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty() || self.table.insert_count() > self.acknowledged
    }

    /// Returns the bytes used by dynamic table entries, by an incomplete instruction, and by
    /// [`answers`](Self::answers) not yet sent.
    pub fn memory(&self) -> usize {
        self.table.capacity() - self.table.free_capacity() + self.partial.len() + self.answers.len()
    }

    fn answer(&mut self, instruction: DecoderInstruction) {
        instruction.encode(&mut self.answers);
        self.records.created(|| instruction.record());
    }

    fn record_blocked(&mut self, stream: u64, is_blocked: bool) {
        self.records
            .pending()
            .qpack(|| QpackRecord::StreamStateUpdated { stream, is_blocked });
    }

    /// Applies all complete instructions and leaves an incomplete one in `input`.
    fn apply_instructions(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        while !input.is_empty() {
            // The longest Huffman code has thirty bits, almost four bytes per character.
            let most = self.table.capacity().saturating_mul(4);
            match Instruction::decode(input, most) {
                Ok(instruction) => self.apply(instruction)?,
                Err(Malformed::Incomplete) => break,
                Err(Malformed::Invalid(reason)) => return Err(Error::EncoderStream(reason)),
            }
        }
        Ok(())
    }

    fn apply(&mut self, instruction: Instruction<'_>) -> Result<(), Error> {
        self.applied += 1;
        self.records.parsed(|| records::of_encoder(&instruction));
        let first = self.table.oldest();
        let entry = match instruction {
            Instruction::SetCapacity(capacity) => {
                if capacity > u64::from(self.limits.max_table_capacity) {
                    return Err(Error::EncoderStream("capacity above the maximum"));
                }
                self.table.set_capacity(capacity as usize); // At most the limit, which has 32 bits.
                self.records.evicted(first, self.table.oldest());
                return Ok(());
            }
            Instruction::InsertWithNameReference { name, value } => Entry {
                name: self.resolve_name(name)?,
                value: decode_owned(value)?,
            },
            Instruction::InsertWithLiteralName { name, value } => Entry {
                name: decode_owned(name)?,
                value: decode_owned(value)?,
            },
            Instruction::Duplicate(distance) => self
                .table
                .get_relative(distance)
                .ok_or(Error::EncoderStream("duplicate of a missing entry"))?
                .clone(),
        };
        if self.table.insert(entry) {
            self.records.evicted(first, self.table.oldest());
            self.records.newest(&self.table);
            Ok(())
        } else {
            Err(Error::EncoderStream("entry larger than the table"))
        }
    }

    fn resolve_name(&self, source: NameSource) -> Result<Bytes, Error> {
        match source {
            NameSource::Static(index) => static_table::get(index)
                .map(|(name, _)| Bytes::from_static(name.as_bytes()))
                .ok_or(Error::EncoderStream("static index above 98")),
            NameSource::Dynamic(distance) => self
                .table
                .get_relative(distance)
                .map(|entry| entry.name.clone())
                .ok_or(Error::EncoderStream("name reference to a missing entry")),
        }
    }
}

/// Decodes a string literal of the encoder stream into separate bytes.
fn decode_owned(literal: Literal<'_>) -> Result<Bytes, Error> {
    let mut text = Vec::new();
    literal
        .append_to(&mut text)
        .map_err(|malformed| Error::EncoderStream(malformed.reason()))?;
    // Entries live long, so excess capacity is released.
    Ok(Bytes::from(text.into_boxed_slice()))
}

/// Decodes the field lines of one section.
struct SectionDecoder<'t> {
    table: &'t DynamicTable,
    base: u64,
    required: u64,
    /// One more than the largest absolute index referred to so far.
    needed: u64,
}

impl<'t> SectionDecoder<'t> {
    fn decode(
        mut self,
        mut input: &[u8],
        scratch: &mut Vec<u8>,
        mut sink: impl FnMut(DecodedLine<'_>),
    ) -> Result<(), Error> {
        while !input.is_empty() {
            match Representation::decode(&mut input).map_err(decompression_failed)? {
                Representation::Indexed(reference) => sink(self.indexed(reference)?),
                Representation::NameReference {
                    name,
                    value,
                    never_indexed,
                } => {
                    let (name, _, _) = self.resolve(name)?;
                    sink(DecodedLine {
                        name,
                        value: Text::Literal(value.text(scratch).map_err(decompression_failed)?),
                        origin: Origin::Literal,
                        is_sensitive: never_indexed,
                    });
                }
                Representation::Literal {
                    name,
                    value,
                    never_indexed,
                } => {
                    scratch.clear();
                    name.append_to(scratch).map_err(decompression_failed)?;
                    let len = scratch.len();
                    value.append_to(scratch).map_err(decompression_failed)?;
                    let (name, value) = scratch.split_at(len);
                    sink(DecodedLine {
                        name: Text::Literal(name),
                        value: Text::Literal(value),
                        origin: Origin::Literal,
                        is_sensitive: never_indexed,
                    });
                }
            }
        }
        if self.needed < self.required {
            return Err(Error::DecompressionFailed(
                "Required Insert Count above what the references need",
            ));
        }
        Ok(())
    }

    fn indexed(&mut self, reference: Reference) -> Result<DecodedLine<'t>, Error> {
        let (name, value, origin) = self.resolve(reference)?;
        Ok(DecodedLine {
            name,
            value,
            origin,
            is_sensitive: false,
        })
    }

    /// Returns the name, value and origin of the entry to which `reference` refers.
    fn resolve(&mut self, reference: Reference) -> Result<(Text<'t>, Text<'t>, Origin), Error> {
        let index = match reference {
            Reference::Static(index) => {
                let (name, value) = static_table::get(index)
                    .ok_or(Error::DecompressionFailed("static index above 98"))?;
                let origin = Origin::Static(index as usize); // Below 99.
                return Ok((Text::Static(name), Text::Static(value), origin));
            }
            Reference::Relative(index) => self
                .base
                .checked_sub(index)
                .and_then(|end| end.checked_sub(1)),
            Reference::PostBase(index) => self.base.checked_add(index),
        };
        let index =
            index
                .filter(|&index| index < self.required)
                .ok_or(Error::DecompressionFailed(
                    "reference at or above the Required Insert Count",
                ))?;
        let entry = self
            .table
            .get(index)
            .ok_or(Error::DecompressionFailed("reference to an evicted entry"))?;
        self.needed = self.needed.max(index + 1);
        Ok((
            Text::Shared(&entry.name),
            Text::Shared(&entry.value),
            Origin::Dynamic(index),
        ))
    }
}

fn decompression_failed(malformed: Malformed) -> Error {
    Error::DecompressionFailed(malformed.reason())
}

/// Largest buffer for decoded strings in bytes that is kept until the next section. Longer strings are rare, and
/// an idle connection must not keep their memory.
const MAX_SCRATCH: usize = 4096;

#[cfg(test)]
mod tests;
