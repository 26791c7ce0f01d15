//! The algorithms that verify signatures of certificates and of handshakes.

use rustls::SignatureScheme as Scheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::SignatureVerificationAlgorithm;
use webpki::aws_lc_rs as algorithm;

/// All algorithms, and those of each scheme of TLS. In TLS 1.2 a scheme of ECDSA permits all curves, and in
/// TLS 1.3 the first one of its list only.
pub(super) const ALGORITHMS: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: ALL,
    mapping: BY_SCHEME,
};

type Algorithms = &'static [&'static dyn SignatureVerificationAlgorithm];

static ALL: Algorithms = &[
    algorithm::ECDSA_P256_SHA256,
    algorithm::ECDSA_P256_SHA384,
    algorithm::ECDSA_P256_SHA512,
    algorithm::ECDSA_P384_SHA256,
    algorithm::ECDSA_P384_SHA384,
    algorithm::ECDSA_P384_SHA512,
    algorithm::ECDSA_P521_SHA256,
    algorithm::ECDSA_P521_SHA384,
    algorithm::ECDSA_P521_SHA512,
    algorithm::ED25519,
    algorithm::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
    algorithm::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
    algorithm::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
    algorithm::RSA_PKCS1_2048_8192_SHA256,
    algorithm::RSA_PKCS1_2048_8192_SHA384,
    algorithm::RSA_PKCS1_2048_8192_SHA512,
    algorithm::RSA_PKCS1_2048_8192_SHA256_ABSENT_PARAMS,
    algorithm::RSA_PKCS1_2048_8192_SHA384_ABSENT_PARAMS,
    algorithm::RSA_PKCS1_2048_8192_SHA512_ABSENT_PARAMS,
    algorithm::ML_DSA_44,
    algorithm::ML_DSA_65,
    algorithm::ML_DSA_87,
];

/// The order is that in which an end announces the schemes.
static BY_SCHEME: &[(Scheme, Algorithms)] = &[
    (Scheme::ECDSA_NISTP384_SHA384, P384_SHA384),
    (Scheme::ECDSA_NISTP256_SHA256, P256_SHA256),
    (Scheme::ECDSA_NISTP521_SHA512, P521_SHA512),
    (Scheme::ED25519, &[algorithm::ED25519]),
    (
        Scheme::RSA_PSS_SHA512,
        &[algorithm::RSA_PSS_2048_8192_SHA512_LEGACY_KEY],
    ),
    (
        Scheme::RSA_PSS_SHA384,
        &[algorithm::RSA_PSS_2048_8192_SHA384_LEGACY_KEY],
    ),
    (
        Scheme::RSA_PSS_SHA256,
        &[algorithm::RSA_PSS_2048_8192_SHA256_LEGACY_KEY],
    ),
    (
        Scheme::RSA_PKCS1_SHA512,
        &[algorithm::RSA_PKCS1_2048_8192_SHA512],
    ),
    (
        Scheme::RSA_PKCS1_SHA384,
        &[algorithm::RSA_PKCS1_2048_8192_SHA384],
    ),
    (
        Scheme::RSA_PKCS1_SHA256,
        &[algorithm::RSA_PKCS1_2048_8192_SHA256],
    ),
    (Scheme::ML_DSA_44, &[algorithm::ML_DSA_44]),
    (Scheme::ML_DSA_65, &[algorithm::ML_DSA_65]),
    (Scheme::ML_DSA_87, &[algorithm::ML_DSA_87]),
];

static P384_SHA384: Algorithms = &[
    algorithm::ECDSA_P384_SHA384,
    algorithm::ECDSA_P256_SHA384,
    algorithm::ECDSA_P521_SHA384,
];
static P256_SHA256: Algorithms = &[
    algorithm::ECDSA_P256_SHA256,
    algorithm::ECDSA_P384_SHA256,
    algorithm::ECDSA_P521_SHA256,
];
static P521_SHA512: Algorithms = &[
    algorithm::ECDSA_P521_SHA512,
    algorithm::ECDSA_P384_SHA512,
    algorithm::ECDSA_P256_SHA512,
];
