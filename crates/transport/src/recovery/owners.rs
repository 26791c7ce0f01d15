//! The parts whose frames packets carry, as loss recovery sees them.

use courser_base::Time;
use courser_telemetry::Record;

use crate::space::SpaceId;
use crate::space::sent::SentFrame;

/// Learns the fate of frames and says what waits to be sent.
///
/// A trait rather than a list of fates: nearly every packet of a bulk transfer carries one frame,
/// whose owner is called without a record in between.
pub(crate) trait FrameOwners {
    /// A frame was acknowledged.
    fn on_frame_acked(&mut self, space: SpaceId, frame: SentFrame);

    /// A frame was lost, or a probe repeats it. Its owner sends it again, or whatever replaces it
    /// today (RFC 9000 §13.3).
    fn on_frame_lost(&mut self, space: SpaceId, frame: SentFrame);

    /// Returns true if stream data or datagrams wait that were never sent.
    fn has_new_data(&self) -> bool;

    /// Returns true if CRYPTO data waits in a space.
    fn has_crypto(&self, space: SpaceId) -> bool;

    /// Records an event for a sink, if there is one.
    fn record(&mut self, now: Time, record: impl FnOnce() -> Record);
}
