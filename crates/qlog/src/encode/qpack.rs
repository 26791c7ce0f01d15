//! Encodes events of QPACK, with the names of draft-ietf-quic-qlog-h3-events-04. Later drafts have
//! none.

use courser_telemetry::{Field, QpackInstruction, QpackRecord, QpackState};

use super::events::Events;
use super::http3::write_field;
use crate::json::{Object, object};
use crate::schema;

pub(super) fn record(events: &mut Events<'_>, record: &QpackRecord) {
    match record {
        QpackRecord::StateUpdated { of_peer, state } => {
            events.event("qpack:state_updated", |data| {
                data.constant("owner", schema::initiator(*of_peer));
                write_state(data, state);
            });
        }
        QpackRecord::StreamStateUpdated { stream, is_blocked } => {
            events.event("qpack:stream_state_updated", |data| {
                let state = if *is_blocked { "blocked" } else { "unblocked" };
                data.uint("stream_id", *stream).constant("state", state);
            });
        }
        QpackRecord::EntryInserted {
            of_peer,
            index,
            field,
        } => table_updated(events, *of_peer, "inserted", |data| {
            data.array("entries", [(index, field)], |out, (index, field)| {
                object(out, |entry| write_entry(entry, *index, field));
            });
        }),
        QpackRecord::EntriesEvicted {
            of_peer,
            first,
            count,
        } => table_updated(events, *of_peer, "evicted", |data| {
            let end = first.saturating_add((*count).min(MAX_EVICTED));
            data.array("entries", *first..end, |out, index| {
                object(out, |entry| {
                    entry.uint("index", index);
                });
            });
            if *count > MAX_EVICTED {
                data.uint("entries_omitted", count - MAX_EVICTED);
            }
        }),
        QpackRecord::InstructionCreated(instruction) => {
            events.event("qpack:instruction_created", |data| {
                data.object("instruction", |out| write_instruction(out, *instruction));
            });
        }
        QpackRecord::InstructionParsed(instruction) => {
            events.event("qpack:instruction_parsed", |data| {
                data.object("instruction", |out| write_instruction(out, *instruction));
            });
        }
        // A kind of record newer than this encoder.
        _ => {}
    }
}

fn table_updated(
    events: &mut Events<'_>,
    of_peer: bool,
    update_type: &'static str,
    entries: impl FnOnce(&mut Object<'_>),
) {
    events.event("qpack:dynamic_table_updated", |data| {
        data.constant("owner", schema::initiator(of_peer))
            .constant("update_type", update_type);
        entries(data);
    });
}

fn write_state(data: &mut Object<'_>, state: &QpackState) {
    data.size("dynamic_table_capacity", state.capacity)
        .size("dynamic_table_size", state.size)
        .uint("known_received_count", state.known_received_count)
        .uint("current_insert_count", state.insert_count);
}

fn write_entry(entry: &mut Object<'_>, index: u64, field: &Field) {
    entry.uint("index", index);
    write_field(entry, field);
}

fn write_instruction(out: &mut Object<'_>, instruction: QpackInstruction) {
    match instruction {
        QpackInstruction::SetCapacity { capacity } => {
            out.constant("instruction_type", "set_dynamic_table_capacity")
                .uint("capacity", capacity);
        }
        QpackInstruction::InsertWithNameReference {
            is_static,
            index,
            is_huffman,
            value_len,
        } => {
            let table = if is_static { "static" } else { "dynamic" };
            out.constant("instruction_type", "insert_with_name_reference")
                .constant("table_type", table)
                .uint("name_index", index)
                .boolean("huffman_encoded_value", is_huffman)
                .size("value_length", value_len);
        }
        QpackInstruction::InsertWithLiteralName {
            is_huffman_name,
            name_len,
            is_huffman_value,
            value_len,
        } => {
            out.constant("instruction_type", "insert_without_name_reference")
                .boolean("huffman_encoded_name", is_huffman_name)
                .size("name_length", name_len)
                .boolean("huffman_encoded_value", is_huffman_value)
                .size("value_length", value_len);
        }
        QpackInstruction::Duplicate { index } => {
            out.constant("instruction_type", "duplicate")
                .uint("index", index);
        }
        QpackInstruction::SectionAcknowledgment { stream } => {
            out.constant("instruction_type", "section_acknowledgement")
                .uint("stream_id", stream);
        }
        QpackInstruction::StreamCancellation { stream } => {
            out.constant("instruction_type", "stream_cancellation")
                .uint("stream_id", stream);
        }
        QpackInstruction::InsertCountIncrement { increment } => {
            out.constant("instruction_type", "insert_count_increment")
                .uint("increment", increment);
        }
        // A kind of instruction newer than this encoder. The field is required.
        _ => {
            out.constant("instruction_type", "unknown");
        }
    }
}

/// The evicted entries that one event names (limit K252). A table of the default size has no more.
const MAX_EVICTED: u64 = 128;
