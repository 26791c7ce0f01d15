//! The encoder (RFC 9204 §2.1).

mod history;
mod index;
mod outstanding;
mod repeats;
mod section;

use bytes::Bytes;
use courser_telemetry::{Pending, QpackInstruction};

use self::history::History;
use self::index::Index;
use self::outstanding::Outstanding;
use self::repeats::Repeats;
use self::section::Section;
use crate::decoder_stream::Instruction as DecoderInstruction;
use crate::dynamic_table::{DynamicTable, Entry};
use crate::encoder_stream::{self, NameSource};
use crate::error::{Error, Malformed};
use crate::field_line::{FieldLine, line_size};
use crate::insert_count;
use crate::records::{self, Records};
use crate::representation::{self, Prefix, Reference};
use crate::static_table::{self, Match};
use crate::string;

/// Limits that the encoder keeps even if the peer's decoder allows more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncoderLimits {
    /// The largest capacity of the dynamic table in bytes. Zero disables the table.
    pub max_table_capacity: u32,
    /// The largest number of streams that may become blocked at a time.
    ///
    /// With zero, sections refer only to entries whose arrival was acknowledged. A lost packet with
    /// instructions then delays no stream except the encoder stream, but references to a new entry
    /// start a round trip later.
    pub max_blocked_streams: u32,
}

/// Encodes the field sections of a connection.
///
/// # Insertion policy
///
/// - While the dynamic table has free space, a field line is inserted the first time it occurs if
///   the section may refer to it at once, because that costs no more bytes than a literal. Names
///   whose values rarely repeat are excepted.
/// - If the insertion needs an eviction, or the reference has to wait, a field line is inserted the
///   second time it occurs.
/// - Short values of names in the static table stay literals.
/// - A reference to the oldest quarter of a nearly full table duplicates the entry instead.
///   Otherwise references to old entries would prevent eviction indefinitely.
/// - `authorization` and short cookies are never indexed (§7.1.3).
#[derive(Debug)]
pub struct Encoder {
    limits: EncoderLimits,
    table: DynamicTable,
    index: Index,
    history: History,
    outstanding: Outstanding,
    repeats: Repeats,
    /// The peer's limit on the table capacity. The encoding of the Required Insert Count depends on
    /// it (§4.5.1.1).
    max_capacity: u64,
    max_blocked: usize,
    /// Instructions to send on the encoder stream.
    instructions: Vec<u8>,
    /// The largest length of `instructions` that flow control of the encoder stream allows.
    credit: usize,
    /// The first bytes of an incomplete decoder instruction.
    partial: Vec<u8>,
    /// Encoded field lines of the current section.
    lines: Vec<u8>,
    /// Number of Stream Cancellation instructions received.
    cancellations: u64,
    records: Records,
}

impl Encoder {
    /// Creates an encoder that uses no dynamic table until
    /// [`set_peer_limits`](Self::set_peer_limits) is called.
    ///
    /// Its hashes depend on `seed`, which must be unpredictable for peers.
    pub fn new(limits: EncoderLimits, seed: u64) -> Self {
        Self {
            limits,
            table: DynamicTable::default(),
            index: Index::new(seed),
            history: History::default(),
            outstanding: Outstanding::new(seed),
            repeats: Repeats::default(),
            max_capacity: 0,
            max_blocked: 0,
            instructions: Vec::new(),
            credit: usize::MAX,
            partial: Vec::new(),
            lines: Vec::new(),
            cancellations: 0,
            records: Records::new(false),
        }
    }

    /// Sets the peer's `SETTINGS_QPACK_MAX_TABLE_CAPACITY` and `SETTINGS_QPACK_BLOCKED_STREAMS`.
    /// Call this when they arrive. A client that sends early data calls it before, with the remembered values.
    /// The server may then raise both, but the capacity only if the remembered one is zero (§3.2.3).
    pub fn set_peer_limits(&mut self, max_table_capacity: u64, max_blocked_streams: u64) {
        self.max_capacity = max_table_capacity;
        let most = u64::from(self.limits.max_blocked_streams);
        self.max_blocked = max_blocked_streams.min(most) as usize; // At most 32 bits.
        let most = u64::from(self.limits.max_table_capacity);
        let capacity = max_table_capacity.min(most);
        // The encoded insert count is taken modulo twice MaxEntries, so MaxEntries must not be zero.
        if insert_count::max_entries(max_table_capacity) > 0
            && capacity >= line_size(b"", b"") as u64
        {
            self.table.set_capacity(capacity as usize); // At most 32 bits.
        }
    }

    /// Sets how many bytes of instructions flow control of the encoder stream allows.
    ///
    /// An instruction that would exceed this credit is not written (§2.1.3). Without a call, the
    /// credit is unlimited.
    pub fn set_credit(&mut self, bytes: usize) {
        self.credit = bytes;
    }

    /// Encodes field lines as a field section of `stream` and appends it to `out`.
    ///
    /// Insertions that the section refers to are appended to
    /// [`instructions`](Self::instructions). Send those before the section. `lines` may be called
    /// twice and must return the same field lines each time.
    pub fn encode<'a, I>(&mut self, stream: u64, lines: impl Fn() -> I, out: &mut Vec<u8>)
    where
        I: IntoIterator<Item = FieldLine<'a>>,
    {
        let credit = self.credit;
        self.encode_within(stream, lines, || credit, out);
    }

    /// Encodes a field section like [`encode`](Self::encode), within the credit that `credit` returns.
    ///
    /// `credit` is called at most once, before inserts, and not for a section that needs none because an equal
    /// one was encoded before.
    pub fn encode_within<'a, I>(
        &mut self,
        stream: u64,
        lines: impl Fn() -> I,
        credit: impl FnOnce() -> usize,
        out: &mut Vec<u8>,
    ) where
        I: IntoIterator<Item = FieldLine<'a>>,
    {
        let mut section = Section {
            stream,
            base: self.table.insert_count(),
            required: 0,
            smallest: u64::MAX,
            may_block: self.outstanding.may_block(stream, self.max_blocked),
            is_repeatable: true,
        };
        let has_table = self.table.capacity() > 0 && !self.outstanding.is_full();
        if has_table && self.try_repeat(&section, lines().into_iter(), out) {
            return;
        }
        if has_table {
            self.credit = credit();
        }
        for line in lines() {
            match static_table::find(line.name, line.value) {
                _ if line.is_sensitive || is_secret(&line) => {
                    section.is_repeatable = false;
                    self.encode_never_indexed(&line);
                }
                Match::Whole(index) => {
                    representation::encode_indexed(&mut self.lines, Reference::Static(index));
                }
                found if has_table => self.encode_with_table(&mut section, &line, found),
                found => self.encode_literal(&line, static_name(found)),
            }
        }
        self.write_section(&section, has_table, out);
        self.record_state();
    }

    /// Returns the records of this encoder, its table and its instructions. They are off initially.
    pub fn records(&mut self) -> &mut Pending {
        self.records.pending()
    }

    /// Returns the bytes to send on the encoder stream. The caller removes from the front what it
    /// has sent.
    pub fn instructions(&mut self) -> &mut Vec<u8> {
        &mut self.instructions
    }

    /// Processes bytes received on the decoder stream. They must be in order but may be split anywhere.
    ///
    /// # Errors
    ///
    /// [`Error::DecoderStream`] if an instruction is invalid or acknowledges something that was not sent.
    pub fn on_decoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut joined = std::mem::take(&mut self.partial);
        let mut input = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined[..]
        };
        while !input.is_empty() {
            let mut rest = input;
            match DecoderInstruction::decode(&mut rest) {
                Ok(instruction) => {
                    self.records.parsed(|| instruction.record());
                    self.on_decoder_instruction(instruction)?;
                }
                Err(Malformed::Incomplete) => break,
                Err(Malformed::Invalid(reason)) => return Err(Error::DecoderStream(reason)),
            }
            input = rest;
        }
        // At most an incomplete integer is left.
        self.partial = input.to_vec();
        self.record_state();
        Ok(())
    }

    /// Returns the number of Stream Cancellations received, including those for streams without an
    /// outstanding section.
    pub const fn cancellations(&self) -> u64 {
        self.cancellations
    }

    /// Returns the bytes used by dynamic table entries and by instructions not yet sent.
    pub fn memory(&self) -> usize {
        self.table.capacity() - self.table.free_capacity() + self.instructions.len()
    }

    fn on_decoder_instruction(&mut self, instruction: DecoderInstruction) -> Result<(), Error> {
        match instruction {
            DecoderInstruction::SectionAcknowledgment { stream } => self
                .outstanding
                .acknowledge(stream)
                .ok_or(Error::DecoderStream("acknowledgment without a section")),
            DecoderInstruction::StreamCancellation { stream } => {
                self.cancellations += 1;
                self.outstanding.cancel(stream);
                Ok(())
            }
            DecoderInstruction::InsertCountIncrement(0) => {
                Err(Error::DecoderStream("increment of zero"))
            }
            DecoderInstruction::InsertCountIncrement(count) => self
                .outstanding
                .increment(count, self.table.insert_count())
                .ok_or(Error::DecoderStream("increment above the insert count")),
        }
    }

    /// Appends the cached section for these field lines if it is still valid. Returns false
    /// otherwise.
    fn try_repeat<'a>(
        &mut self,
        section: &Section,
        lines: impl Iterator<Item = FieldLine<'a>>,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(sent) = self.repeats.find(lines, section.base) else {
            return false;
        };
        let known = self.outstanding.known_received();
        if sent.required > known && !section.may_block {
            return false;
        }
        out.extend_from_slice(&sent.bytes);
        if sent.required > 0 {
            self.outstanding
                .add(section.stream, sent.required, sent.smallest);
        }
        true
    }

    /// Appends the prefix and the encoded field lines to `out`, and records the references of the
    /// section. `has_table` states whether it could refer to the dynamic table.
    fn write_section(&mut self, section: &Section, has_table: bool, out: &mut Vec<u8>) {
        let required = section.required;
        let (is_negative, delta_base) = match section.base.checked_sub(required) {
            Some(delta) => (false, delta),
            None => (true, required - section.base - 1),
        };
        // Without references the Base has no effect, and zero is the shortest.
        let delta_base = if required == 0 { 0 } else { delta_base };
        let prefix = Prefix {
            encoded_insert_count: insert_count::encode(required, self.max_capacity),
            is_negative,
            delta_base,
        };
        let begin = out.len();
        prefix.encode(out);
        if has_table && section.is_repeatable && self.table.insert_count() == section.base {
            self.repeats.keep(section, &out[begin..], &self.lines);
        }
        out.extend_from_slice(&self.lines);
        self.lines.clear();
        if required > 0 {
            self.outstanding
                .add(section.stream, required, section.smallest);
        }
    }

    fn encode_never_indexed(&mut self, line: &FieldLine<'_>) {
        match static_name(static_table::find(line.name, line.value)) {
            Some(name) => {
                representation::encode_name_reference(&mut self.lines, name, line.value, true);
            }
            None => representation::encode_literal(&mut self.lines, line.name, line.value, true),
        }
    }

    fn encode_literal(&mut self, line: &FieldLine<'_>, name: Option<Reference>) {
        match name {
            Some(name) => {
                representation::encode_name_reference(&mut self.lines, name, line.value, false);
            }
            None => representation::encode_literal(&mut self.lines, line.name, line.value, false),
        }
    }

    /// Encodes a field line that the static table does not contain, with the dynamic table if that
    /// is useful.
    fn encode_with_table(&mut self, section: &mut Section, line: &FieldLine<'_>, found: Match) {
        if let Match::Name(_) = found
            && line.value.len() <= SHORT_VALUE
        {
            return self.encode_literal(line, static_name(found));
        }
        let hash = self.index.hash(line.name, line.value);
        let reference = match self.index.line(&self.table, hash, line) {
            Some(index) => self.usable_entry(section, index, line, hash),
            None if self.should_insert(line, hash, section.may_block) => {
                let name = self.dynamic_name(line.name, found);
                self.insert(section, line, hash, name)
            }
            None => None,
        };
        if let Some(index) = reference {
            representation::encode_indexed(&mut self.lines, section.reference_to(index));
            return;
        }
        let name = static_name(found).or_else(|| {
            let index = self.index.name(&self.table, line.name)?;
            let is_usable = self.is_usable(section, index) && !self.is_draining(index);
            is_usable.then(|| section.reference_to(index))
        });
        section.is_repeatable = false;
        self.encode_literal(line, name);
    }

    /// Returns the entry to refer to for a field line whose entry is `index`: that entry, or a
    /// duplicate of it if it is draining (§2.1.1.1).
    fn usable_entry(
        &mut self,
        section: &Section,
        index: u64,
        line: &FieldLine<'_>,
        hash: u64,
    ) -> Option<u64> {
        if !self.is_draining(index) {
            return self.is_usable(section, index).then_some(index);
        }
        // A reference would prevent the eviction of this entry and of all newer ones. Without space
        // for a duplicate, the field line becomes a literal, so that the entry can be evicted.
        let distance = self.table.insert_count() - index - 1;
        let entry = self.table.get(index)?.clone();
        if !self.evict_for(section, line) {
            return None;
        }
        encoder_stream::encode_duplicate(&mut self.instructions, distance);
        self.records
            .created(|| QpackInstruction::Duplicate { index: distance });
        self.insert_entry(section, entry, hash)
    }

    /// Inserts a field line and returns its index if the section may refer to it. `name` is an entry
    /// of the dynamic table with the same name.
    fn insert(
        &mut self,
        section: &Section,
        line: &FieldLine<'_>,
        hash: u64,
        name: Option<u64>,
    ) -> Option<u64> {
        let static_name = match static_table::find(line.name, line.value) {
            Match::Whole(index) | Match::Name(index) => Some(index),
            Match::None => None,
        };
        let shared = name
            .and_then(|index| self.table.get(index))
            .map(|entry| entry.name.clone());
        let newest = self.table.insert_count();
        if !self.evict_for(section, line) {
            return None;
        }
        let out = &mut self.instructions;
        let name = match (static_name, name, shared) {
            (Some(index), _, _) => {
                let source = NameSource::Static(index);
                encoder_stream::encode_insert_with_name(out, source, line.value);
                self.records
                    .created(|| records::insert_with_name(source, string::form(line.value)));
                let (name, _) = static_table::get(index)?;
                Bytes::from_static(name.as_bytes())
            }
            (None, Some(index), Some(shared)) => {
                let source = NameSource::Dynamic(newest - index - 1);
                encoder_stream::encode_insert_with_name(out, source, line.value);
                self.records
                    .created(|| records::insert_with_name(source, string::form(line.value)));
                shared
            }
            _ => {
                encoder_stream::encode_insert(out, line.name, line.value);
                self.records
                    .created(|| records::insert(string::form(line.name), string::form(line.value)));
                Bytes::copy_from_slice(line.name)
            }
        };
        let value = Bytes::copy_from_slice(line.value);
        self.insert_entry(section, Entry { name, value }, hash)
    }

    /// Returns a dynamic table entry with this name, unless the static table has the name.
    fn dynamic_name(&self, name: &[u8], found: Match) -> Option<u64> {
        match found {
            Match::None => self.index.name(&self.table, name),
            _ => None,
        }
    }

    /// Evicts entries until `line` fits. Returns false if one of them is still referred to or unacknowledged
    /// (§2.1.1), or if the instruction would exceed the credit.
    fn evict_for(&mut self, section: &Section, line: &FieldLine<'_>) -> bool {
        let longest = encoder_stream::longest_insert(line.name, line.value) + LONGEST_SET_CAPACITY;
        if self.instructions.len() + longest > self.credit {
            return false;
        }
        let size = line_size(line.name, line.value);
        let Some(end) = self.table.end_of_eviction(size) else {
            return false;
        };
        let pinned = self.outstanding.first_pinned().min(section.smallest);
        if end > pinned {
            return false;
        }
        if self.table.insert_count() == 0 {
            let capacity = self.table.capacity() as u64;
            encoder_stream::encode_set_capacity(&mut self.instructions, capacity);
            self.records
                .created(|| QpackInstruction::SetCapacity { capacity });
        }
        let first = self.table.oldest();
        while self.table.oldest() < end {
            let oldest = self.table.oldest();
            if let Some(entry) = self.table.evict() {
                self.index.remove(&entry, oldest);
            }
        }
        self.records.evicted(first, end);
        true
    }

    /// Adds an entry to the table and the index. Returns its index if the section may refer to it.
    fn insert_entry(&mut self, section: &Section, entry: Entry, hash: u64) -> Option<u64> {
        let index = self.table.insert_count();
        self.index.add(&entry.name, hash, index);
        self.records.inserted(index, &entry);
        self.table.insert(entry);
        section.may_block.then_some(index)
    }

    fn record_state(&mut self) {
        let known = self.outstanding.known_received();
        self.records.state(&self.table, known);
    }

    fn is_usable(&self, section: &Section, index: u64) -> bool {
        section.may_block || index < self.outstanding.known_received()
    }

    /// Returns true for an entry in the oldest quarter of a nearly full table (§2.1.1.1).
    fn is_draining(&self, index: u64) -> bool {
        let (oldest, newest) = (self.table.oldest(), self.table.insert_count());
        self.table.free_capacity() < self.table.capacity() / 4
            && index - oldest < (newest - oldest) / 4
    }

    /// Applies the [insertion policy](Encoder#insertion-policy) to a field line that no table
    /// contains.
    fn should_insert(&mut self, line: &FieldLine<'_>, hash: u64, may_block: bool) -> bool {
        let size = line_size(line.name, line.value);
        if size > self.table.capacity() / 2 {
            return false;
        }
        let is_known = self.history.check_and_record(hash);
        let is_free = may_block && size <= self.table.free_capacity();
        is_known || (is_free && !is_rarely_repeated(line.name))
    }
}

fn static_name(found: Match) -> Option<Reference> {
    match found {
        Match::Whole(index) | Match::Name(index) => Some(Reference::Static(index)),
        Match::None => None,
    }
}

/// Returns true for values that an attacker could guess byte by byte if it observes compressed sizes
/// and controls other field lines (§7.1).
fn is_secret(line: &FieldLine<'_>) -> bool {
    match line.name {
        b"authorization" | b"proxy-authorization" => true,
        b"cookie" => line.value.len() < SHORT_COOKIE,
        _ => false,
    }
}

/// Returns true for names whose values usually differ from message to message.
fn is_rarely_repeated(name: &[u8]) -> bool {
    matches!(
        name,
        b":path"
            | b"age"
            | b"content-length"
            | b"content-range"
            | b"date"
            | b"etag"
            | b"expires"
            | b"if-modified-since"
            | b"if-none-match"
            | b"if-range"
            | b"last-modified"
            | b"location"
            | b"range"
            | b"set-cookie"
    )
}

/// Cookies below this length are never indexed.
const SHORT_COOKIE: usize = 20;
/// The longest value that stays a literal if the static table has the name.
///
/// A reference would save two or three bytes, for a few names four. If it is the only one of its
/// section, the acknowledgment costs two bytes in the other direction. The corpora in `tests` have
/// the same size either way.
const SHORT_VALUE: usize = 2;
/// The longest encoding of a Set Dynamic Table Capacity instruction in bytes.
const LONGEST_SET_CAPACITY: usize = 6;

#[cfg(test)]
mod tests;
