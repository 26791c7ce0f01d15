//! The enum of all records.

use crate::{
    CongestionStateUpdated, ConnectionClosed, ConnectionIdUpdated, ConnectionStarted,
    EcnStateUpdated, Http3Record, KeyDiscarded, KeyInstalled, KeyUpdated, MetricsUpdated,
    MtuUpdated, PacketBuffered, PacketDropped, PacketLost, PacketReceived, PacketSent,
    PathFeatureUpdated, PathSilenceUpdated, PathUpdated, ProtocolChosen, QpackRecord,
    RecoveryParametersSet, SendLimited, SpuriousLoss, StateChanged, TimerExpired,
    TransportParametersSet, VersionChosen,
};

/// An event on a connection.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Record {
    /// The connection was created.
    ConnectionStarted(ConnectionStarted),
    /// The connection was closed by one end or by a timeout.
    ConnectionClosed(ConnectionClosed),
    /// One end is addressed by a new connection ID.
    ConnectionIdUpdated(ConnectionIdUpdated),
    /// The connection changed its state.
    StateChanged(StateChanged),
    /// A path was probed, migrated to or abandoned.
    PathUpdated(PathUpdated),
    /// Acknowledgements on the path stopped or resumed.
    PathSilenceUpdated(PathSilenceUpdated),
    /// The size of full datagrams changed.
    MtuUpdated(MtuUpdated),
    /// An optional feature of packets was disabled on the path, or enabled again.
    PathFeatureUpdated(PathFeatureUpdated),
    /// The QUIC version was negotiated.
    VersionChosen(VersionChosen),
    /// The application protocol was negotiated.
    ProtocolChosen(ProtocolChosen),
    /// The transport parameters of one end were set or received.
    TransportParametersSet(TransportParametersSet),
    /// A packet was sent.
    PacketSent(PacketSent),
    /// A packet was received and opened.
    PacketReceived(PacketReceived),
    /// A packet was received and dropped.
    PacketDropped(PacketDropped),
    /// A packet was received before its keys and is buffered until they exist.
    PacketBuffered(PacketBuffered),
    /// The keys of an encryption level were installed.
    KeyInstalled(KeyInstalled),
    /// The 1-RTT keys were updated.
    KeyUpdated(KeyUpdated),
    /// The keys of an encryption level were discarded.
    KeyDiscarded(KeyDiscarded),
    /// The initial parameters of loss recovery and congestion control.
    RecoveryParametersSet(RecoveryParametersSet),
    /// Metrics of the round-trip time or of congestion control changed.
    MetricsUpdated(MetricsUpdated),
    /// The congestion controller changed its state.
    CongestionStateUpdated(CongestionStateUpdated),
    /// A packet of this end was declared lost.
    PacketLost(PacketLost),
    /// A packet that had been declared lost was acknowledged.
    SpuriousLoss(SpuriousLoss),
    /// A timer of loss recovery expired.
    TimerExpired(TimerExpired),
    /// The connection stopped sending because of a limit.
    SendLimited(SendLimited),
    /// The state of ECN validation changed.
    EcnStateUpdated(EcnStateUpdated),
    /// An event of HTTP/3.
    Http3(Http3Record),
    /// An event of QPACK.
    Qpack(QpackRecord),
    /// Records were omitted because too many events happened at once.
    RecordsMissed(RecordsMissed),
}

/// Records were omitted because too many events happened at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordsMissed {
    /// The number of omitted records.
    pub count: u64,
}
