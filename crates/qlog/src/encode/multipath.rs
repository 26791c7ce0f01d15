//! Encodes frames of connections with several paths. RFC 10069 §4.
//!
//! No schema has them yet: they have the fields of the frames that they extend, and the ID of the path.

use courser_telemetry::MultipathRecord;

use super::acked::acked;
use crate::json::Object;

/// Writes the fields of a frame, in their order on the wire.
pub(super) fn write_fields(o: &mut Object<'_>, record: &MultipathRecord) {
    match record {
        MultipathRecord::Ack {
            path_id,
            delay,
            ranges,
            ecn,
        } => {
            o.uint("path_id", *path_id).millis("ack_delay", *delay);
            acked(o, ranges, *ecn);
        }
        MultipathRecord::Abandon {
            path_id,
            error_code,
        } => _ = o.uint("path_id", *path_id).uint("error_code", *error_code),
        MultipathRecord::Status {
            path_id, sequence, ..
        } => {
            o.uint("path_id", *path_id)
                .uint("path_status_sequence_number", *sequence);
        }
        MultipathRecord::NewConnectionId {
            path_id,
            sequence,
            retire_prior_to,
            id,
        } => {
            o.uint("path_id", *path_id)
                .uint("sequence_number", *sequence)
                .uint("retire_prior_to", *retire_prior_to)
                .size("connection_id_length", id.len())
                .hex("connection_id", id);
        }
        MultipathRecord::RetireConnectionId { path_id, sequence } => {
            o.uint("path_id", *path_id)
                .uint("sequence_number", *sequence);
        }
        MultipathRecord::MaxPathId { maximum } | MultipathRecord::PathsBlocked { maximum } => {
            o.uint("maximum_path_id", *maximum);
        }
        MultipathRecord::CidsBlocked {
            path_id,
            next_sequence,
        } => {
            o.uint("path_id", *path_id)
                .uint("next_sequence_number", *next_sequence);
        }
    }
}
