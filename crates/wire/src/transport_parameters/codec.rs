//! Encoding of transport parameters: ID, length and value of each, in any order. RFC 9000 §18.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::num::NonZeroU8;

use courser_base::Side;

use super::{
    AddressDiscovery, ParameterError, PreferredAddress, TransportParameters, VersionInformation,
    check, id,
};
use crate::connection_id::ConnectionId;
use crate::path_id::PathId;
use crate::reader::Reader;
use crate::varint::{MAX_VARINT, varint_len};
use crate::writer::Writer;

impl TransportParameters {
    /// Appends the encoding to `out`. Parameters with their default value are omitted.
    ///
    /// With a `grease` seed, one reserved parameter is added, and one reserved version to
    /// `version_information`. The seed chooses them. Peers thereby learn to ignore unknown
    /// parameters (RFC 9000 §18.1) and versions (RFC 9368 §3).
    ///
    /// # Panics
    /// Panics if a number is above 2^62 - 1.
    pub fn encode(&self, out: &mut Vec<u8>, grease: Option<u64>) {
        let default = Self::default();
        for (id, get, _) in NUMBERS {
            let value = get(self);
            if value != get(&default) {
                put_varint(out, id);
                put_varint(out, varint_len(value) as u64);
                put_varint(out, value);
            }
        }
        for (id, get, _) in CONNECTION_IDS {
            if let Some(connection_id) = get(self) {
                put(out, id, &connection_id);
            }
        }
        if let Some(token) = self.stateless_reset_token {
            put(out, id::STATELESS_RESET_TOKEN, &token);
        }
        if let Some(delay) = self.min_ack_delay {
            put_varint(out, id::MIN_ACK_DELAY);
            put_varint(out, varint_len(delay) as u64);
            put_varint(out, delay);
        }
        if let Some(path_id) = self.initial_max_path_id {
            let path_id = u64::from(path_id.value());
            put_varint(out, id::INITIAL_MAX_PATH_ID);
            put_varint(out, varint_len(path_id) as u64);
            put_varint(out, path_id);
        }
        if let Some(discovery) = self.address_discovery {
            put_varint(out, id::ADDRESS_DISCOVERY);
            put_varint(out, 1);
            put_varint(out, discovery.to_wire());
        }
        if let Some(most) = self.max_candidates {
            put(out, id::MAX_CANDIDATES, &[most.get()]);
        }
        if self.disable_active_migration {
            put(out, id::DISABLE_ACTIVE_MIGRATION, &[]);
        }
        if self.reset_stream_at {
            put(out, id::RESET_STREAM_AT, &[]);
        }
        if self.grease_quic_bit {
            put(out, id::GREASE_QUIC_BIT, &[]);
        }
        if let Some(versions) = &self.version_information {
            let mut value = [0; VersionInformation::MAX_LEN];
            let mut writer = Writer::new(&mut value);
            versions.encode(&mut writer, grease);
            put(out, id::VERSION_INFORMATION, writer.written());
        }
        if let Some(address) = &self.preferred_address {
            put_preferred_address(out, address);
        }
        if let Some(seed) = grease {
            let filling = seed.to_be_bytes();
            let len = usize::from(filling[7]) % (filling.len() + 1);
            put(out, reserved_id(seed), &filling[..len]);
        }
    }

    /// Reads the parameters that `sent_by` sent and checks all rules that do not depend on the
    /// state of the connection.
    ///
    /// Unknown parameters are skipped. Repeated ones are an error. To detect them in linear time,
    /// only the first 64 IDs above 63 are remembered.
    ///
    /// # Errors
    /// Fails with the ID of the parameter and the rule that it violates.
    pub fn decode(bytes: &[u8], sent_by: Side) -> Result<Self, ParameterError> {
        let mut parameters = Self::default();
        let mut seen = Seen::EMPTY;
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let Ok(parameter) = reader.varint() else {
                let parameter = id::UNREADABLE;
                return Err(ParameterError {
                    parameter,
                    reason: "is truncated within its id",
                });
            };
            let error = |reason| ParameterError { parameter, reason };
            let value = reader
                .varint_bytes()
                .map_err(|_| error("is longer than the extension"))?;
            if !seen.insert(parameter) {
                return Err(error("is repeated"));
            }
            parameters.set(parameter, value).map_err(error)?;
        }
        check::check(&parameters, sent_by)?;
        Ok(parameters)
    }

    fn set(&mut self, parameter: u64, value: &[u8]) -> Result<(), &'static str> {
        if let Some((_, _, field)) = NUMBERS.iter().find(|(id, ..)| *id == parameter) {
            *field(self) = number(value)?;
        } else if let Some((_, _, field)) = CONNECTION_IDS.iter().find(|(id, ..)| *id == parameter)
        {
            *field(self) = Some(ConnectionId::new(value).ok_or("is longer than 20 bytes")?);
        } else if parameter == id::STATELESS_RESET_TOKEN {
            let token = value.try_into().map_err(|_| "is not 16 bytes long")?;
            self.stateless_reset_token = Some(token);
        } else if parameter == id::DISABLE_ACTIVE_MIGRATION {
            if !value.is_empty() {
                return Err("has a value");
            }
            self.disable_active_migration = true;
        } else if parameter == id::RESET_STREAM_AT || parameter == id::RESET_STREAM_AT_OF_DRAFTS {
            if !value.is_empty() {
                return Err("has a value");
            }
            self.reset_stream_at = true;
        } else if parameter == id::MIN_ACK_DELAY {
            self.min_ack_delay = Some(number(value)?);
        } else if parameter == id::INITIAL_MAX_PATH_ID {
            let path_id = PathId::from_wire(number(value)?).ok_or("is above 2^32 - 1")?;
            self.initial_max_path_id = Some(path_id);
        } else if parameter == id::ADDRESS_DISCOVERY {
            let discovery = AddressDiscovery::from_wire(number(value)?);
            self.address_discovery = Some(discovery.ok_or("is neither 0, 1 nor 2")?);
        } else if parameter == id::MAX_CANDIDATES {
            let &[most] = value else {
                return Err("is not 1 byte long");
            };
            self.max_candidates = Some(NonZeroU8::new(most).ok_or("is 0")?);
        } else if parameter == id::GREASE_QUIC_BIT {
            if !value.is_empty() {
                return Err("has a value");
            }
            self.grease_quic_bit = true;
        } else if parameter == id::VERSION_INFORMATION {
            self.version_information = Some(VersionInformation::decode(value)?);
        } else if parameter == id::PREFERRED_ADDRESS {
            self.preferred_address = Some(preferred_address(value)?);
        }
        Ok(())
    }
}

fn number(value: &[u8]) -> Result<u64, &'static str> {
    let mut reader = Reader::new(value);
    match (reader.varint(), reader.is_empty()) {
        (Ok(number), true) => Ok(number),
        _ => Err("is not exactly one varint"),
    }
}

fn preferred_address(value: &[u8]) -> Result<PreferredAddress, &'static str> {
    let mut reader = Reader::new(value);
    let truncated = |_| "is truncated";
    let ipv4 = Ipv4Addr::from(reader.array::<4>().map_err(truncated)?);
    let ipv4_port = reader.u16().map_err(truncated)?;
    let ipv6 = Ipv6Addr::from(reader.array::<16>().map_err(truncated)?);
    let ipv6_port = reader.u16().map_err(truncated)?;
    let id_len = usize::from(reader.u8().map_err(truncated)?);
    if id_len == 0 || id_len > ConnectionId::MAX_LEN {
        return Err("has a connection id that is not 1 to 20 bytes long");
    }
    let id = reader.bytes(id_len).map_err(truncated)?;
    let reset_token = reader.array().map_err(truncated)?;
    if !reader.is_empty() {
        return Err("has trailing bytes");
    }
    // All zeros mean that the server does not offer this address family. RFC 9000 §18.2.
    let has_ipv4 = !ipv4.is_unspecified() || ipv4_port != 0;
    let has_ipv6 = !ipv6.is_unspecified() || ipv6_port != 0;
    Ok(PreferredAddress {
        ipv4: has_ipv4.then(|| SocketAddrV4::new(ipv4, ipv4_port)),
        ipv6: has_ipv6.then(|| SocketAddrV6::new(ipv6, ipv6_port, 0, 0)),
        id: ConnectionId::new(id).expect("the length was checked"),
        reset_token,
    })
}

fn put_preferred_address(out: &mut Vec<u8>, address: &PreferredAddress) {
    let ipv4 = address
        .ipv4
        .unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    let ipv6 = address
        .ipv6
        .unwrap_or(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));
    let mut value = [0; 4 + 2 + 16 + 2 + 1 + ConnectionId::MAX_LEN + 16];
    let mut writer = Writer::new(&mut value);
    writer.bytes(&ipv4.ip().octets());
    writer.u16(ipv4.port());
    writer.bytes(&ipv6.ip().octets());
    writer.u16(ipv6.port());
    address.id.encode(&mut writer);
    writer.bytes(&address.reset_token);
    put(out, id::PREFERRED_ADDRESS, writer.written());
}

fn put(out: &mut Vec<u8>, parameter: u64, value: &[u8]) {
    put_varint(out, parameter);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn put_varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; 8];
    let mut writer = Writer::new(&mut bytes);
    writer.varint(value);
    out.extend_from_slice(writer.written());
}

/// Returns one of the IDs 31 * N + 27, which are reserved and have no meaning. RFC 9000 §18.1.
fn reserved_id(seed: u64) -> u64 {
    31 * (seed % ((MAX_VARINT - 27) / 31 + 1)) + 27
}

/// The IDs of the parameters decoded so far.
struct Seen {
    /// One bit for each ID below 64. Most known parameters are among them.
    small: u64,
    large: [u64; Seen::MAX_LARGE],
    large_count: usize,
}

impl Seen {
    /// The maximum number of remembered IDs above 63, more than any known implementation sends.
    const MAX_LARGE: usize = 64;
    const EMPTY: Self = Self {
        small: 0,
        large: [0; Self::MAX_LARGE],
        large_count: 0,
    };

    fn insert(&mut self, parameter: u64) -> bool {
        if parameter < 64 {
            let bit = 1 << parameter;
            let is_first = self.small & bit == 0;
            self.small |= bit;
            return is_first;
        }
        if self.large[..self.large_count].contains(&parameter) {
            return false;
        }
        if let Some(slot) = self.large.get_mut(self.large_count) {
            *slot = parameter;
            self.large_count += 1;
        }
        true
    }
}

/// A parameter: its ID, a function that reads its field, and a function that borrows the field
/// mutably.
type Field<T> = (
    u64,
    fn(&TransportParameters) -> T,
    fn(&mut TransportParameters) -> &mut T,
);

/// Creates the [`Field`] of a parameter.
macro_rules! field {
    ($id:ident, $field:ident) => {
        (
            id::$id,
            |parameters| parameters.$field,
            |parameters| &mut parameters.$field,
        )
    };
}

const NUMBERS: [Field<u64>; 12] = [
    field!(MAX_IDLE_TIMEOUT, max_idle_timeout),
    field!(MAX_UDP_PAYLOAD_SIZE, max_udp_payload_size),
    field!(INITIAL_MAX_DATA, initial_max_data),
    field!(
        INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
        initial_max_stream_data_bidi_local
    ),
    field!(
        INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
        initial_max_stream_data_bidi_remote
    ),
    field!(INITIAL_MAX_STREAM_DATA_UNI, initial_max_stream_data_uni),
    field!(INITIAL_MAX_STREAMS_BIDI, initial_max_streams_bidi),
    field!(INITIAL_MAX_STREAMS_UNI, initial_max_streams_uni),
    field!(ACK_DELAY_EXPONENT, ack_delay_exponent),
    field!(MAX_ACK_DELAY, max_ack_delay),
    field!(ACTIVE_CONNECTION_ID_LIMIT, active_connection_id_limit),
    field!(MAX_DATAGRAM_FRAME_SIZE, max_datagram_frame_size),
];

const CONNECTION_IDS: [Field<Option<ConnectionId>>; 3] = [
    field!(
        ORIGINAL_DESTINATION_CONNECTION_ID,
        original_destination_connection_id
    ),
    field!(INITIAL_SOURCE_CONNECTION_ID, initial_source_connection_id),
    field!(RETRY_SOURCE_CONNECTION_ID, retry_source_connection_id),
];
