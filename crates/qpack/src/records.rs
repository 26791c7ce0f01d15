//! Telemetry records of an encoder or decoder.

use courser_telemetry::{Field, Pending, QpackInstruction, QpackRecord, QpackState};

use crate::dynamic_table::{DynamicTable, Entry};
use crate::encoder_stream::{Instruction, NameSource};

/// Records that wait to be passed to a sink. While recording is off, an event costs one branch.
#[derive(Debug)]
pub(crate) struct Records {
    /// True for a decoder, whose table is a copy of the peer's.
    of_peer: bool,
    pending: Pending,
    /// The state of the table that was recorded last.
    state: QpackState,
}

impl Records {
    pub(crate) fn new(of_peer: bool) -> Self {
        Self {
            of_peer,
            pending: Pending::default(),
            state: QpackState::default(),
        }
    }

    pub(crate) const fn pending(&mut self) -> &mut Pending {
        &mut self.pending
    }

    pub(crate) fn created(&mut self, make: impl FnOnce() -> QpackInstruction) {
        self.pending
            .qpack(|| QpackRecord::InstructionCreated(make()));
    }

    pub(crate) fn parsed(&mut self, make: impl FnOnce() -> QpackInstruction) {
        self.pending
            .qpack(|| QpackRecord::InstructionParsed(make()));
    }

    /// Records an entry that is inserted at `index`.
    pub(crate) fn inserted(&mut self, index: u64, entry: &Entry) {
        let of_peer = self.of_peer;
        self.pending.qpack(|| QpackRecord::EntryInserted {
            of_peer,
            index,
            field: Field::new(&entry.name, &entry.value, false),
        });
    }

    /// Records the newest entry, which was just inserted.
    pub(crate) fn newest(&mut self, table: &DynamicTable) {
        if self.pending.is_enabled()
            && let Some(entry) = table.get_relative(0)
        {
            self.inserted(table.insert_count() - 1, entry);
        }
    }

    /// Records that the entries from `first` up to but not including `end` were evicted.
    pub(crate) fn evicted(&mut self, first: u64, end: u64) {
        if end > first {
            let (of_peer, count) = (self.of_peer, end - first);
            self.pending.qpack(|| QpackRecord::EntriesEvicted {
                of_peer,
                first,
                count,
            });
        }
    }

    /// Records the state of the table if it has changed.
    pub(crate) fn state(&mut self, table: &DynamicTable, known_received_count: u64) {
        if !self.pending.is_enabled() {
            return;
        }
        let state = QpackState {
            capacity: table.capacity(),
            size: table.capacity() - table.free_capacity(),
            insert_count: table.insert_count(),
            known_received_count,
        };
        if std::mem::replace(&mut self.state, state) != state {
            let of_peer = self.of_peer;
            self.pending
                .qpack(|| QpackRecord::StateUpdated { of_peer, state });
        }
    }
}

/// Returns the record of an instruction of the peer's encoder.
pub(crate) fn of_encoder(instruction: &Instruction<'_>) -> QpackInstruction {
    match *instruction {
        Instruction::SetCapacity(capacity) => QpackInstruction::SetCapacity { capacity },
        Instruction::InsertWithNameReference { name, value } => {
            insert_with_name(name, value.form())
        }
        Instruction::InsertWithLiteralName { name, value } => insert(name.form(), value.form()),
        Instruction::Duplicate(index) => QpackInstruction::Duplicate { index },
    }
}

/// Returns the record of Insert with Name Reference. `value` is the length of the value on the wire, and whether
/// it is Huffman-coded.
pub(crate) const fn insert_with_name(name: NameSource, value: (usize, bool)) -> QpackInstruction {
    let (is_static, index) = match name {
        NameSource::Static(index) => (true, index),
        NameSource::Dynamic(index) => (false, index),
    };
    let (value_len, is_huffman) = value;
    QpackInstruction::InsertWithNameReference {
        is_static,
        index,
        is_huffman,
        value_len,
    }
}

/// Returns the record of Insert with Literal Name.
pub(crate) const fn insert(name: (usize, bool), value: (usize, bool)) -> QpackInstruction {
    QpackInstruction::InsertWithLiteralName {
        is_huffman_name: name.1,
        name_len: name.0,
        is_huffman_value: value.1,
        value_len: value.0,
    }
}

#[cfg(test)]
mod tests;
