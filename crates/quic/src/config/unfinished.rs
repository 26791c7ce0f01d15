//! Placeholders of configurations until they are built.

use courser_crypto::{ClientTls, ServerTls, TlsSession, TlsStartError};

/// Returns a placeholder until the protocols are known: certificates are checked when they are set,
/// protocols only at the end.
pub(crate) fn no_protocol_yet() -> Vec<Vec<u8>> {
    vec![b"none yet".to_vec()]
}

/// A placeholder for the TLS sessions that `build` creates once the protocols are known.
pub(crate) struct Unfinished;

fn unfinished() -> Result<Box<dyn TlsSession>, TlsStartError> {
    Err(TlsStartError::Configuration(
        "the configuration was not built".to_owned(),
    ))
}

impl ServerTls for Unfinished {
    fn start(&self, _: Vec<u8>) -> Result<Box<dyn TlsSession>, TlsStartError> {
        unfinished()
    }
}

impl ClientTls for Unfinished {
    fn start(&self, _: &str, _: Vec<u8>) -> Result<Box<dyn TlsSession>, TlsStartError> {
        unfinished()
    }
}
