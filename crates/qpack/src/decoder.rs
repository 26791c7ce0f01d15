//! The receiving end, RFC 9204 §2.2.

use bytes::Bytes;

use crate::blocked::Blocked;
use crate::decoder_stream::Instruction as Answer;
use crate::dynamic_table::{DynamicTable, Entry};
use crate::encoder_stream::{Instruction, NameSource};
use crate::error::{Error, Malformed};
use crate::field_line::{DecodedLine, Origin, Text};
use crate::insert_count;
use crate::representation::{Prefix, Reference, Representation};
use crate::static_table;
use crate::string::Literal;

/// What the decoder allows the other end; sent to it in SETTINGS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecoderLimits {
    /// Bytes that the dynamic table may take, `SETTINGS_QPACK_MAX_TABLE_CAPACITY`.
    pub max_table_capacity: u32,
    /// Streams that may wait for entries at a time, `SETTINGS_QPACK_BLOCKED_STREAMS`.
    pub max_blocked_streams: u32,
}

/// What became of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All lines have been handed out.
    Decoded,
    /// Entries it refers to are still on their way, and no line has been handed out: to be decoded
    /// again when [`Decoder::poll_unblocked`] returns its stream.
    Blocked,
}

/// Decodes the sections of a connection.
#[derive(Debug)]
pub struct Decoder {
    limits: DecoderLimits,
    table: DynamicTable,
    blocked: Blocked,
    /// The beginning of an instruction whose rest has not arrived.
    partial: Vec<u8>,
    /// Huffman-coded strings of the line at hand.
    scratch: Vec<u8>,
    /// Instructions for the other end.
    answers: Vec<u8>,
    /// Insertions that the other end knows to have arrived.
    acknowledged: u64,
    /// Instructions that were followed.
    followed: u64,
    /// By the section that was decoded last.
    required: u64,
}

impl Decoder {
    /// A decoder with an empty table, whose capacity the other end will set.
    pub fn new(limits: DecoderLimits) -> Self {
        Self {
            limits,
            table: DynamicTable::default(),
            blocked: Blocked::default(),
            partial: Vec::new(),
            scratch: Vec::new(),
            answers: Vec::new(),
            acknowledged: 0,
            followed: 0,
            required: 0,
        }
    }

    /// Takes what arrived on the encoder stream, in order, cut anywhere.
    ///
    /// # Errors
    ///
    /// [`Error::EncoderStream`] for instructions that cannot be followed.
    pub fn on_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.partial.is_empty() {
            let mut input = bytes;
            self.follow(&mut input)?;
            self.partial.extend_from_slice(input);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            let mut input = &joined[..];
            self.follow(&mut input)?;
            let followed = joined.len() - input.len();
            joined.drain(..followed);
            self.partial = joined;
        }
        Ok(())
    }

    /// Decodes the section of a stream and hands its lines to `sink` in their order.
    ///
    /// # Errors
    ///
    /// [`Error::DecompressionFailed`]; some lines may have been handed out before it was noticed.
    pub fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        sink: impl FnMut(DecodedLine<'_>),
    ) -> Result<Progress, Error> {
        let mut input = section;
        let prefix = Prefix::decode(&mut input).map_err(decompression_failed)?;
        let required = insert_count::decode(
            prefix.encoded_insert_count,
            self.table.insert_count(),
            u64::from(self.limits.max_table_capacity),
        )
        .ok_or(Error::DecompressionFailed("no such Required Insert Count"))?;
        let base = prefix
            .base(required)
            .ok_or(Error::DecompressionFailed("Base below zero"))?;
        if required > self.table.insert_count() {
            let most = self.limits.max_blocked_streams as usize;
            return if self.blocked.add(required, stream, most) {
                Ok(Progress::Blocked)
            } else {
                Err(Error::DecompressionFailed(
                    "more blocked streams than allowed",
                ))
            };
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let lines = Lines {
            table: &self.table,
            base,
            required,
            needed: 0,
        };
        let result = lines.decode(input, &mut scratch, sink);
        self.scratch = scratch;
        result?;
        self.required = required;
        self.repeat(stream, required);
        Ok(Progress::Decoded)
    }

    /// Changes when the same section may mean something else.
    pub const fn state(&self) -> u64 {
        self.followed
    }

    /// Insertions that the section needs that was decoded last.
    pub const fn required(&self) -> u64 {
        self.required
    }

    /// Says that the section of a stream, which [requires](Self::required) so much, is to the byte
    /// one that was decoded in the same [state](Self::state), and is not decoded again.
    pub fn repeat(&mut self, stream: u64, required: u64) {
        if required > 0 {
            self.acknowledged = self.acknowledged.max(required);
            Answer::SectionAcknowledgment { stream }.encode(&mut self.answers);
        }
    }

    /// A stream whose section can be decoded now. To be called until `None` after each
    /// [`on_encoder_stream`](Self::on_encoder_stream).
    pub fn poll_unblocked(&mut self) -> Option<u64> {
        self.blocked.pop(self.table.insert_count())
    }

    /// Streams that are waiting.
    pub fn blocked_streams(&self) -> usize {
        self.blocked.len()
    }

    /// Says that the rest of a stream will not be decoded, for it was reset or given up (§2.2.2.2).
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.remove(stream);
        if self.limits.max_table_capacity > 0 {
            Answer::StreamCancellation { stream }.encode(&mut self.answers);
        }
    }

    /// What is to be sent on the decoder stream; the caller takes from its front what it sends.
    ///
    /// Sections that nobody acknowledges make it grow: a caller whose stream is out of credit
    /// stops taking requests (§7.3).
    pub fn answers(&mut self) -> &mut Vec<u8> {
        let news = self.table.insert_count() - self.acknowledged;
        if news > 0 {
            self.acknowledged += news;
            Answer::InsertCountIncrement(news).encode(&mut self.answers);
        }
        &mut self.answers
    }

    /// True when [`answers`](Self::answers) has something to send.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty() || self.table.insert_count() > self.acknowledged
    }

    /// Bytes of the table in use, and of instructions that are not whole.
    pub fn memory(&self) -> usize {
        self.table.capacity() - self.table.room() + self.partial.len() + self.answers.len()
    }

    fn follow(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        while !input.is_empty() {
            // Rare bytes take up to thirty bits.
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
        self.followed += 1;
        let entry = match instruction {
            Instruction::SetCapacity(capacity) => {
                if capacity > u64::from(self.limits.max_table_capacity) {
                    return Err(Error::EncoderStream("capacity above the maximum"));
                }
                self.table.set_capacity(capacity as usize); // It fits, for the maximum does.
                return Ok(());
            }
            Instruction::InsertWithNameReference { name, value } => Entry {
                name: self.name(name)?,
                value: owned(value)?,
            },
            Instruction::InsertWithLiteralName { name, value } => Entry {
                name: owned(name)?,
                value: owned(value)?,
            },
            Instruction::Duplicate(distance) => self
                .table
                .get_relative(distance)
                .ok_or(Error::EncoderStream("duplicate of a missing entry"))?
                .clone(),
        };
        if self.table.insert(entry) {
            Ok(())
        } else {
            Err(Error::EncoderStream("entry larger than the table"))
        }
    }

    fn name(&self, source: NameSource) -> Result<Bytes, Error> {
        match source {
            NameSource::Static(index) => static_table::get(index)
                .map(|(name, _)| Bytes::from_static(name.as_bytes()))
                .ok_or(Error::EncoderStream("static index above 98")),
            NameSource::Dynamic(distance) => self
                .table
                .get_relative(distance)
                .map(|entry| entry.name.clone())
                .ok_or(Error::EncoderStream("name of a missing entry")),
        }
    }
}

fn owned(literal: Literal<'_>) -> Result<Bytes, Error> {
    let mut text = Vec::new();
    literal
        .append_to(&mut text)
        .map_err(|malformed| Error::EncoderStream(malformed.reason()))?;
    // An exact allocation, for entries live long.
    Ok(Bytes::from(text.into_boxed_slice()))
}

/// The lines of one section.
struct Lines<'t> {
    table: &'t DynamicTable,
    base: u64,
    required: u64,
    /// One more than the largest index that was referred to.
    needed: u64,
}

impl<'t> Lines<'t> {
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
                    let (name, _, _) = self.entry(name)?;
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
                "Required Insert Count larger than the references need",
            ));
        }
        Ok(())
    }

    fn indexed(&mut self, reference: Reference) -> Result<DecodedLine<'t>, Error> {
        let (name, value, origin) = self.entry(reference)?;
        Ok(DecodedLine {
            name,
            value,
            origin,
            is_sensitive: false,
        })
    }

    fn entry(&mut self, reference: Reference) -> Result<(Text<'t>, Text<'t>, Origin), Error> {
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
                    "reference outside of what the section requires",
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

#[cfg(test)]
mod tests;
