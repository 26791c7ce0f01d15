//! Settings that are the same for every stack, as far as the stack has them.

use std::time::Duration;

/// UDP payload of a full packet: Ethernet's 1500 less 40 for IPv6 and 8 for UDP.
pub const PACKET_SIZE: u16 = 1452;

/// Bytes that a stream's receiver lets come unread.
pub const STREAM_WINDOW: u32 = 16 << 20;

/// Bytes that a connection's receiver lets come unread.
pub const CONNECTION_WINDOW: u32 = 32 << 20;

/// Bytes of one write.
pub const CHUNK_SIZE: usize = 64 << 10;

/// Send and receive buffer of a UDP socket: the default of courser, for all stacks. It is granted in
/// full with CAP_NET_ADMIN, else up to the system's limit.
pub const SOCKET_BUFFER: usize = 7 << 20;

/// No measurement comes near it.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// Congestion control of the TCP peers, by the kernel's name; the QUIC peers use their CUBIC.
pub const TCP_CONGESTION: &[u8] = b"cubic";

/// Application protocol of every scenario.
pub const ALPN: &[u8] = b"perf";

/// The same where requests follow one another without FIN: `rr` over TCP, where a connection
/// has no streams. A request is the wanted length and one byte.
pub const ALPN_REQUESTS: &[u8] = b"perf-rr";

/// Cipher suite of every stack.
pub const CIPHER: &str = "TLS_AES_128_GCM_SHA256";

/// The name in the certificate.
pub const SERVER_NAME: &str = "localhost";

/// Length of the response length at the start of a stream.
pub const HEADER_LEN: usize = 8;

/// Payload of each unreliable datagram; one fits into a packet of every stack.
pub const DATAGRAM_PAYLOAD: usize = 1200;

/// Bytes of unreliable datagrams that wait to be sent, and as many that wait to be read.
pub const DATAGRAM_BUFFER: usize = 1 << 20;
