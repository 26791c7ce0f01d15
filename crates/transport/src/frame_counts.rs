//! Numbers of frames by type.

use courser_wire::frame::Frame;

/// Numbers of frames by type, in one direction. PADDING is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameCounts {
    /// PING frames. RFC 9000 §19.2.
    pub ping: u64,
    /// ACK frames. RFC 9000 §19.3.
    pub ack: u64,
    /// RESET_STREAM frames. RFC 9000 §19.4.
    pub reset_stream: u64,
    /// RESET_STREAM_AT frames. draft-ietf-quic-reliable-stream-reset-10 §4.
    pub reset_stream_at: u64,
    /// STOP_SENDING frames. RFC 9000 §19.5.
    pub stop_sending: u64,
    /// CRYPTO frames. RFC 9000 §19.6.
    pub crypto: u64,
    /// NEW_TOKEN frames. RFC 9000 §19.7.
    pub new_token: u64,
    /// STREAM frames. RFC 9000 §19.8.
    pub stream: u64,
    /// MAX_DATA frames. RFC 9000 §19.9.
    pub max_data: u64,
    /// MAX_STREAM_DATA frames. RFC 9000 §19.10.
    pub max_stream_data: u64,
    /// MAX_STREAMS frames. RFC 9000 §19.11.
    pub max_streams: u64,
    /// DATA_BLOCKED frames. RFC 9000 §19.12.
    pub data_blocked: u64,
    /// STREAM_DATA_BLOCKED frames. RFC 9000 §19.13.
    pub stream_data_blocked: u64,
    /// STREAMS_BLOCKED frames. RFC 9000 §19.14.
    pub streams_blocked: u64,
    /// NEW_CONNECTION_ID frames. RFC 9000 §19.15.
    pub new_connection_id: u64,
    /// RETIRE_CONNECTION_ID frames. RFC 9000 §19.16.
    pub retire_connection_id: u64,
    /// PATH_CHALLENGE frames. RFC 9000 §19.17.
    pub path_challenge: u64,
    /// PATH_RESPONSE frames. RFC 9000 §19.18.
    pub path_response: u64,
    /// CONNECTION_CLOSE frames. RFC 9000 §19.19.
    pub connection_close: u64,
    /// HANDSHAKE_DONE frames. RFC 9000 §19.20.
    pub handshake_done: u64,
    /// DATAGRAM frames. RFC 9221 §4.
    pub datagram: u64,
    /// ACK_FREQUENCY frames. draft-ietf-quic-ack-frequency-12 §4.
    pub ack_frequency: u64,
    /// IMMEDIATE_ACK frames. draft-ietf-quic-ack-frequency-12 §5.
    pub immediate_ack: u64,
}

/// The numbers as a connection stores them: 32 bits are enough for frames that are rare.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameTally {
    pub(crate) ping: u32,
    pub(crate) ack: u64,
    pub(crate) reset_stream: u32,
    pub(crate) reset_stream_at: u32,
    pub(crate) stop_sending: u32,
    pub(crate) crypto: u32,
    pub(crate) new_token: u32,
    pub(crate) stream: u64,
    pub(crate) max_data: u32,
    pub(crate) max_stream_data: u32,
    pub(crate) max_streams: u32,
    pub(crate) data_blocked: u32,
    pub(crate) stream_data_blocked: u32,
    pub(crate) streams_blocked: u32,
    pub(crate) new_connection_id: u32,
    pub(crate) retire_connection_id: u32,
    pub(crate) path_challenge: u32,
    pub(crate) path_response: u32,
    pub(crate) connection_close: u32,
    pub(crate) handshake_done: u32,
    pub(crate) datagram: u64,
    pub(crate) ack_frequency: u32,
    pub(crate) immediate_ack: u32,
}

impl FrameTally {
    /// Counts a received frame.
    #[inline]
    pub(crate) fn on_received(&mut self, frame: &Frame<'_>) {
        let count = match frame {
            Frame::Padding(_) => return,
            Frame::Stream(_) => return self.stream += 1,
            Frame::Ack(_) => return self.ack += 1,
            Frame::Datagram(_) => return self.datagram += 1,
            Frame::Ping => &mut self.ping,
            Frame::ResetStream(_) => &mut self.reset_stream,
            Frame::ResetStreamAt(_) => &mut self.reset_stream_at,
            Frame::StopSending(_) => &mut self.stop_sending,
            Frame::Crypto(_) => &mut self.crypto,
            Frame::NewToken(_) => &mut self.new_token,
            Frame::MaxData(_) => &mut self.max_data,
            Frame::MaxStreamData(_) => &mut self.max_stream_data,
            Frame::MaxStreams(_) => &mut self.max_streams,
            Frame::DataBlocked(_) => &mut self.data_blocked,
            Frame::StreamDataBlocked(_) => &mut self.stream_data_blocked,
            Frame::StreamsBlocked(_) => &mut self.streams_blocked,
            Frame::NewConnectionId(_) => &mut self.new_connection_id,
            Frame::RetireConnectionId(_) => &mut self.retire_connection_id,
            Frame::PathChallenge(_) => &mut self.path_challenge,
            Frame::PathResponse(_) => &mut self.path_response,
            Frame::ConnectionClose(_) => &mut self.connection_close,
            Frame::HandshakeDone => &mut self.handshake_done,
            Frame::AckFrequency(_) => &mut self.ack_frequency,
            Frame::ImmediateAck => &mut self.immediate_ack,
        };
        *count = count.saturating_add(1);
    }
}

impl From<FrameTally> for FrameCounts {
    fn from(tally: FrameTally) -> Self {
        Self {
            ping: tally.ping.into(),
            ack: tally.ack,
            reset_stream: tally.reset_stream.into(),
            reset_stream_at: tally.reset_stream_at.into(),
            stop_sending: tally.stop_sending.into(),
            crypto: tally.crypto.into(),
            new_token: tally.new_token.into(),
            stream: tally.stream,
            max_data: tally.max_data.into(),
            max_stream_data: tally.max_stream_data.into(),
            max_streams: tally.max_streams.into(),
            data_blocked: tally.data_blocked.into(),
            stream_data_blocked: tally.stream_data_blocked.into(),
            streams_blocked: tally.streams_blocked.into(),
            new_connection_id: tally.new_connection_id.into(),
            retire_connection_id: tally.retire_connection_id.into(),
            path_challenge: tally.path_challenge.into(),
            path_response: tally.path_response.into(),
            connection_close: tally.connection_close.into(),
            handshake_done: tally.handshake_done.into(),
            datagram: tally.datagram,
            ack_frequency: tally.ack_frequency.into(),
            immediate_ack: tally.immediate_ack.into(),
        }
    }
}
