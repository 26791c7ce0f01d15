//! Resets of streams of HTTP/2.

/// Resets a stream of HTTP/2, if the server is one of courser.
#[cfg(feature = "server")]
pub(crate) type Reset = courser_server::TunnelReset;

/// Other servers end a stream of HTTP/2.
#[cfg(not(feature = "server"))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reset;

#[cfg(not(feature = "server"))]
impl Reset {
    pub(crate) const fn reset(&self) {}
}
