//! Streams and frames of extensions of the application.

use bytes::Bytes;
use courser_http3 as http3;
use courser_quic::StreamId;

use super::SharedConnection;
use crate::claimed::{ClaimedStream, ExtensionFrame};

impl SharedConnection {
    /// Returns the extensions of the application.
    pub(crate) const fn extensions(&self) -> &http3::Extensions {
        &self.extensions
    }

    /// Returns the peer's settings that only the application implements.
    pub(crate) fn peer_other_settings(&self) -> Vec<(u64, u64)> {
        self.lock().http.peer_other_settings().to_vec()
    }

    /// Returns true if the peer supports the extension, or `None` until its settings arrive.
    pub(crate) fn peer_has_extensions(&self) -> Option<bool> {
        self.lock().http.peer_has_extensions()
    }

    /// Passes a claimed stream to the application, or refuses it.
    pub(crate) fn on_claimed(&self, stream: ClaimedStream) {
        let added = match self.peer_has_extensions() {
            Some(false) => Err(stream),
            _ => self.claimed.add_stream(stream),
        };
        if let Err(stream) = added {
            stream.refuse(self.extensions.refusal());
            let now = self.now();
            // Too many of them close the connection (A122).
            let _ = self.drive(|state| state.http.on_claimed_refused(now));
        }
    }

    /// Refuses all claimed streams of a peer that does not support the extension.
    pub(crate) fn refuse_claimed(&self) {
        for stream in self.claimed.take_streams() {
            stream.refuse(self.extensions.refusal());
        }
    }

    /// Passes a claimed frame of a request stream to the application.
    ///
    /// # Errors
    /// Returns a stream error if too many frames wait.
    pub(crate) fn on_request_frame(
        &self,
        stream: u64,
        frame_type: u64,
        payload: Bytes,
    ) -> Result<(), http3::Error> {
        self.drive(|state| {
            if state.http.peer_has_extensions() == Some(false) {
                return Ok(());
            }
            let frame = ExtensionFrame {
                stream: Some(StreamId::from_value(stream)),
                frame_type,
                payload,
            };
            self.claimed.add_frame(frame, &mut state.woken)
        })
    }
}
