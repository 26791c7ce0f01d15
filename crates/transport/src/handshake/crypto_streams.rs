//! The CRYPTO streams of all encryption levels. RFC 9000 §7.5, RFC 9001 §4.

use courser_base::Side;
use courser_wire::frame::Crypto;

use super::crypto_stream::CryptoStream;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::SpaceId;

/// The CRYPTO streams of a connection. The first two exist as long as their keys.
#[derive(Debug)]
pub(crate) struct CryptoStreams {
    side: Side,
    /// The limit that the program has set instead of K01.
    limit: Option<u64>,
    initial: Option<Box<CryptoStream>>,
    handshake: Option<Box<CryptoStream>>,
    application: CryptoStream,
}

impl CryptoStreams {
    /// Creates the stream of 1-RTT packets. The other two are created with their keys.
    pub(crate) fn new(side: Side, limit: Option<u64>) -> Self {
        let own = crypto_limit(side, SpaceId::Application);
        Self {
            side,
            limit,
            initial: None,
            handshake: None,
            application: CryptoStream::new(limit.unwrap_or(own)),
        }
    }

    /// Drops all data, and begins again.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.side, self.limit);
    }

    /// Frees spare capacity.
    pub(crate) fn shrink(&mut self) {
        self.application.shrink();
    }

    /// Creates the stream of a space whose keys became available.
    pub(crate) fn open(&mut self, id: SpaceId) {
        let limit = self.limit.unwrap_or_else(|| crypto_limit(self.side, id));
        let new = || Box::new(CryptoStream::new(limit));
        match id {
            SpaceId::Initial => {
                self.initial.get_or_insert_with(new);
            }
            SpaceId::Handshake => self.handshake = Some(new()),
            SpaceId::Application => {}
        }
    }

    /// Removes the stream of a space whose keys are discarded.
    pub(crate) fn discard(&mut self, id: SpaceId) {
        match id {
            SpaceId::Initial => self.initial = None,
            SpaceId::Handshake => self.handshake = None,
            SpaceId::Application => {}
        }
    }

    /// Processes a CRYPTO frame.
    ///
    /// # Errors
    ///
    /// CRYPTO_BUFFER_EXCEEDED when it runs ahead of TLS by more than limit K01, or what the program has set.
    pub(crate) fn on_crypto_frame(
        &mut self,
        id: SpaceId,
        frame: &Crypto<'_>,
    ) -> Result<(), TransportError> {
        self.get_mut(id)
            .map_or(Ok(()), |stream| stream.on_crypto_frame(frame))
    }

    /// Returns true if an Initial repeats data that was received before.
    pub(crate) fn has_received_initial(&self, frame: &Crypto<'_>) -> bool {
        let initial = self.initial.as_ref();
        initial.is_some_and(|stream| stream.has_received(frame))
    }

    /// Returns true if a frame contains bytes that were not passed to TLS yet.
    pub(crate) fn is_ahead(&self, id: SpaceId, frame: &Crypto<'_>) -> bool {
        let end = frame.offset + frame.data.len() as u64;
        self.get(id)
            .is_some_and(|stream| end > stream.read_offset())
    }

    /// Removes and returns the next bytes for TLS.
    pub(crate) fn read(&mut self, id: SpaceId) -> Option<Vec<u8>> {
        self.get_mut(id)?.read()
    }

    /// Returns true if bytes were received that TLS has not read.
    pub(crate) fn has_unread(&self, id: SpaceId) -> bool {
        self.get(id).is_some_and(CryptoStream::has_unread)
    }

    /// Queues bytes from TLS to be sent.
    pub(crate) fn write(&mut self, id: SpaceId, bytes: &[u8]) {
        if let Some(stream) = self.get_mut(id)
            && !bytes.is_empty()
        {
            stream.write(bytes);
        }
    }

    /// Returns true if bytes from TLS are unsent or lost.
    #[inline]
    pub(crate) fn has_frames_to_send(&self, id: SpaceId) -> bool {
        self.get(id).is_some_and(CryptoStream::has_frames_to_send)
    }

    /// Writes as many CRYPTO frames as fit.
    pub(crate) fn write_frames(&mut self, id: SpaceId, packet: &mut PacketBuilder<'_>) {
        if let Some(stream) = self.get_mut(id) {
            stream.write_frames(packet);
        }
    }

    /// Processes the acknowledgement of a frame.
    pub(crate) fn on_acked(&mut self, id: SpaceId, offset: u64, len: u16) {
        if let Some(stream) = self.get_mut(id) {
            stream.on_acked(offset, len);
        }
    }

    /// Queues the bytes of a frame again, because it was lost or a probe repeats it.
    pub(crate) fn on_lost(&mut self, id: SpaceId, offset: u64, len: u16) {
        if let Some(stream) = self.get_mut(id) {
            stream.on_lost(offset, len);
        }
    }

    /// Queues the first flight again, after a Retry.
    pub(crate) fn rewind_initial(&mut self) {
        if let Some(stream) = &mut self.initial {
            stream.rewind();
        }
    }

    /// Returns the stream of a space, if its keys are available.
    #[inline]
    pub(crate) fn get(&self, id: SpaceId) -> Option<&CryptoStream> {
        match id {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Application => Some(&self.application),
        }
    }

    fn get_mut(&mut self, id: SpaceId) -> Option<&mut CryptoStream> {
        match id {
            SpaceId::Initial => self.initial.as_deref_mut(),
            SpaceId::Handshake => self.handshake.as_deref_mut(),
            SpaceId::Application => Some(&mut self.application),
        }
    }
}

/// Bytes of CRYPTO data that may run ahead of TLS (limit K01). A server's certificate chain is longer
/// than anything that a client sends.
pub(crate) const fn crypto_limit(side: Side, space: SpaceId) -> u64 {
    match (side, space) {
        (Side::Client, SpaceId::Handshake) => 64 * 1024,
        _ => 16 * 1024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(offset: u64, data: &[u8]) -> Crypto<'_> {
        Crypto { offset, data }
    }

    #[test]
    fn bytes_reach_tls_in_order_and_repetitions_are_noticed() {
        let mut streams = CryptoStreams::new(Side::Server, None);
        streams.open(SpaceId::Initial);
        let id = SpaceId::Initial;
        streams
            .on_crypto_frame(id, &frame(3, b"def"))
            .expect("room");
        assert_eq!(streams.read(id), None);
        streams
            .on_crypto_frame(id, &frame(0, b"abc"))
            .expect("room");
        assert_eq!(streams.read(id).as_deref(), Some(&b"abcdef"[..]));
        assert!(streams.has_received_initial(&frame(0, b"abc")));
        assert!(!streams.is_ahead(id, &frame(0, b"abcdef")));
        assert!(streams.is_ahead(id, &frame(0, b"abcdefg")));
    }

    #[test]
    fn server_flight_may_be_longer_than_client_flight() {
        let data = vec![0; 64 * 1024];
        for (side, fits) in [(Side::Client, true), (Side::Server, false)] {
            let mut streams = CryptoStreams::new(side, None);
            streams.open(SpaceId::Handshake);
            let result = streams.on_crypto_frame(SpaceId::Handshake, &frame(0, &data));
            assert_eq!(result.is_ok(), fits, "{side:?}");
        }
    }

    #[test]
    fn limit_of_the_program_applies_to_all_levels_and_after_a_restart() {
        let mut streams = CryptoStreams::new(Side::Client, Some(5000));
        streams.restart();
        for id in SpaceId::ALL {
            streams.open(id);
            let fits = streams.on_crypto_frame(id, &frame(4000, &[0; 1000]));
            assert_eq!(fits, Ok(()), "{id:?}");
            let error = streams.on_crypto_frame(id, &frame(4001, &[0; 1000]));
            let error = error.expect_err("past the limit").to_string();
            assert!(error.contains("5001 exceeds 5000"), "{error}");
        }
    }

    #[test]
    fn discarded_stream_ignores_frames_and_sends_none() {
        let mut streams = CryptoStreams::new(Side::Client, None);
        streams.open(SpaceId::Initial);
        streams.write(SpaceId::Initial, b"hello");
        assert!(streams.has_frames_to_send(SpaceId::Initial));
        streams.discard(SpaceId::Initial);
        assert!(!streams.has_frames_to_send(SpaceId::Initial));
        let result = streams.on_crypto_frame(SpaceId::Initial, &frame(0, b"late"));
        assert_eq!(result, Ok(()));
    }
}
