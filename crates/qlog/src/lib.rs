//! Writes qlog traces (JSON-SEQ), and reads those of any QUIC stack.
//!
//! Writing: a [`QlogSink`] writes the records of one connection, and a [`QlogDirectory`] makes a
//! sink for each connection. The traces follow draft-ietf-quic-qlog-main-schema-14 and
//! draft-ietf-quic-qlog-quic-events-13 and draft-ietf-quic-qlog-h3-events-13, the newest published as of this writing.
//!
//! Reading: a [`Reader`] returns the [`Event`]s of a trace. The trace may come from another stack
//! and follow older drafts. A [`Summary`] and [`Series`] are computed from its events.

mod directory;
mod encode;
mod event;
mod json;
mod outcome;
mod rate;
mod reader;
mod samples;
mod schema;
mod series;
mod sink;
mod summary;

pub use directory::QlogDirectory;
pub use event::{
    Closed, Event, EventKind, Frame, Lost, Metrics, Packet, Parameters, RawEvent, Space, Span,
};
pub use outcome::{Dropped, Outcome};
pub use reader::{About, MAX_RECORD, ReadError, Reader};
pub use samples::{MAX_SAMPLES, Samples};
pub use schema::{Dialect, EXTENSION, FILE_SCHEMA, OWN_EVENTS, QPACK_EVENTS, SERIALIZATION};
pub use series::{Point, Series};
pub use sink::{QlogSink, TraceHeader};
pub use summary::{Close, Losses, RoundTrips, Summarizer, Summary, Traffic};
