//! Records of the stack as qlog (JSON-SEQ), and qlog of any stack as numbers.
//!
//! Written is what draft-ietf-quic-qlog-main-schema-14 and
//! draft-ietf-quic-qlog-quic-events-13 say.

mod directory;
mod encode;
mod json;
mod schema;
mod sink;

pub use directory::QlogDirectory;
pub use schema::{Dialect, EXTENSION, FILE_SCHEMA, OWN_EVENTS, SERIALIZATION};
pub use sink::{Outcome, QlogSink, TraceHeader};
