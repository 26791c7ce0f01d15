//! Records of the stack as qlog (JSON-SEQ), and qlog of any stack as numbers.
//!
//! Writing: a [`QlogSink`] takes the records of a connection, a [`QlogDirectory`] makes one for
//! each. What they write is draft-ietf-quic-qlog-main-schema-14 and
//! draft-ietf-quic-qlog-quic-events-13, the newest published as of this writing.
//!
//! Reading: a [`Reader`] gives the [`Event`]s of a trace of this stack or another, of these
//! drafts or older ones; a [`Summary`] and [`Series`] are made of them.

mod directory;
mod encode;
mod event;
mod json;
mod rate;
mod reader;
mod samples;
mod schema;
mod series;
mod sink;
mod summary;

pub use directory::QlogDirectory;
pub use event::{Closed, Event, EventKind, Lost, Metrics, Packet, Space, Span};
pub use reader::{About, MAX_PLAIN, MAX_RECORD, ReadError, Reader};
pub use samples::{MAX_SAMPLES, Samples};
pub use schema::{Dialect, EXTENSION, FILE_SCHEMA, OWN_EVENTS, SERIALIZATION};
pub use series::{Point, Series};
pub use sink::{Dropped, Outcome, QlogSink, TraceHeader};
pub use summary::{Close, Losses, RoundTrips, Summary, Traffic};
