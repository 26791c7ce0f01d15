//! Certificate compression. RFC 8879.
//!
//! rustls negotiates it and has the algorithms, if the features `certificate-zlib` and
//! `certificate-brotli` are on. This module decides which chains are compressed, and how many
//! compressed chains are kept.

use std::sync::{Arc, OnceLock};

use rustls::compress::{
    CertDecompressor, CompressionCache, CompressionLevel, DecompressionFailed,
    default_cert_compressors, default_cert_decompressors,
};
use rustls::pki_types::CertificateDer;
use rustls::{CertificateCompressionAlgorithm, ServerConfig};

use crate::secrets;

/// Prepares the compression of a server with a single chain of this length in bytes.
///
/// Short chains stay as they are: their flight has the same number of datagrams without compression.
pub(crate) fn configure(config: &mut ServerConfig, chain_bytes: usize) {
    if chain_bytes < WORTH_COMPRESSING {
        config.cert_compressors.clear();
    } else {
        keep_compressed(config, 1);
    }
}

/// Sets the number of compressed chains that a server keeps, for a server with so many certificates.
///
/// Each chain is compressed once, with the strongest level, which takes 0.1 ms with zlib and tens of
/// milliseconds with brotli. Servers whose certificates do not fit compress again for each handshake.
/// A certificate has an entry for each algorithm, with and without an OCSP response. There are at least
/// 16 entries and at most 4096 (limit K186).
pub fn keep_compressed(config: &mut ServerConfig, certificates: usize) {
    let entries = certificates.saturating_mul(ENTRIES_PER_CERTIFICATE);
    let entries = entries.clamp(LEAST_COMPRESSED, MOST_COMPRESSED);
    config.cert_compression_cache = Arc::new(CompressionCache::new(entries));
}

/// Returns the decompressors for the configuration of a client. They record their use, for
/// [`HandshakeData::certificate_compression`](courser_crypto::HandshakeData::certificate_compression).
pub fn certificate_decompressors() -> Vec<&'static dyn CertDecompressor> {
    static OBSERVED: OnceLock<Vec<Observed>> = OnceLock::new();
    let observed = OBSERVED.get_or_init(|| {
        let all = default_cert_decompressors().iter();
        all.copied().map(Observed).collect()
    });
    let observed = observed.iter();
    observed.map(|one| one as &dyn CertDecompressor).collect()
}

/// A decompressor whose use is recorded: rustls does not report it.
#[derive(Debug)]
struct Observed(&'static dyn CertDecompressor);

impl CertDecompressor for Observed {
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        self.0.decompress(input, output)?;
        secrets::on_certificate_decompressed(match self.algorithm() {
            CertificateCompressionAlgorithm::Zlib => "zlib",
            CertificateCompressionAlgorithm::Brotli => "brotli",
            CertificateCompressionAlgorithm::Zstd => "zstd",
            _ => "unknown",
        });
        Ok(())
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        self.0.algorithm()
    }
}

/// Returns the length of a chain in bytes after compression with the least effective of the algorithms
/// that this build supports, beside which some clients support none. `None` if it supports none.
pub fn compressed_chain_bytes(chain: &[CertificateDer<'_>]) -> Option<usize> {
    // The certificate list of a Certificate message, without extensions (RFC 8446 §4.4.2).
    let mut list = Vec::new();
    for certificate in chain {
        let len = u32::try_from(certificate.len()).ok()?.to_be_bytes();
        list.extend_from_slice(&len[1..]);
        list.extend_from_slice(certificate);
        list.extend_from_slice(&[0, 0]);
    }
    let compressors = default_cert_compressors().iter();
    let sizes = compressors.filter_map(|algorithm| {
        let compressed = algorithm.compress(list.clone(), CompressionLevel::Amortized);
        compressed.ok().map(|bytes| bytes.len())
    });
    sizes.max()
}

/// Chains below this length fit beside the rest of a server's flight into two datagrams anyway.
const WORTH_COMPRESSING: usize = 1024;

/// Two algorithms, each with and without an OCSP response.
const ENTRIES_PER_CERTIFICATE: usize = 4;
/// The minimum number of compressed chains that are kept (limit K186), some 64 KiB.
const LEAST_COMPRESSED: usize = 16;
/// The maximum number of compressed chains that are kept (limit K186), some 16 MiB for a server with a thousand
/// certificates.
const MOST_COMPRESSED: usize = 4096;

#[cfg(test)]
mod tests;
