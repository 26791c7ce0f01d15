//! HTTP/3 (RFC 9114) without a transport.
//!
//! [`Connection`] holds what all requests share: settings, QPACK, the control stream, GOAWAY,
//! priorities. A [`MessageReader`] cuts the bytes of one request stream into its message. Both eat
//! the bytes of streams and know nothing of packets, so they run over any QUIC and are tested
//! without one. There is no clock, no socket and no task in here.
//!
//! Whatever the peer does wrong is an [`Error`] that says what ends, with which [`Code`].

mod budget;
mod capsule;
mod connection;
mod error;
mod fields;
mod frame;
mod frame_order;
mod frame_reader;
mod message;
mod priority;
mod settings;
mod stream_type;

pub use capsule::{Capsule, CapsuleReader};
pub use connection::{
    Config, Connection, Event, RequestHead, ResponseHead, Section, UniFate, UniStream,
};
pub use error::{Code, Error, Scope};
pub use fields::{FieldLimits, FieldsError, FieldsToSend, Protocol, RequestError};
pub use frame::{DataHeader, data_header};
pub use message::{MessageReader, Part};
pub use priority::Priority;
pub use settings::Settings;
