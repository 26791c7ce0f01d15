//! Files with certificates and keys as people have them, and what to do with those that cannot be used.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Parses all certificates of a file in PEM format. Other blocks are skipped.
///
/// # Errors
/// Returns the reason for which there is none, and what to do.
pub fn certificates(file: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = text(file).map_err(|kind| match kind {
        NotPem::Pkcs12 => format!("the certificate file is {PKCS12}"),
        NotPem::Der => "the certificate file is binary (DER), and PEM is needed: convert it with \
                        `openssl x509 -inform DER -in FILE -out FILE.pem`"
            .to_owned(),
        NotPem::Utf16 => format!("the certificate file is {UTF16}"),
        NotPem::Empty => "the certificate file is empty".to_owned(),
        NotPem::Other => format!("the certificate file has no line {BEGIN_CERTIFICATE}"),
    })?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.map_err(|error| format!("certificate: {error}"))?;
    if chain.is_empty() {
        let has_key = contains(text, b"PRIVATE KEY-----");
        return Err(match has_key {
            true => "the certificate file has a private key and no certificate: are the two files swapped?",
            false => "the certificate file has no certificate",
        }
        .to_owned());
    }
    Ok(chain)
}

/// Parses the key of a file.
///
/// # Errors
/// Returns the reason for which it cannot be used, and what to do.
pub(crate) fn key(file: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let text = text(file).map_err(|kind| match kind {
        NotPem::Pkcs12 => format!("the key file is {PKCS12}"),
        NotPem::Der => {
            "the key file is binary (DER), and PEM is needed: convert it with `openssl pkey \
                        -inform DER -in FILE -out FILE.pem`"
                .to_owned()
        }
        NotPem::Utf16 => format!("the key file is {UTF16}"),
        NotPem::Empty => "the key file is empty".to_owned(),
        NotPem::Other => "the key file has no line -----BEGIN PRIVATE KEY-----".to_owned(),
    })?;
    if contains(text, b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || contains(text, b",ENCRYPTED") {
        return Err(
            "the key is encrypted with a passphrase, which nobody enters when a server starts: \
             decrypt it with `openssl pkey -in FILE -out FILE.plain`, readable by the server only"
                .to_owned(),
        );
    }
    if !contains(text, b"PRIVATE KEY-----") {
        let has_certificate = contains(text, BEGIN_CERTIFICATE.as_bytes());
        return Err(match has_certificate {
            true => "the key file has a certificate and no private key: are the two files swapped?",
            false => "the key file has no private key",
        }
        .to_owned());
    }
    let key =
        PrivateKeyDer::from_pem_slice(text).map_err(|error| format!("private key: {error}"))?;
    match rsa_bits(&key) {
        Some(bits) if bits < MIN_RSA_BITS => Err(format!(
            "the RSA key has {bits} bits, and clients refuse fewer than {MIN_RSA_BITS}: request a \
             certificate for another key, such as one of `openssl genpkey -algorithm EC -pkeyopt \
             ec_paramgen_curve:P-256`"
        )),
        _ => Ok(key),
    }
}

/// The kinds of files that are not PEM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NotPem {
    Pkcs12,
    Der,
    Utf16,
    Empty,
    Other,
}

/// Returns PEM text without a byte order mark, which editors of Windows write.
fn text(file: &[u8]) -> Result<&[u8], NotPem> {
    let text = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    if contains(text, b"-----BEGIN ") {
        return Ok(text);
    }
    Err(match text {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => NotPem::Utf16,
        [0x30, ..] => match Der(text).sequence().and_then(|mut pfx| pfx.integer()) {
            // PFX (RFC 7292 §4) begins with its version.
            Some([3]) => NotPem::Pkcs12,
            _ => NotPem::Der,
        },
        _ if text.trim_ascii().is_empty() => NotPem::Empty,
        _ => NotPem::Other,
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Returns the length of the modulus of an RSA key.
fn rsa_bits(key: &PrivateKeyDer<'_>) -> Option<usize> {
    let mut key = match key {
        PrivateKeyDer::Pkcs1(key) => Der(key.secret_pkcs1_der()).sequence()?,
        PrivateKeyDer::Pkcs8(key) => {
            // PrivateKeyInfo (RFC 5208 §5): version, algorithm, key.
            let mut info = Der(key.secret_pkcs8_der()).sequence()?;
            info.integer()?;
            let mut algorithm = info.sequence()?;
            if algorithm.value(0x06)? != RSA_ENCRYPTION {
                return None;
            }
            Der(info.value(0x04)?).sequence()?
        }
        _ => return None,
    };
    // RSAPrivateKey (RFC 8017 appendix A.1.2): version, modulus.
    key.integer()?;
    let modulus = key.integer()?;
    let first = modulus.first()?;
    Some(modulus.len() * 8 - first.leading_zeros() as usize)
}

/// Values in DER, of which only lengths and types are looked at.
#[derive(Clone, Copy, Debug)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn sequence(&mut self) -> Option<Der<'a>> {
        self.value(0x30).map(Der)
    }

    /// Returns the bytes of a positive number, without leading zeros.
    fn integer(&mut self) -> Option<&'a [u8]> {
        let bytes = self.value(0x02)?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.get(zeros..)
    }

    /// Returns the next value if it has this type.
    fn value(&mut self, kind: u8) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_first()?;
        let (len, rest) = rest.split_first()?;
        let (len, rest) = match usize::from(*len) {
            short @ 0..0x80 => (short, rest),
            long => {
                let (bytes, rest) = rest.split_at_checked(long & 0x7f)?;
                let add =
                    |len: usize, byte: &u8| len.checked_mul(256)?.checked_add(usize::from(*byte));
                (bytes.iter().try_fold(0, add)?, rest)
            }
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        (*first == kind).then_some(value)
    }
}

const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
const PKCS12: &str = "PKCS#12, and PEM is needed: convert it with `openssl pkcs12 -in FILE -nodes -out \
                      FILE.pem`, which has both the certificates and the key";
const UTF16: &str = "UTF-16 text: save it as UTF-8 or ASCII";

/// rsaEncryption (RFC 8017 appendix C).
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// The shortest RSA keys that certificate authorities sign and TLS libraries use.
const MIN_RSA_BITS: usize = 2048;

#[cfg(test)]
mod tests;
