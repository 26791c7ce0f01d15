//! Writes qlog traces (JSON-SEQ).
//!
//! A [`QlogSink`] writes the records of one connection, and a [`QlogDirectory`] makes a sink for each connection. The
//! traces follow draft-ietf-quic-qlog-main-schema-14, draft-ietf-quic-qlog-quic-events-13 and
//! draft-ietf-quic-qlog-h3-events-13, the newest published as of this writing. `courser qlog` reads them.

mod directory;
mod encode;
mod json;
mod outcome;
mod schema;
mod sink;

pub use directory::QlogDirectory;
pub use outcome::{Dropped, Outcome};
pub use schema::{
    Dialect, EXTENSION, FILE_SCHEMA, OWN_EVENTS, QPACK_EVENTS, SERIALIZATION, SESSION_EVENTS,
};
pub use sink::{QlogSink, TraceHeader};
