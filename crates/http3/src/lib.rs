//! HTTP/3 (RFC 9114) without a transport.
//!
//! [`Connection`] holds the state that all requests share: settings, QPACK, the control stream, GOAWAY,
//! priorities. A [`RequestStream`] receives the message on one request stream, and a [`MessageWriter`] frames
//! the message that is sent on it. All of them process the bytes of streams and are independent of packets, so
//! they run over any QUIC implementation and are tested without one. The crate has no clock, no socket and no
//! task.
//!
//! Each violation by the peer is an [`Error`] with the [`Code`] to send to the peer and the [`Scope`] that ends.

mod budget;
mod capsule;
mod config_error;
mod connection;
mod error;
mod extensions;
mod fields;
mod frame;
mod frame_order;
mod frame_reader;
#[doc(hidden)]
pub mod hooks;
mod message_writer;
mod priority;
mod request_stream;
mod settings;
mod stream_type;
pub mod structured_fields;

pub use capsule::{Capsule, CapsuleReader};
pub use config_error::ConfigError;
pub use connection::{
    Config, Connection, Event, RequestHead, ResponseHead, Section, UniFate, UniStream,
};
pub use error::{Code, Error, Scope};
pub use extensions::{ClaimError, Extensions, FrameStream, Group, SessionCodes};
pub use fields::{FieldLimits, FieldsError, FieldsToSend, HttpDate, Protocol, RequestError};
pub use frame::{DataHeader, data_header};
pub use message_writer::MessageWriter;
pub use priority::Priority;
pub use request_stream::{Decoding, RequestStream, Step};
pub use settings::Settings;
