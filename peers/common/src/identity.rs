//! The server's certificate: made once by the runner, read by both ends.

use std::fs;
use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::{Failure, settings};

/// Writes a self-signed P-256 certificate and its key into `folder`.
///
/// # Errors
/// When the certificate cannot be made or the files cannot be written.
pub fn generate(folder: &Path) -> Result<(), Failure> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let parameters = rcgen::CertificateParams::new(vec![settings::SERVER_NAME.to_owned()])?;
    let certificate = parameters.self_signed(&key)?;
    fs::write(folder.join(CERTIFICATE), certificate.der())?;
    fs::write(folder.join(KEY), key.serialize_der())?;
    fs::write(folder.join(CERTIFICATE_PEM), certificate.pem())?;
    fs::write(folder.join(KEY_PEM), key.serialize_pem())?;
    Ok(())
}

/// Reads the certificate.
///
/// # Errors
/// When the file cannot be read.
pub fn certificate(folder: &Path) -> Result<CertificateDer<'static>, Failure> {
    Ok(fs::read(folder.join(CERTIFICATE))?.into())
}

/// Reads the key of the certificate.
///
/// # Errors
/// When the file cannot be read.
pub fn key(folder: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    Ok(PrivatePkcs8KeyDer::from(fs::read(folder.join(KEY))?).into())
}

const CERTIFICATE: &str = "certificate.der";
const KEY: &str = "key.der";

/// The same for programs that read PEM.
pub const CERTIFICATE_PEM: &str = "certificate.pem";
/// The same for programs that read PEM.
pub const KEY_PEM: &str = "key.pem";
