//! The derivation of keys by the PRF of TLS 1.2. RFC 5246 §5.

use aws_lc_rs::tls_prf;
use rustls::Error;
use rustls::crypto::ActiveKeyExchange;
use rustls::crypto::tls12::Prf;
use rustls::version::TLS12;

use super::super::fips::is_fips;
use super::{KeySchedule, Sha};

impl KeySchedule {
    fn prf(&self) -> &'static tls_prf::Algorithm {
        match self.0 {
            Sha::Sha256 => &tls_prf::P_SHA256,
            Sha::Sha384 => &tls_prf::P_SHA384,
        }
    }
}

impl Prf for KeySchedule {
    fn for_key_exchange(
        &self,
        output: &mut [u8; 48],
        exchange: Box<dyn ActiveKeyExchange>,
        peer: &[u8],
        label: &[u8],
        seed: &[u8],
    ) -> Result<(), Error> {
        let secret = exchange.complete_for_tls_version(peer, &TLS12)?;
        self.for_secret(output, secret.secret_bytes(), label, seed);
        Ok(())
    }

    fn for_secret(&self, output: &mut [u8], secret: &[u8], label: &[u8], seed: &[u8]) {
        let secret = tls_prf::Secret::new(self.prf(), secret).expect("secrets are not empty");
        let derived = secret.derive(label, seed, output.len());
        output.copy_from_slice(derived.expect("outputs are not empty").as_ref());
    }

    fn fips(&self) -> bool {
        is_fips()
    }
}
