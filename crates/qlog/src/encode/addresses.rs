//! Encodes frames that carry addresses. draft-ietf-quic-address-discovery-00 §4.1,
//! draft-seemann-quic-nat-traversal-02 §4.
//!
//! No schema has them yet: they have the names of the fields in the drafts.

use std::net::SocketAddr;

use courser_telemetry::AddressRecord;

use crate::json::Object;

/// Writes the fields of a frame, in their order on the wire.
pub(super) fn write_fields(o: &mut Object<'_>, record: AddressRecord) {
    match record {
        AddressRecord::Observed { sequence, address }
        | AddressRecord::Add { sequence, address } => {
            write_address(o.uint("sequence_number", sequence), address);
        }
        AddressRecord::ReachOut { round, address } => {
            write_address(o.uint("round", round), address);
        }
        AddressRecord::Remove { sequence } => _ = o.uint("sequence_number", sequence),
    }
}

fn write_address(o: &mut Object<'_>, address: SocketAddr) {
    let (ip, name) = (
        address.ip(),
        if address.is_ipv4() { "ip_v4" } else { "ip_v6" },
    );
    o.text(name, &ip.to_string())
        .uint("port", address.port().into());
}
