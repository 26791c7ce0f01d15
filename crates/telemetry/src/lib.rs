//! Typed records of the events on a connection.
//!
//! The protocol core passes records to a [`Sink`] and formats nothing. Without a sink a record
//! costs one branch, because records are built in a closure that is not called.
//!
//! Sinks are called under the lock of an endpoint and must not block. [`BackgroundWriter`] provides
//! a thread and a bounded queue for sinks that write files.

mod background;
mod connectivity;
mod field;
mod frames;
mod http3;
mod pending;
mod qpack;
mod record;
mod recovery;
mod security;
mod sink;
mod transport;

pub use background::{BackgroundWriter, DroppedWrites, Output, QUEUE_BYTES};
pub use connectivity::{
    CloseCause, ConnectionClosed, ConnectionIdUpdated, ConnectionStarted, MtuUpdated, PathFeature,
    PathFeatureUpdated, PathSilenceUpdated, PathState, PathUpdated, StateChanged,
};
pub use field::{Field, FieldSection};
pub use frames::{AddressRecord, FrameRecord, MAX_ACK_RANGES, MultipathRecord, frames_of};
pub use http3::{Http3Frame, Http3Parameters, Http3Record, Http3StreamType, SessionChange};
pub use pending::Pending;
pub use qpack::{QpackInstruction, QpackRecord, QpackState};
pub use record::{Record, RecordsMissed};
pub use recovery::{
    CongestionStateUpdated, EcnState, EcnStateUpdated, LossTrigger, MetricsUpdated, PacketLost,
    RecoveryParametersSet, SendLimit, SendLimited, SpuriousLoss, Timer, TimerExpired,
};
pub use security::{KeyDiscarded, KeyInstalled, KeyUpdated};
pub use sink::{Detail, NoSink, Sink, SinkFactory, Tap, Tee, Watch};
pub use transport::{
    PacketBuffered, PacketDropped, PacketReceived, PacketSent, ProtocolChosen, Reason,
    TransportParametersSet, VersionChosen,
};
