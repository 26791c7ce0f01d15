//! The configuration of a connection.

use courser_base::Side;
use courser_qpack::{DecoderLimits, EncoderLimits};

use crate::extensions::Extensions;
use crate::fields::FieldLimits;

/// The configuration of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Limits for header and trailer sections of the peer.
    pub limits: FieldLimits,
    /// Limits of this end's QPACK decoder, which are announced to the peer.
    pub decoder: DecoderLimits,
    /// Largest number of bytes of field sections that are blocked at a time. A message whose section would
    /// exceed it is cancelled. Default 1 MiB: as many streams as may be blocked, each with the largest section.
    pub blocked_bytes: usize,
    /// Limits of this end's QPACK encoder, in addition to those of the peer.
    pub encoder: EncoderLimits,
    /// Enables extended CONNECT (RFC 9220) on a server.
    pub extended_connect: bool,
    /// Enables HTTP Datagrams (RFC 9297). The transport must accept DATAGRAM frames.
    pub datagrams: bool,
    /// Sends reserved settings, frames and codes, to test that peers ignore unknown ones.
    pub grease: bool,
    /// The origins that a server claims for the connection (RFC 9412). If empty, clients rely on the
    /// certificate.
    pub origins: Vec<String>,
    /// The settings, streams and frames of extensions that the application implements. None by default.
    pub extensions: Extensions,
}

impl Config {
    /// Returns the defaults for a role: dynamic tables of 4 KiB and 16 blocked streams in each direction.
    pub fn new(side: Side) -> Self {
        Self {
            limits: match side {
                Side::Client => FieldLimits::RESPONSE,
                Side::Server => FieldLimits::REQUEST,
            },
            decoder: DecoderLimits {
                max_table_capacity: 4096,
                max_blocked_streams: 16,
            },
            blocked_bytes: 1024 * 1024,
            encoder: EncoderLimits {
                max_table_capacity: 4096,
                max_blocked_streams: 16,
            },
            extended_connect: false,
            datagrams: false,
            grease: true,
            origins: Vec::new(),
            extensions: Extensions::default(),
        }
    }
}
