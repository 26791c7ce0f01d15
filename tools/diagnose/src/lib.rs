//! Diagnoses for QUIC: [`doctor`] checks the machine that it runs on, and [`probe`] checks a server.
//! [`WebTransport`] tells who can open sessions on a server with these settings.
//!
//! Both work in three steps: they observe, they judge the observations as [`Finding`]s without side effects,
//! and they report these as text, as JSON and as an exit code.

pub mod doctor;
mod finding;
pub mod probe;
mod webtransport;

pub use crate::finding::{Finding, Verdict};
pub use crate::webtransport::{AnnouncedDialect, WebTransport};

/// The port of HTTPS.
const HTTPS: u16 = 443;

/// The largest certificate chain that fits a server's first flight: 3600 bytes, which is three times the
/// client's datagram (RFC 9000 §8.1), minus ServerHello, signature and headers.
const FITS_FIRST_FLIGHT: usize = 3000;
