//! Field blocks: those that pass unchanged, and those that h2 must receive in another form.

use super::kinds::{Kind, Section, Value};
use super::table::{Entry, OVERHEAD, STATIC, Substitute, Table};
use crate::cause::Cause;
use crate::exchange::marks::{Mark, Marks};
use crate::http2::hpack::{Form, Reader, Undecodable, put_integer, put_literal, put_string};

/// Reads the field blocks of a client in their order.
#[derive(Debug)]
pub(super) struct Blocks {
    table: Table,
    name: Vec<u8>,
    value: Vec<u8>,
    /// Largest size of a decoded block.
    max_size: usize,
    /// True if the newest block is one of CONNECT.
    is_connect: bool,
}

/// The message part that a block contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Request,
    Trailers,
}

/// The form in which h2 must receive a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Unchanged,
    Changed {
        block: Vec<u8>,
        /// True if the message is malformed.
        is_malformed: bool,
    },
}

/// A line that needs no change, or the reason to look at the block again.
enum Seen {
    Field(Kind),
    SizeUpdate,
    Unusual,
}

impl Blocks {
    /// Creates the reader of a connection whose header sections have at most `max_header_bytes`.
    pub(super) fn new(max_header_bytes: u32) -> Self {
        Self {
            table: Table::new(),
            name: Vec::new(),
            value: Vec::new(),
            max_size: (max_header_bytes as usize).saturating_mul(MAX_SECTIONS),
            is_connect: false,
        }
    }

    /// Returns true if the newest block is that of a CONNECT.
    pub(super) const fn is_connect(&self) -> bool {
        self.is_connect
    }

    /// Reads a block and returns the form in which h2 must receive it. `is_malformed` is true if the frame of the block
    /// violates a rule.
    ///
    /// # Errors
    /// Returns an error if the block cannot be decoded. h2 returns it to the client.
    #[inline]
    pub(super) fn read(
        &mut self,
        block: &[u8],
        part: Part,
        is_malformed: bool,
        marks: &Marks,
    ) -> Result<Outcome, Undecodable> {
        self.table.begin();
        let is_usual = !is_malformed && self.scan(block, part)?;
        let form = match is_usual {
            true => Outcome::Unchanged,
            false => {
                self.table.roll_back();
                self.change(block, part, is_malformed, marks)?
            }
        };
        self.table.commit();
        for scratch in [&mut self.name, &mut self.value] {
            if scratch.capacity() > SCRATCH {
                *scratch = Vec::new();
            }
        }
        Ok(form)
    }

    /// Reads a block that is probably valid. Returns false if it is not, or if it refers to entries that h2 does not have.
    #[inline]
    fn scan(&mut self, block: &[u8], part: Part) -> Result<bool, Undecodable> {
        let mut reader = Reader(block);
        let mut section = Section::default();
        let mut is_first = true;
        let mut lines = 0;
        while let Some(line) = reader.line() {
            let (form, number) = line?;
            lines += 1;
            if lines * OVERHEAD > self.max_size {
                return Err(Undecodable);
            }
            match self.scan_line(form, number, &mut reader)? {
                Seen::Field(kind) if section.add(kind) => is_first = false,
                Seen::SizeUpdate if is_first => {}
                Seen::SizeUpdate => return Err(Undecodable),
                Seen::Field(_) | Seen::Unusual => return Ok(false),
            }
        }
        self.is_connect = section.is_connect();
        Ok(match part {
            Part::Request => section.is_request(),
            Part::Trailers => section.is_trailers(),
        })
    }

    #[inline]
    fn scan_line(
        &mut self,
        form: Form,
        number: usize,
        reader: &mut Reader<'_>,
    ) -> Result<Seen, Undecodable> {
        let kind = match (form, number) {
            (Form::SizeUpdate, _) => {
                let is_permitted = self.table.set_max(number);
                return is_permitted.then_some(Seen::SizeUpdate).ok_or(Undecodable);
            }
            (Form::Indexed, 1..=STATIC) => {
                let kind = Kind::of_static(number).filter(|_| Kind::has_static_value(number));
                return Ok(kind.map_or(Seen::Unusual, Seen::Field));
            }
            (Form::Indexed, _) => {
                let entry = self.table.get(number).ok_or(Undecodable)?;
                return Ok(match entry.substitute {
                    None => Seen::Field(entry.kind),
                    Some(_) => Seen::Unusual,
                });
            }
            (_, 0) => {
                let name = reader.string(&mut self.name)?;
                Kind::of_name(name).map(|kind| (kind, name.len()))
            }
            (_, 1..=STATIC) => Kind::of_static(number).map(|kind| (kind, STATIC_LEN[number])),
            _ => {
                let entry = self.table.get(number).ok_or(Undecodable)?;
                let is_same = entry.substitute.is_none();
                is_same.then_some((entry.kind, entry.name_len()))
            }
        };
        let value = reader.string(&mut self.value)?;
        let Some((kind, name_len)) = kind else {
            return Ok(Seen::Unusual);
        };
        let Value::Valid(kind) = kind.judge(value) else {
            return Ok(Seen::Unusual);
        };
        if form == Form::Inserted {
            let entry = Entry::new(kind, name_len, value.len());
            self.table.insert(entry);
        }
        Ok(Seen::Field(kind))
    }
}

/// A line of a block that is changed.
struct Line<'a> {
    form: Form,
    /// Its bytes.
    wire: &'a [u8],
    /// The bytes of its name, including the first byte.
    wire_name: &'a [u8],
    name_len: usize,
    value_len: usize,
    field: Field,
    /// True if h2 does not have the entry to which the line refers.
    is_foreign: bool,
}

enum Field {
    /// A field with a valid name and value, which h2 can receive as it is.
    Valid(Kind),
    /// A pseudo-header field with a value that may be invalid.
    Pseudo {
        kind: Kind,
        value: Vec<u8>,
        /// The form of the path that services receive, if it is another one.
        escaped: Option<Vec<u8>>,
    },
    BadName,
    BadValue,
    SizeUpdate,
}

impl Blocks {
    #[cold]
    fn change(
        &mut self,
        block: &[u8],
        part: Part,
        is_malformed: bool,
        marks: &Marks,
    ) -> Result<Outcome, Undecodable> {
        let mut lines = Vec::new();
        let mut cause = is_malformed.then_some(Cause::InvalidRequest);
        let mut target = None;
        let mut section = Section::default();
        let mut reader = Reader(block);
        loop {
            let start = reader.0;
            let Some(line) = reader.line() else { break };
            let (form, number) = line?;
            if lines.len() * OVERHEAD > self.max_size {
                return Err(Undecodable);
            }
            let (line, found) = self.line(start, form, number, &mut reader)?;
            let kind = match &line.field {
                Field::Valid(kind) => Some(*kind),
                Field::Pseudo { kind, escaped, .. } => {
                    target = target.or_else(|| escaped.clone());
                    Some(*kind)
                }
                Field::BadName | Field::BadValue | Field::SizeUpdate => None,
            };
            // Size updates are at the beginning (RFC 7541 §4.2).
            let is_late = |it: &Line<'_>| it.form != Form::SizeUpdate;
            if form == Form::SizeUpdate && lines.last().is_some_and(is_late) {
                return Err(Undecodable);
            }
            cause = cause.or(found);
            if let Some(kind) = kind
                && !section.add(kind)
            {
                cause = cause.or(Some(Cause::InvalidRequest));
            }
            lines.push(line);
        }
        self.is_connect = section.is_connect();
        let is_complete = match part {
            Part::Request => section.is_request(),
            Part::Trailers => section.is_trailers(),
        };
        if !is_complete {
            cause = cause.or(Some(Cause::InvalidRequest));
        }
        self.table.roll_back();
        let mut out = Vec::with_capacity(block.len() + 64);
        let mark = match cause {
            Some(cause) => {
                self.put_malformed(&mut out, &lines, part);
                (part == Part::Request).then_some(Mark::Malformed(cause))
            }
            None => {
                self.put_valid(&mut out, &lines);
                target.map(Mark::Target)
            }
        };
        if let Some(mark) = &mark {
            let (name, value) = marks.field(mark).ok_or(Undecodable)?;
            put_literal(&mut out, name.as_bytes(), &value);
        }
        Ok(Outcome::Changed {
            block: out,
            is_malformed: cause.is_some(),
        })
    }

    /// Reads a line and inserts its entry. Returns the reason why it is malformed, if it is.
    fn line<'a>(
        &mut self,
        start: &'a [u8],
        form: Form,
        number: usize,
        reader: &mut Reader<'a>,
    ) -> Result<(Line<'a>, Option<Cause>), Undecodable> {
        let read = |reader: &Reader<'_>| &start[..start.len() - reader.0.len()];
        let mut line = Line {
            form,
            wire: read(reader),
            wire_name: read(reader),
            name_len: 0,
            value_len: 0,
            field: Field::SizeUpdate,
            is_foreign: false,
        };
        let mut kind = None;
        match (form, number) {
            (Form::SizeUpdate, _) => {
                let is_permitted = self.table.set_max(number);
                return is_permitted.then_some((line, None)).ok_or(Undecodable);
            }
            (Form::Indexed, _) => {
                let (field, cause) = self.indexed(number)?;
                line.is_foreign = matches!(field, Field::Pseudo { .. });
                line.field = field;
                return Ok((line, cause));
            }
            (_, 0) => {
                let name = reader.string(&mut self.name)?;
                kind = Kind::of_name(name);
                line.name_len = name.len();
            }
            (_, 1..=STATIC) => {
                kind = Kind::of_static(number);
                line.name_len = STATIC_LEN[number];
            }
            _ => {
                let entry = self.table.get(number).ok_or(Undecodable)?;
                line.name_len = entry.name_len();
                match entry.substitute.as_deref() {
                    Some(Substitute::Name) => {}
                    Some(Substitute::Pseudo(_)) => {
                        kind = Some(entry.kind);
                        line.is_foreign = true;
                    }
                    Some(Substitute::Value) | None => kind = Some(entry.kind),
                }
            }
        }
        line.wire_name = read(reader);
        let value = reader.string(&mut self.value)?;
        line.wire = read(reader);
        line.value_len = value.len();
        let (field, cause) = match kind {
            None => (Field::BadName, Some(Cause::InvalidField)),
            Some(kind) if kind.pseudo_name().is_some() => pseudo(kind, value),
            Some(kind) => match kind.judge(value) {
                Value::Invalid(cause) => (Field::BadValue, Some(cause)),
                Value::Valid(_) | Value::Escaped(_) => (Field::Valid(kind), None),
            },
        };
        line.field = field;
        if form == Form::Inserted {
            self.table.insert(line.entry(true));
        }
        Ok((line, cause))
    }

    /// Returns the field of an entry, and the reason why it is malformed, if it is.
    fn indexed(&self, index: usize) -> Result<(Field, Option<Cause>), Undecodable> {
        let bad = |field| (field, Some(Cause::InvalidField));
        if (1..=STATIC).contains(&index) {
            return Ok(match Kind::of_static(index) {
                None => bad(Field::BadName),
                Some(_) if !Kind::has_static_value(index) => bad(Field::BadValue),
                Some(kind) => (Field::Valid(kind), None),
            });
        }
        let entry = self.table.get(index).ok_or(Undecodable)?;
        Ok(match entry.substitute.as_deref() {
            None => (Field::Valid(entry.kind), None),
            Some(Substitute::Name) => bad(Field::BadName),
            Some(Substitute::Value) => bad(Field::BadValue),
            Some(Substitute::Pseudo(value)) => pseudo(entry.kind, value),
        })
    }

    /// Writes a block with the entries of a malformed message, and for a request the fields that h2 needs. Both tables get
    /// entries of the same sizes.
    fn put_malformed(&mut self, out: &mut Vec<u8>, lines: &[Line<'_>], part: Part) {
        let sizes = lines.iter().filter(|line| line.form == Form::SizeUpdate);
        sizes.for_each(|line| out.extend_from_slice(line.wire));
        if part == Part::Request {
            // `:method: GET`, `:scheme: https` and `:path: /` in the static table.
            out.extend_from_slice(&[0x82, 0x87, 0x84]);
        }
        self.replay_sizes(lines);
        for line in lines.iter().filter(|line| line.form == Form::Inserted) {
            match &line.field {
                Field::Valid(_) => out.extend_from_slice(line.wire),
                Field::BadValue => {
                    out.extend_from_slice(line.wire_name);
                    put_string(out, &vec![FILLER; line.value_len]);
                }
                Field::Pseudo { .. } | Field::BadName | Field::SizeUpdate => {
                    // A name has at least one byte.
                    let name_len = line.name_len.max(1);
                    let len = (line.name_len + line.value_len).saturating_sub(name_len);
                    out.push(0x40);
                    put_string(out, &vec![FILLER; name_len]);
                    put_string(out, &vec![FILLER; len]);
                }
            }
            self.table.insert(line.entry(true));
        }
    }

    /// Writes the lines of a valid message whose path is replaced, or which refers to entries that h2 does not have.
    fn put_valid(&mut self, out: &mut Vec<u8>, lines: &[Line<'_>]) {
        self.replay_sizes(lines);
        for line in lines {
            match &line.field {
                Field::Pseudo {
                    kind,
                    value,
                    escaped,
                } if line.is_foreign || escaped.is_some() => {
                    let is_inserted = line.form == Form::Inserted;
                    let (pattern, prefix) = if is_inserted { (0x40, 6) } else { (0, 4) };
                    match static_name(*kind) {
                        Some(index) => put_integer(out, pattern, prefix, index),
                        None => {
                            out.push(pattern);
                            put_string(out, kind.pseudo_name().unwrap_or_default().as_bytes());
                        }
                    }
                    match escaped {
                        Some(_) => put_string(out, &path_of(value.len())),
                        None => put_string(out, value),
                    }
                }
                _ => out.extend_from_slice(line.wire),
            }
            if line.form == Form::Inserted {
                self.table.insert(line.entry(false));
            }
        }
    }

    /// Applies the size updates at the beginning of a block again.
    fn replay_sizes(&mut self, lines: &[Line<'_>]) {
        for line in lines.iter().filter(|line| line.form == Form::SizeUpdate) {
            if let Some(Ok((_, size))) = Reader(line.wire).line() {
                self.table.set_max(size);
            }
        }
    }
}

impl Line<'_> {
    /// Returns the entry of an inserted line. `is_malformed` is true if h2 does not receive pseudo-header fields of the
    /// block.
    fn entry(&self, is_malformed: bool) -> Entry {
        let entry = |kind| Entry::new(kind, self.name_len, self.value_len);
        match &self.field {
            Field::Valid(kind) => entry(*kind),
            Field::Pseudo {
                kind,
                value,
                escaped,
            } if is_malformed || escaped.is_some() => {
                entry(*kind).with(Substitute::Pseudo(value.clone()))
            }
            Field::Pseudo { kind, .. } => entry(*kind),
            Field::BadValue => entry(Kind::Other).with(Substitute::Value),
            Field::BadName | Field::SizeUpdate => entry(Kind::Other).with(Substitute::Name),
        }
    }
}

/// Returns a pseudo-header field, and the reason why it is malformed, if it is.
fn pseudo(kind: Kind, value: &[u8]) -> (Field, Option<Cause>) {
    let (kind, escaped, cause) = match kind.judge(value) {
        Value::Valid(kind) => (kind, None, None),
        Value::Escaped(escaped) => (kind, Some(escaped), None),
        Value::Invalid(cause) => (kind, None, Some(cause)),
    };
    let field = Field::Pseudo {
        kind,
        value: value.to_vec(),
        escaped,
    };
    (field, cause)
}

/// Returns the index of the first entry of the static table with the name of a pseudo-header field.
const fn static_name(kind: Kind) -> Option<usize> {
    Some(match kind {
        Kind::Authority => 1,
        Kind::Method | Kind::Connect => 2,
        Kind::Path => 4,
        Kind::Scheme => 6,
        Kind::Status => 8,
        _ => return None,
    })
}

/// Returns a path of this length, in the place of one that h2 does not accept.
fn path_of(len: usize) -> Vec<u8> {
    let mut path = vec![FILLER; len];
    if let Some(first) = path.first_mut() {
        *first = b'/';
    }
    path
}

/// A byte that names and values may have.
const FILLER: u8 = b'x';

/// Size of a decoded block for which h2 ends the connection, as a multiple of the largest header section (limit K411).
const MAX_SECTIONS: usize = 4;

/// Memory for decoded strings that is kept between two blocks.
const SCRATCH: usize = 512;

/// The lengths of the names in the static table (RFC 7541 appendix A), which begins with index 1.
const STATIC_LEN: [usize; STATIC + 1] = [
    0, 10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16,
    14, 16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6,
    10, 25, 17, 10, 4, 3, 16,
];

#[cfg(test)]
mod tests;
