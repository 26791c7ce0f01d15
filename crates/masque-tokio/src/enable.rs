//! Settings of connections that carry UDP proxies.

use courser_base::Side;
use courser_http3_tokio::Config;

/// Announces extended CONNECT and HTTP Datagrams in the settings of a connection of HTTP/3.
///
/// ```
/// # mod courser { pub use courser_http3_tokio as h3; pub use courser_masque_tokio as masque; pub use courser_quic::*; }
/// use courser::{Side, h3, masque};
/// let mut settings = h3::Config::new(Side::Server);
/// masque::enable(&mut settings, Side::Server);
/// assert!(settings.extended_connect && settings.datagrams);
/// ```
pub const fn enable(settings: &mut Config, side: Side) {
    // Only servers announce extended CONNECT (RFC 9220 §3).
    settings.extended_connect |= matches!(side, Side::Server);
    settings.datagrams = true;
}
