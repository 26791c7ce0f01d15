//! The one enum of everything that is recorded.

use crate::{
    CongestionStateUpdated, ConnectionClosed, ConnectionIdUpdated, ConnectionStarted,
    EcnStateUpdated, KeyDiscarded, KeyInstalled, KeyUpdated, MetricsUpdated, MtuUpdated,
    PacketBuffered, PacketDropped, PacketLost, PacketReceived, PacketSent, PathUpdated,
    ProtocolChosen, RecoveryParametersSet, SendLimited, SpuriousLoss, StateChanged, TimerExpired,
    TransportParametersSet, VersionChosen,
};

/// Something that happened on a connection.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Record {
    /// A connection begins.
    ConnectionStarted(ConnectionStarted),
    /// The connection is over, and why.
    ConnectionClosed(ConnectionClosed),
    /// One end is addressed by another ID from now on.
    ConnectionIdUpdated(ConnectionIdUpdated),
    /// The connection entered another state.
    StateChanged(StateChanged),
    /// A path is being proven, taken or left.
    PathUpdated(PathUpdated),
    /// Full datagrams have another size.
    MtuUpdated(MtuUpdated),
    /// The QUIC version is settled.
    VersionChosen(VersionChosen),
    /// The application protocol is settled.
    ProtocolChosen(ProtocolChosen),
    /// Transport parameters of one end are known.
    TransportParametersSet(TransportParametersSet),
    /// A packet left.
    PacketSent(PacketSent),
    /// A packet arrived and was opened.
    PacketReceived(PacketReceived),
    /// A packet arrived and was dropped.
    PacketDropped(PacketDropped),
    /// A packet arrived before its keys and waits for them.
    PacketBuffered(PacketBuffered),
    /// Keys of a level exist.
    KeyInstalled(KeyInstalled),
    /// The 1-RTT keys changed.
    KeyUpdated(KeyUpdated),
    /// Keys of a level are gone.
    KeyDiscarded(KeyDiscarded),
    /// What loss recovery and congestion control start from.
    RecoveryParametersSet(RecoveryParametersSet),
    /// Round-trip time or congestion state changed.
    MetricsUpdated(MetricsUpdated),
    /// The congestion controller behaves differently from now on.
    CongestionStateUpdated(CongestionStateUpdated),
    /// A packet that we sent counts as lost.
    PacketLost(PacketLost),
    /// A packet that counted as lost was acknowledged after all.
    SpuriousLoss(SpuriousLoss),
    /// A timer ran out.
    TimerExpired(TimerExpired),
    /// What keeps the connection from sending more.
    SendLimited(SendLimited),
    /// ECN validation came to another result.
    EcnStateUpdated(EcnStateUpdated),
}
