//! Reads qlog traces of any QUIC stack, as events and as numbers.
//!
//! A [`Reader`] returns the [`Event`]s of a trace, whatever draft it follows. A [`Summary`] and [`Series`] are computed
//! from its events.

mod event;
mod rate;
mod reader;
mod samples;
mod series;
mod summary;

pub use self::event::{
    Closed, Event, EventKind, Frame, Lost, Metrics, Packet, Parameters, RawEvent, Space, Span,
};
pub use self::reader::{About, MAX_RECORD, ReadError, Reader};
pub use self::samples::{MAX_SAMPLES, Samples};
pub use self::series::{Point, Series};
pub use self::summary::{Close, Losses, RoundTrips, Summarizer, Summary, Traffic};
