//! The table of all frames. RFC 9000 §12.4 Table 3.

/// Calls the macro `$then` with the arguments in brackets and the table of frames.
///
/// This table is the only list of frames and their properties: types, names, and the packets that may
/// carry them. The counters of connections have a field for each entry, and records, qlog and log
/// messages take their names from it. An entry without its variant of [`Frame`](crate::Frame), and
/// a variant without its entry, do not compile.
///
/// An entry has:
/// - the documentation and the variant of [`Frame`](crate::Frame) and [`FrameKind`](crate::FrameKind),
/// - the name in RFCs and the name in qlog,
/// - letters of the column Spec in Table 3: N for frames that are not ack-eliciting, P for frames that
///   probe a path,
/// - the field that counts the frame in statistics, and its type inside a connection: `u64` for
///   frames that carry bulk transfers, `u32` for others. PADDING is not counted,
/// - the types, each with the packets that may carry it, as in the column Pkts of Table 3.
#[doc(hidden)]
#[macro_export]
macro_rules! frames {
    ($then:ident[$($arguments:tt)*]) => {
        $then! {
            [$($arguments)*]

            /// PADDING frames. RFC 9000 §19.1.
            Padding "PADDING" "padding" "NP" [] {
                /// Type of PADDING frames.
                PADDING = 0x00, "IH01";
            }
            /// PING frames. RFC 9000 §19.2.
            Ping "PING" "ping" "" [ping: u32] {
                /// Type of PING frames.
                PING = 0x01, "IH01";
            }
            /// ACK frames. RFC 9000 §19.3.
            Ack "ACK" "ack" "N" [ack: u64] {
                /// Type of ACK frames without ECN counts.
                ACK = 0x02, "IH_1";
                /// Type of ACK frames with ECN counts.
                ACK_ECN = 0x03, "IH_1";
            }
            /// RESET_STREAM frames. RFC 9000 §19.4.
            ResetStream "RESET_STREAM" "reset_stream" "" [reset_stream: u32] {
                /// Type of RESET_STREAM frames.
                RESET_STREAM = 0x04, "__01";
            }
            // A client may remember that the server supports it
            // (draft-ietf-quic-reliable-stream-reset-10 §3), so 0-RTT packets may carry it.
            /// RESET_STREAM_AT frames. draft-ietf-quic-reliable-stream-reset-10 §4.
            ResetStreamAt "RESET_STREAM_AT" "reset_stream_at" "" [reset_stream_at: u32] {
                /// Type of RESET_STREAM_AT frames. draft-ietf-quic-reliable-stream-reset-10 §4.
                RESET_STREAM_AT = 0x24, "__01";
            }
            /// STOP_SENDING frames. RFC 9000 §19.5.
            StopSending "STOP_SENDING" "stop_sending" "" [stop_sending: u32] {
                /// Type of STOP_SENDING frames.
                STOP_SENDING = 0x05, "__01";
            }
            /// CRYPTO frames. RFC 9000 §19.6.
            Crypto "CRYPTO" "crypto" "" [crypto: u32] {
                /// Type of CRYPTO frames.
                CRYPTO = 0x06, "IH_1";
            }
            /// NEW_TOKEN frames. RFC 9000 §19.7.
            NewToken "NEW_TOKEN" "new_token" "" [new_token: u32] {
                /// Type of NEW_TOKEN frames.
                NEW_TOKEN = 0x07, "___1";
            }
            /// STREAM frames. RFC 9000 §19.8.
            Stream "STREAM" "stream" "" [stream: u64] {
                /// Type of STREAM frames without any of the bits FIN (1), LEN (2) and OFF (4).
                STREAM = 0x08..=0x0f, "__01";
            }
            /// MAX_DATA frames. RFC 9000 §19.9.
            MaxData "MAX_DATA" "max_data" "" [max_data: u32] {
                /// Type of MAX_DATA frames.
                MAX_DATA = 0x10, "__01";
            }
            /// MAX_STREAM_DATA frames. RFC 9000 §19.10.
            MaxStreamData "MAX_STREAM_DATA" "max_stream_data" "" [max_stream_data: u32] {
                /// Type of MAX_STREAM_DATA frames.
                MAX_STREAM_DATA = 0x11, "__01";
            }
            /// MAX_STREAMS frames. RFC 9000 §19.11.
            MaxStreams "MAX_STREAMS" "max_streams" "" [max_streams: u32] {
                /// Type of MAX_STREAMS frames for bidirectional streams.
                MAX_STREAMS_BIDI = 0x12, "__01";
                /// Type of MAX_STREAMS frames for unidirectional streams.
                MAX_STREAMS_UNI = 0x13, "__01";
            }
            /// DATA_BLOCKED frames. RFC 9000 §19.12.
            DataBlocked "DATA_BLOCKED" "data_blocked" "" [data_blocked: u32] {
                /// Type of DATA_BLOCKED frames.
                DATA_BLOCKED = 0x14, "__01";
            }
            /// STREAM_DATA_BLOCKED frames. RFC 9000 §19.13.
            StreamDataBlocked "STREAM_DATA_BLOCKED" "stream_data_blocked" ""
            [stream_data_blocked: u32] {
                /// Type of STREAM_DATA_BLOCKED frames.
                STREAM_DATA_BLOCKED = 0x15, "__01";
            }
            /// STREAMS_BLOCKED frames. RFC 9000 §19.14.
            StreamsBlocked "STREAMS_BLOCKED" "streams_blocked" "" [streams_blocked: u32] {
                /// Type of STREAMS_BLOCKED frames for bidirectional streams.
                STREAMS_BLOCKED_BIDI = 0x16, "__01";
                /// Type of STREAMS_BLOCKED frames for unidirectional streams.
                STREAMS_BLOCKED_UNI = 0x17, "__01";
            }
            /// NEW_CONNECTION_ID frames. RFC 9000 §19.15.
            NewConnectionId "NEW_CONNECTION_ID" "new_connection_id" "P" [new_connection_id: u32] {
                /// Type of NEW_CONNECTION_ID frames.
                NEW_CONNECTION_ID = 0x18, "__01";
            }
            // Table 3 permits it in 0-RTT packets, RFC 9000 §12.5 does not: before the server has
            // answered, there is nothing to retire.
            /// RETIRE_CONNECTION_ID frames. RFC 9000 §19.16.
            RetireConnectionId "RETIRE_CONNECTION_ID" "retire_connection_id" ""
            [retire_connection_id: u32] {
                /// Type of RETIRE_CONNECTION_ID frames.
                RETIRE_CONNECTION_ID = 0x19, "___1";
            }
            /// PATH_CHALLENGE frames. RFC 9000 §19.17.
            PathChallenge "PATH_CHALLENGE" "path_challenge" "P" [path_challenge: u32] {
                /// Type of PATH_CHALLENGE frames.
                PATH_CHALLENGE = 0x1a, "__01";
            }
            /// PATH_RESPONSE frames. RFC 9000 §19.18.
            PathResponse "PATH_RESPONSE" "path_response" "P" [path_response: u32] {
                /// Type of PATH_RESPONSE frames.
                PATH_RESPONSE = 0x1b, "___1";
            }
            /// CONNECTION_CLOSE frames. RFC 9000 §19.19.
            ConnectionClose "CONNECTION_CLOSE" "connection_close" "N" [connection_close: u32] {
                /// Type of CONNECTION_CLOSE frames of the transport.
                CONNECTION_CLOSE = 0x1c, "IH01";
                /// Type of CONNECTION_CLOSE frames of the application.
                CONNECTION_CLOSE_APPLICATION = 0x1d, "__01";
            }
            /// HANDSHAKE_DONE frames. RFC 9000 §19.20.
            HandshakeDone "HANDSHAKE_DONE" "handshake_done" "" [handshake_done: u32] {
                /// Type of HANDSHAKE_DONE frames.
                HANDSHAKE_DONE = 0x1e, "___1";
            }
            // An end must not remember that its peer supports this extension
            // (draft-ietf-quic-ack-frequency-12 §3), so 0-RTT packets carry neither of its frames.
            /// IMMEDIATE_ACK frames. draft-ietf-quic-ack-frequency-12 §5.
            ImmediateAck "IMMEDIATE_ACK" "immediate_ack" "" [immediate_ack: u32] {
                /// Type of IMMEDIATE_ACK frames. draft-ietf-quic-ack-frequency-12 §5.
                IMMEDIATE_ACK = 0x1f, "___1";
            }
            /// ACK_FREQUENCY frames. draft-ietf-quic-ack-frequency-12 §4.
            AckFrequency "ACK_FREQUENCY" "ack_frequency" "" [ack_frequency: u32] {
                /// Type of ACK_FREQUENCY frames. draft-ietf-quic-ack-frequency-12 §4.
                ACK_FREQUENCY = 0xaf, "___1";
            }
            // A client may remember that the server supports it (RFC 9221 §3), so 0-RTT packets may
            // carry it.
            /// DATAGRAM frames. RFC 9221 §4.
            Datagram "DATAGRAM" "datagram" "" [datagram: u64] {
                /// Type of DATAGRAM frames that extend to the end of their packet. RFC 9221 §4.
                DATAGRAM = 0x30, "__01";
                /// Type of DATAGRAM frames with a Length field. RFC 9221 §4.
                DATAGRAM_WITH_LENGTH = 0x31, "__01";
            }
            // Both ends must have offered initial_max_path_id, which a client does not remember
            // (RFC 10069 §2.1), so 0-RTT packets carry none of these frames.
            /// PATH_ACK frames. RFC 10069 §4.1.
            PathAck "PATH_ACK" "path_ack" "N" [] {
                /// Type of PATH_ACK frames without ECN counts. RFC 10069 §4.1.
                PATH_ACK = 0x3e, "___1";
                /// Type of PATH_ACK frames with ECN counts. RFC 10069 §4.1.
                PATH_ACK_ECN = 0x3f, "___1";
            }
            /// PATH_ABANDON frames. RFC 10069 §4.2.
            PathAbandon "PATH_ABANDON" "path_abandon" "" [] {
                /// Type of PATH_ABANDON frames. RFC 10069 §4.2.
                PATH_ABANDON = 0x3e75, "___1";
            }
            /// PATH_STATUS_BACKUP frames. RFC 10069 §4.3.
            PathStatusBackup "PATH_STATUS_BACKUP" "path_status_backup" "" [] {
                /// Type of PATH_STATUS_BACKUP frames. RFC 10069 §4.3.
                PATH_STATUS_BACKUP = 0x3e76, "___1";
            }
            /// PATH_STATUS_AVAILABLE frames. RFC 10069 §4.3.
            PathStatusAvailable "PATH_STATUS_AVAILABLE" "path_status_available" "" [] {
                /// Type of PATH_STATUS_AVAILABLE frames. RFC 10069 §4.3.
                PATH_STATUS_AVAILABLE = 0x3e77, "___1";
            }
            /// PATH_NEW_CONNECTION_ID frames. RFC 10069 §4.4.
            PathNewConnectionId "PATH_NEW_CONNECTION_ID" "path_new_connection_id" "" [] {
                /// Type of PATH_NEW_CONNECTION_ID frames. RFC 10069 §4.4.
                PATH_NEW_CONNECTION_ID = 0x3e78, "___1";
            }
            /// PATH_RETIRE_CONNECTION_ID frames. RFC 10069 §4.5.
            PathRetireConnectionId "PATH_RETIRE_CONNECTION_ID" "path_retire_connection_id" "" [] {
                /// Type of PATH_RETIRE_CONNECTION_ID frames. RFC 10069 §4.5.
                PATH_RETIRE_CONNECTION_ID = 0x3e79, "___1";
            }
            /// MAX_PATH_ID frames. RFC 10069 §4.6.
            MaxPathId "MAX_PATH_ID" "max_path_id" "" [] {
                /// Type of MAX_PATH_ID frames. RFC 10069 §4.6.
                MAX_PATH_ID = 0x3e7a, "___1";
            }
            /// PATHS_BLOCKED frames. RFC 10069 §4.7.
            PathsBlocked "PATHS_BLOCKED" "paths_blocked" "" [] {
                /// Type of PATHS_BLOCKED frames. RFC 10069 §4.7.
                PATHS_BLOCKED = 0x3e7b, "___1";
            }
            /// PATH_CIDS_BLOCKED frames. RFC 10069 §4.7.
            PathCidsBlocked "PATH_CIDS_BLOCKED" "path_cids_blocked" "" [] {
                /// Type of PATH_CIDS_BLOCKED frames. RFC 10069 §4.7.
                PATH_CIDS_BLOCKED = 0x3e7c, "___1";
            }
            // In early data the remembered value of address_discovery holds, so 0-RTT packets may carry it
            // (draft-ietf-quic-address-discovery-00 §3).
            /// OBSERVED_ADDRESS frames. draft-ietf-quic-address-discovery-00 §4.1.
            ObservedAddress "OBSERVED_ADDRESS" "observed_address" "P" [] {
                /// Type of OBSERVED_ADDRESS frames with an IPv4 address. draft-ietf-quic-address-discovery-00 §4.1.
                OBSERVED_ADDRESS_IPV4 = 0x9f_81a6, "__01";
                /// Type of OBSERVED_ADDRESS frames with an IPv6 address. draft-ietf-quic-address-discovery-00 §4.1.
                OBSERVED_ADDRESS_IPV6 = 0x9f_81a7, "__01";
            }
            // The rounds of probes need a path that both ends have validated, so 0-RTT packets carry none of these.
            /// ADD_ADDRESS frames. draft-seemann-quic-nat-traversal-02 §4.
            AddAddress "ADD_ADDRESS" "add_address" "" [] {
                /// Type of ADD_ADDRESS frames with an IPv4 address.
                ADD_ADDRESS_IPV4 = 0x3d_7f90, "___1";
                /// Type of ADD_ADDRESS frames with an IPv6 address.
                ADD_ADDRESS_IPV6 = 0x3d_7f91, "___1";
            }
            /// REACH_OUT frames. draft-seemann-quic-nat-traversal-02 §4.
            ReachOut "REACH_OUT" "reach_out" "" [] {
                /// Type of REACH_OUT frames with an IPv4 address.
                REACH_OUT_IPV4 = 0x3d_7f92, "___1";
                /// Type of REACH_OUT frames with an IPv6 address.
                REACH_OUT_IPV6 = 0x3d_7f93, "___1";
            }
            /// REMOVE_ADDRESS frames. draft-seemann-quic-nat-traversal-02 §4.
            RemoveAddress "REMOVE_ADDRESS" "remove_address" "" [] {
                /// Type of REMOVE_ADDRESS frames.
                REMOVE_ADDRESS = 0x3d_7f94, "___1";
            }
        }
    };
}
