//! Certificate compression. RFC 8879.
//!
//! rustls negotiates it and has the algorithms, if the features `certificate-zlib` and
//! `certificate-brotli` are enabled. This module decides which chains are compressed, and how many
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
/// Short chains are not compressed, because compression would not save a datagram of the flight.
pub(crate) fn configure(config: &mut ServerConfig, chain_bytes: usize) {
    if chain_bytes < MIN_COMPRESSED_CHAIN {
        config.cert_compressors.clear();
    } else {
        keep_compressed(config, 1);
    }
}

/// Sets the number of compressed chains that a server with `certificates` certificates keeps.
///
/// Each chain is compressed once, with the strongest level, which takes 0.1 ms with zlib and tens of
/// milliseconds with brotli. Servers whose certificates do not fit compress again for each handshake.
/// A certificate has an entry for each algorithm, with and without an OCSP response. There are at least
/// 16 entries and at most 4096 (limit K186).
pub fn keep_compressed(config: &mut ServerConfig, certificates: usize) {
    let entries = certificates.saturating_mul(ENTRIES_PER_CERTIFICATE);
    let entries = entries.clamp(MIN_CACHED_CHAINS, MAX_CACHED_CHAINS);
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
    observed
        .map(|decompressor| decompressor as &dyn CertDecompressor)
        .collect()
}

/// A decompressor whose use is recorded, because rustls does not report it.
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

/// Returns the length of a chain in bytes after compression with the least effective algorithm that
/// this build supports; `None` if it supports none. Clients that support no algorithm receive the
/// chain uncompressed.
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

/// Minimum length of a chain that is compressed. With shorter ones, a server's flight fits two
/// datagrams without compression.
const MIN_COMPRESSED_CHAIN: usize = 1024;

/// Cache entries per certificate: two algorithms, each with and without an OCSP response.
const ENTRIES_PER_CERTIFICATE: usize = 4;
/// Minimum number of compressed chains that are kept (limit K186), some 64 KiB.
const MIN_CACHED_CHAINS: usize = 16;
/// Maximum number of compressed chains that are kept (limit K186), some 16 MiB for a server with a
/// thousand certificates.
const MAX_CACHED_CHAINS: usize = 4096;

#[cfg(test)]
mod tests;
