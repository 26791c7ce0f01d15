//! The interface of loss recovery to the parts that send frames.

use courser_base::Time;
use courser_telemetry::Record;

use crate::space::SpaceId;
use crate::space::sent::SentFrame;

/// The owners of frames: loss recovery notifies them of acknowledgements and losses.
///
/// This is a trait and not a list of results, because nearly every packet of a bulk transfer contains one
/// frame, whose owner is then called directly.
pub(crate) trait FrameOwners {
    /// Processes the acknowledgement of a frame.
    fn on_frame_acked(&mut self, space: SpaceId, frame: SentFrame);

    /// Processes the loss of a frame, or its repetition by a probe. The owner sends the frame again, with current
    /// contents (RFC 9000 §13.3).
    fn on_frame_lost(&mut self, space: SpaceId, frame: SentFrame);

    /// Returns true if there are unsent stream data or datagrams.
    fn has_new_data(&self) -> bool;

    /// Returns true if CRYPTO data of a space is unsent or lost.
    fn has_crypto(&self, space: SpaceId) -> bool;

    /// Records an event for a sink, if there is one.
    fn record(&mut self, now: Time, record: impl FnOnce() -> Record);
}
