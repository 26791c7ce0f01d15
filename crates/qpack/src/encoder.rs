//! The sending end, RFC 9204 §2.1.

mod history;
mod index;
mod outstanding;
mod repeats;

use bytes::Bytes;

use self::history::History;
use self::index::Index;
use self::outstanding::Outstanding;
use self::repeats::Repeats;
use crate::decoder_stream::Instruction as Answer;
use crate::dynamic_table::{DynamicTable, Entry};
use crate::encoder_stream::{self, NameSource};
use crate::error::{Error, Malformed};
use crate::field_line::{FieldLine, line_size};
use crate::insert_count;
use crate::representation::{self, Prefix, Reference};
use crate::static_table::{self, Match};

/// How much of what the other end allows is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncoderLimits {
    /// Bytes that the dynamic table may take at most. Zero turns it off.
    pub max_table_capacity: u32,
    /// Streams that may have to wait for entries at a time. With zero nothing is referred to
    /// before its arrival has been acknowledged, so that the loss of a packet with instructions
    /// holds up no stream but theirs; it takes a round trip longer until a new line is short.
    pub max_blocked_streams: u32,
}

/// Encodes the sections of a connection.
///
/// *Policy.* While there is room in the table, a line goes into it at once if it can be referred to
/// at once, for that is no longer than the literal; not so names whose values rarely come again.
/// When something would have to go for it, or the reference has to wait, a line goes in when it
/// comes for the second time. Short values of static names stay literals. Lines in the oldest
/// quarter of a full table are inserted anew when used, before they would have to stay for ever.
/// `authorization` and short cookies are never put anywhere (§7.1.3).
#[derive(Debug)]
pub struct Encoder {
    limits: EncoderLimits,
    table: DynamicTable,
    index: Index,
    history: History,
    outstanding: Outstanding,
    repeats: Repeats,
    /// The peer's limit on the table, which its wrapped insert counts depend on (§4.5.1.1).
    max_capacity: u64,
    max_blocked: usize,
    /// Instructions for the other end.
    instructions: Vec<u8>,
    /// Bytes of `instructions` that the encoder stream has credit for.
    credit: usize,
    /// The beginning of an instruction whose rest has not arrived.
    partial: Vec<u8>,
    /// The lines of the section at hand.
    lines: Vec<u8>,
    /// Stream Cancellations received.
    cancellations: u64,
}

/// What a section has referred to so far.
#[derive(Clone, Copy, Debug)]
struct Section {
    stream: u64,
    /// Indices count from here: what was in the table when the section began.
    base: u64,
    /// One more than the largest index referred to, zero for none.
    required: u64,
    smallest: u64,
    /// Entries may be referred to that the other end may not have yet.
    may_block: bool,
    /// No line was written out that may not be the next time.
    is_settled: bool,
}

impl Section {
    fn refer(&mut self, index: u64) -> Reference {
        self.required = self.required.max(index + 1);
        self.smallest = self.smallest.min(index);
        match self.base.checked_sub(index) {
            Some(distance @ 1..) => Reference::Relative(distance - 1),
            _ => Reference::PostBase(index - self.base),
        }
    }
}

impl Encoder {
    /// An encoder without a dynamic table, until [`set_peer_limits`](Self::set_peer_limits). Its
    /// hashes depend on `seed`, which nobody outside should know.
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
        }
    }

    /// Takes the peer's `SETTINGS_QPACK_MAX_TABLE_CAPACITY` and `SETTINGS_QPACK_BLOCKED_STREAMS`,
    /// which arrive once.
    pub fn set_peer_limits(&mut self, max_table_capacity: u64, max_blocked_streams: u64) {
        self.max_capacity = max_table_capacity;
        let most = u64::from(self.limits.max_blocked_streams);
        self.max_blocked = max_blocked_streams.min(most) as usize; // At most 32 bits.
        let most = u64::from(self.limits.max_table_capacity);
        let capacity = max_table_capacity.min(most);
        // The number of entries is what counts wrap around, so there has to be one.
        if insert_count::max_entries(max_table_capacity) > 0
            && capacity >= line_size(b"", b"") as u64
        {
            self.table.set_capacity(capacity as usize); // At most 32 bits.
        }
    }

    /// Says how many bytes of instructions may wait or leave: no instruction is begun that the
    /// encoder stream has no credit for (§2.1.3). Without it there is no bound.
    pub fn set_credit(&mut self, bytes: usize) {
        self.credit = bytes;
    }

    /// Appends the section of these lines to `out`; what it needs of the table becomes
    /// [`instructions`](Self::instructions), which should be sent before it. `lines` may be asked for
    /// them twice and has to give the same ones.
    pub fn encode<'a, I>(&mut self, stream: u64, lines: impl Fn() -> I, out: &mut Vec<u8>)
    where
        I: IntoIterator<Item = FieldLine<'a>>,
    {
        let mut section = Section {
            stream,
            base: self.table.insert_count(),
            required: 0,
            smallest: u64::MAX,
            may_block: self.outstanding.may_block(stream, self.max_blocked),
            is_settled: true,
        };
        let has_table = self.table.capacity() > 0 && !self.outstanding.is_full();
        if has_table && self.repeat(&section, lines().into_iter(), out) {
            return;
        }
        for line in lines() {
            match static_table::find(line.name, line.value) {
                _ if line.is_sensitive || is_secret(&line) => {
                    section.is_settled = false;
                    self.encode_secret(&line);
                }
                Match::Whole(index) => {
                    representation::encode_indexed(&mut self.lines, Reference::Static(index));
                }
                found if has_table => self.encode_line(&mut section, &line, found),
                found => self.encode_literal(&line, static_name(found)),
            }
        }
        self.finish(&section, has_table, out);
    }

    /// What is to be sent on the encoder stream; the caller takes from its front what it sends.
    pub fn instructions(&mut self) -> &mut Vec<u8> {
        &mut self.instructions
    }

    /// Takes what arrived on the decoder stream, in order, cut anywhere.
    ///
    /// # Errors
    ///
    /// [`Error::DecoderStream`] for what acknowledges something that was not sent.
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
            match Answer::decode(&mut rest) {
                Ok(answer) => self.on_answer(answer)?,
                Err(Malformed::Incomplete) => break,
                Err(Malformed::Invalid(reason)) => return Err(Error::DecoderStream(reason)),
            }
            input = rest;
        }
        // Less than an integer is left.
        self.partial = input.to_vec();
        Ok(())
    }

    /// Cancellations so far, also of streams without a section.
    pub const fn cancellations(&self) -> u64 {
        self.cancellations
    }

    /// Bytes of the table in use, and of instructions that were not taken.
    pub fn memory(&self) -> usize {
        self.table.capacity() - self.table.room() + self.instructions.len()
    }

    fn on_answer(&mut self, answer: Answer) -> Result<(), Error> {
        match answer {
            Answer::SectionAcknowledgment { stream } => self
                .outstanding
                .acknowledge(stream)
                .ok_or(Error::DecoderStream("acknowledgement of no section")),
            Answer::StreamCancellation { stream } => {
                self.cancellations += 1;
                self.outstanding.cancel(stream);
                Ok(())
            }
            Answer::InsertCountIncrement(0) => Err(Error::DecoderStream("increment of zero")),
            Answer::InsertCountIncrement(count) => self
                .outstanding
                .increment(count, self.table.insert_count())
                .ok_or(Error::DecoderStream("increment past what was inserted")),
        }
    }

    /// Appends what was sent for the same lines before, if it can be sent again.
    fn repeat<'a>(
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

    /// Puts the prefix before the lines. `has_table` if they might refer to it.
    fn finish(&mut self, section: &Section, has_table: bool, out: &mut Vec<u8>) {
        let required = section.required;
        let (is_negative, delta_base) = match section.base.checked_sub(required) {
            Some(delta) => (false, delta),
            None => (true, required - section.base - 1),
        };
        // Without a reference the Base is for nobody.
        let delta_base = if required == 0 { 0 } else { delta_base };
        let prefix = Prefix {
            encoded_insert_count: insert_count::encode(required, self.max_capacity),
            is_negative,
            delta_base,
        };
        let begin = out.len();
        prefix.encode(out);
        if has_table && section.is_settled && self.table.insert_count() == section.base {
            self.repeats.keep(section, &out[begin..], &self.lines);
        }
        out.extend_from_slice(&self.lines);
        self.lines.clear();
        if required > 0 {
            self.outstanding
                .add(section.stream, required, section.smallest);
        }
    }

    fn encode_secret(&mut self, line: &FieldLine<'_>) {
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

    /// A line that the static table does not have.
    fn encode_line(&mut self, section: &mut Section, line: &FieldLine<'_>, found: Match) {
        if let Match::Name(_) = found
            && line.value.len() <= SHORT_VALUE
        {
            return self.encode_literal(line, static_name(found));
        }
        let hash = self.index.hash(line.name, line.value);
        let reference = match self.index.line(&self.table, hash, line) {
            Some(index) => self.refer(section, index, line, hash),
            None if self.is_worth_it(line, hash, section.may_block) => {
                let name = self.name_source(line.name, found);
                self.insert(section, line, hash, name)
            }
            None => None,
        };
        if let Some(index) = reference {
            representation::encode_indexed(&mut self.lines, section.refer(index));
            return;
        }
        let name = static_name(found).or_else(|| {
            let index = self.index.name(&self.table, line.name)?;
            let is_usable = self.is_usable(section, index) && !self.is_draining(index);
            is_usable.then(|| section.refer(index))
        });
        section.is_settled = false;
        self.encode_literal(line, name);
    }

    /// The entry to refer to for a line that stands at `index`.
    fn refer(
        &mut self,
        section: &Section,
        index: u64,
        line: &FieldLine<'_>,
        hash: u64,
    ) -> Option<u64> {
        if !self.is_draining(index) {
            return self.is_usable(section, index).then_some(index);
        }
        // A reference would keep it, and all that came after it, from making room. When there is
        // no room for a copy either, the literal lets it go.
        let distance = self.table.insert_count() - index - 1;
        let entry = self.table.get(index)?.clone();
        if !self.make_room(section, line) {
            return None;
        }
        encoder_stream::encode_duplicate(&mut self.instructions, distance);
        self.add(section, entry, hash)
    }

    /// Inserts a line and returns its index if the section may refer to it.
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
        if !self.make_room(section, line) {
            return None;
        }
        let out = &mut self.instructions;
        let name = match (static_name, name, shared) {
            (Some(index), _, _) => {
                encoder_stream::encode_insert_with_name(out, NameSource::Static(index), line.value);
                let (name, _) = static_table::get(index)?;
                Bytes::from_static(name.as_bytes())
            }
            (None, Some(index), Some(shared)) => {
                let source = NameSource::Dynamic(newest - index - 1);
                encoder_stream::encode_insert_with_name(out, source, line.value);
                shared
            }
            _ => {
                encoder_stream::encode_insert(out, line.name, line.value);
                Bytes::copy_from_slice(line.name)
            }
        };
        let value = Bytes::copy_from_slice(line.value);
        self.add(section, Entry { name, value }, hash)
    }

    fn name_source(&self, name: &[u8], found: Match) -> Option<u64> {
        match found {
            Match::None => self.index.name(&self.table, name),
            _ => None,
        }
    }

    /// Evicts what an entry for `line` needs; false if something of that is still referred to, not
    /// known to have arrived (§2.1.1), or if the instruction has no credit.
    fn make_room(&mut self, section: &Section, line: &FieldLine<'_>) -> bool {
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
        }
        while self.table.oldest() < end {
            let oldest = self.table.oldest();
            if let Some(entry) = self.table.evict() {
                self.index.remove(&entry, oldest);
            }
        }
        true
    }

    fn add(&mut self, section: &Section, entry: Entry, hash: u64) -> Option<u64> {
        let index = self.table.insert_count();
        self.index.add(&entry.name, hash, index);
        self.table.insert(entry);
        section.may_block.then_some(index)
    }

    fn is_usable(&self, section: &Section, index: u64) -> bool {
        section.may_block || index < self.outstanding.known_received()
    }

    /// In the oldest quarter of a table that is nearly full.
    fn is_draining(&self, index: u64) -> bool {
        let (oldest, newest) = (self.table.oldest(), self.table.insert_count());
        self.table.room() < self.table.capacity() / 4 && index - oldest < (newest - oldest) / 4
    }

    fn is_worth_it(&mut self, line: &FieldLine<'_>, hash: u64, may_block: bool) -> bool {
        let size = line_size(line.name, line.value);
        if size > self.table.capacity() / 2 {
            return false;
        }
        let is_known = self.history.is_known(hash);
        let is_free = may_block && size <= self.table.room();
        is_known || (is_free && !is_rarely_repeated(line.name))
    }
}

fn static_name(found: Match) -> Option<Reference> {
    match found {
        Match::Whole(index) | Match::Name(index) => Some(Reference::Static(index)),
        Match::None => None,
    }
}

/// What is guessed byte by byte if an attacker can watch sizes next to its own lines (§7.1).
fn is_secret(line: &FieldLine<'_>) -> bool {
    match line.name {
        b"authorization" | b"proxy-authorization" => true,
        b"cookie" => line.value.len() < SHORT_COOKIE,
        _ => false,
    }
}

/// Values of these mostly are other ones each time.
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

const SHORT_COOKIE: usize = 20;
/// Longest value that goes without the dynamic table where the static one has the name: a reference
/// saves two bytes or three, four for a few names, and where it is the only one its acknowledgement
/// costs two on the way back. The sets of headers in `tests` take as much either way.
const SHORT_VALUE: usize = 2;
const LONGEST_SET_CAPACITY: usize = 6;

#[cfg(test)]
mod tests;
