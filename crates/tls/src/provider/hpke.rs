//! Hybrid public key encryption for Encrypted Client Hello, without a pre-shared key. RFC 9180.

use std::fmt;

use aws_lc_rs::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::encoding::{AsBigEndian as _, Curve25519SeedBin, EcPrivateKeyBin};
use aws_lc_rs::{hkdf, hmac};
use rustls::Error;
use rustls::crypto::hpke::{
    EncapsulatedSecret, Hpke, HpkeOpener, HpkePrivateKey, HpkePublicKey, HpkeSealer, HpkeSuite,
};
use rustls::internal::msgs::enums::{HpkeAead, HpkeKdf, HpkeKem};
use rustls::internal::msgs::handshake::HpkeSymmetricCipherSuite;
use zeroize::Zeroizing;

use super::fips::is_fips;
use super::key_schedule::Length;
use super::records::Aead;

/// Returns all suites, the preferred one first; with the feature `fips`, the approved ones.
pub(crate) fn all() -> Vec<&'static dyn Hpke> {
    let suites = SUITES.iter().map(|suite| suite as &dyn Hpke);
    suites
        .filter(|suite| !cfg!(feature = "fips") || suite.fips())
        .collect()
}

/// Returns the suite whose keys most servers have: that of an extension which only looks like ECH.
pub(crate) fn grease() -> &'static dyn Hpke {
    static GREASE: Suite = Suite(Kem::X25519, Aead::Aes128Gcm);
    &GREASE
}

static SUITES: [Suite; 12] = [
    Suite(Kem::P256, Aead::Aes128Gcm),
    Suite(Kem::P256, Aead::Aes256Gcm),
    Suite(Kem::P256, Aead::ChaCha20Poly1305),
    Suite(Kem::P384, Aead::Aes128Gcm),
    Suite(Kem::P384, Aead::Aes256Gcm),
    Suite(Kem::P384, Aead::ChaCha20Poly1305),
    Suite(Kem::P521, Aead::Aes128Gcm),
    Suite(Kem::P521, Aead::Aes256Gcm),
    Suite(Kem::P521, Aead::ChaCha20Poly1305),
    Suite(Kem::X25519, Aead::Aes128Gcm),
    Suite(Kem::X25519, Aead::Aes256Gcm),
    Suite(Kem::X25519, Aead::ChaCha20Poly1305),
];

/// A key encapsulation mechanism by Diffie-Hellman. RFC 9180 §4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kem {
    P256,
    P384,
    P521,
    X25519,
}

/// A key encapsulation mechanism and an AEAD. The key derivation has the hash of the former.
#[derive(Clone, Copy)]
struct Suite(Kem, Aead);

impl Kem {
    const fn id(self) -> HpkeKem {
        match self {
            Self::P256 => HpkeKem::DHKEM_P256_HKDF_SHA256,
            Self::P384 => HpkeKem::DHKEM_P384_HKDF_SHA384,
            Self::P521 => HpkeKem::DHKEM_P521_HKDF_SHA512,
            Self::X25519 => HpkeKem::DHKEM_X25519_HKDF_SHA256,
        }
    }

    const fn kdf(self) -> HpkeKdf {
        match self {
            Self::P256 | Self::X25519 => HpkeKdf::HKDF_SHA256,
            Self::P384 => HpkeKdf::HKDF_SHA384,
            Self::P521 => HpkeKdf::HKDF_SHA512,
        }
    }

    fn agreement(self) -> &'static agreement::Algorithm {
        match self {
            Self::P256 => &agreement::ECDH_P256,
            Self::P384 => &agreement::ECDH_P384,
            Self::P521 => &agreement::ECDH_P521,
            Self::X25519 => &agreement::X25519,
        }
    }

    fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::P256 | Self::X25519 => hkdf::HKDF_SHA256,
            Self::P384 => hkdf::HKDF_SHA384,
            Self::P521 => hkdf::HKDF_SHA512,
        }
    }

    /// Returns the derivation of the shared secret.
    fn labeled(self) -> Labeled {
        let id = u16::from(self.id()).to_be_bytes();
        Labeled {
            hkdf: self.hkdf(),
            suite: [&b"KEM"[..], &id].concat(),
        }
    }

    /// Returns the shared secret of an ephemeral key and the peer's public key. `keys` are the public keys of sender
    /// and receiver.
    fn agree(self, own: &PrivateKey, peer: &[u8], keys: &[&[u8]]) -> Result<Secret, Error> {
        let peer = UnparsedPublicKey::new(self.agreement(), peer);
        let labeled = self.labeled();
        let failed = Error::General("invalid public key of HPKE".to_owned());
        agreement::agree(own, peer, failed, |shared| {
            let prk = labeled.extract(&[], b"eae_prk", shared);
            Ok(labeled.expand(&prk, b"shared_secret", keys, prk.len()))
        })
    }

    /// Returns the encapsulation by an ephemeral key for a public key. RFC 9180 §4.1, `Encap`.
    fn encapsulate(
        self,
        ephemeral: &PrivateKey,
        receiver: &HpkePublicKey,
    ) -> Result<(EncapsulatedSecret, Secret), Error> {
        let sender = ephemeral.compute_public_key().map_err(no_key)?;
        let keys = [sender.as_ref(), &receiver.0];
        let secret = self.agree(ephemeral, &receiver.0, &keys)?;
        Ok((EncapsulatedSecret(sender.as_ref().to_vec()), secret))
    }

    /// Opens an encapsulation. RFC 9180 §4.1, `Decap`.
    fn decapsulate(
        self,
        encapsulated: &EncapsulatedSecret,
        receiver: &HpkePrivateKey,
    ) -> Result<Secret, Error> {
        let receiver = PrivateKey::from_private_key(self.agreement(), receiver.secret_bytes())
            .map_err(|error| Error::General(format!("invalid private key of HPKE: {error}")))?;
        let public = receiver.compute_public_key().map_err(no_key)?;
        let keys = [&encapsulated.0, public.as_ref()];
        self.agree(&receiver, &encapsulated.0, &keys)
    }
}

impl Suite {
    /// Derives the keys of messages in base mode from a shared secret. RFC 9180 §5.1.
    fn context(self, shared: &Secret, info: &[u8]) -> Context {
        let HpkeSuite { kem, sym } = self.suite();
        let ids = [kem.into(), sym.kdf_id.into(), sym.aead_id.into()].map(u16::to_be_bytes);
        let labeled = Labeled {
            hkdf: self.0.hkdf(),
            suite: [&b"HPKE"[..], ids.as_flattened()].concat(),
        };
        let psk_id = labeled.extract(&[], b"psk_id_hash", &[]);
        let info = labeled.extract(&[], b"info_hash", info);
        let secret = labeled.extract(shared, b"secret", &[]);
        let context: [&[u8]; 3] = [&[MODE_BASE], &psk_id, &info];
        let key = labeled.expand(&secret, b"key", &context, self.1.suite().key_len());
        let nonce = labeled.expand(&secret, b"base_nonce", &context, NONCE_LEN);
        let key = UnboundKey::new(self.1.algorithm(), &key);
        let mut base_nonce = [0; NONCE_LEN];
        base_nonce.copy_from_slice(&nonce);
        Context {
            key: LessSafeKey::new(key.expect("the key has the length of the algorithm")),
            base_nonce,
            sequence: 0,
        }
    }

    fn sealer(
        self,
        ephemeral: &PrivateKey,
        info: &[u8],
        receiver: &HpkePublicKey,
    ) -> Result<(EncapsulatedSecret, Context), Error> {
        let (encapsulated, secret) = self.0.encapsulate(ephemeral, receiver)?;
        Ok((encapsulated, self.context(&secret, info)))
    }
}

impl Hpke for Suite {
    fn seal(
        &self,
        info: &[u8],
        aad: &[u8],
        plaintext: &[u8],
        receiver: &HpkePublicKey,
    ) -> Result<(EncapsulatedSecret, Vec<u8>), Error> {
        let (encapsulated, mut sealer) = self.setup_sealer(info, receiver)?;
        Ok((encapsulated, sealer.seal(aad, plaintext)?))
    }

    fn setup_sealer(
        &self,
        info: &[u8],
        receiver: &HpkePublicKey,
    ) -> Result<(EncapsulatedSecret, Box<dyn HpkeSealer + 'static>), Error> {
        let ephemeral = PrivateKey::generate(self.0.agreement()).map_err(no_key)?;
        let (encapsulated, context) = self.sealer(&ephemeral, info, receiver)?;
        Ok((encapsulated, Box::new(context)))
    }

    fn open(
        &self,
        encapsulated: &EncapsulatedSecret,
        info: &[u8],
        aad: &[u8],
        ciphertext: &[u8],
        receiver: &HpkePrivateKey,
    ) -> Result<Vec<u8>, Error> {
        self.setup_opener(encapsulated, info, receiver)?
            .open(aad, ciphertext)
    }

    fn setup_opener(
        &self,
        encapsulated: &EncapsulatedSecret,
        info: &[u8],
        receiver: &HpkePrivateKey,
    ) -> Result<Box<dyn HpkeOpener + 'static>, Error> {
        let secret = self.0.decapsulate(encapsulated, receiver)?;
        Ok(Box::new(self.context(&secret, info)))
    }

    fn generate_key_pair(&self) -> Result<(HpkePublicKey, HpkePrivateKey), Error> {
        let private = PrivateKey::generate(self.0.agreement()).map_err(no_key)?;
        let public = private.compute_public_key().map_err(no_key)?;
        let private = match self.0 {
            Kem::X25519 => {
                let bytes: Curve25519SeedBin<'_> = private.as_be_bytes().map_err(no_key)?;
                bytes.as_ref().to_vec()
            }
            Kem::P256 | Kem::P384 | Kem::P521 => {
                let bytes: EcPrivateKeyBin<'_> = private.as_be_bytes().map_err(no_key)?;
                bytes.as_ref().to_vec()
            }
        };
        Ok((HpkePublicKey(public.as_ref().to_vec()), private.into()))
    }

    fn fips(&self) -> bool {
        self.0 != Kem::X25519 && self.1.is_approved() && is_fips()
    }

    fn suite(&self) -> HpkeSuite {
        let aead_id = match self.1 {
            Aead::Aes128Gcm => HpkeAead::AES_128_GCM,
            Aead::Aes256Gcm => HpkeAead::AES_256_GCM,
            Aead::ChaCha20Poly1305 => HpkeAead::CHACHA20_POLY_1305,
        };
        HpkeSuite {
            kem: self.0.id(),
            sym: HpkeSymmetricCipherSuite {
                kdf_id: self.0.kdf(),
                aead_id,
            },
        }
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.suite().fmt(f)
    }
}

/// The keys of one direction of messages. RFC 9180 §5.2.
struct Context {
    key: LessSafeKey,
    base_nonce: [u8; NONCE_LEN],
    sequence: u64,
}

impl Context {
    /// Returns the nonce of this message.
    fn nonce(&self) -> Nonce {
        let mut nonce = self.base_nonce;
        let sequence = self.sequence.to_be_bytes();
        for (byte, number) in nonce.iter_mut().rev().zip(sequence.iter().rev()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// Moves to the next message. A nonce is never repeated.
    fn advance(&mut self) -> Result<(), Error> {
        let next = self.sequence.checked_add(1);
        self.sequence = next.ok_or(Error::EncryptError)?;
        Ok(())
    }
}

impl HpkeSealer for Context {
    fn seal(&mut self, aad: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        let nonce = self.nonce();
        self.advance()?;
        let mut message = plaintext.to_vec();
        self.key
            .seal_in_place_append_tag(nonce, Aad::from(aad), &mut message)
            .map_err(|_| Error::EncryptError)?;
        Ok(message)
    }
}

impl HpkeOpener for Context {
    fn open(&mut self, aad: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>, Error> {
        let mut message = ciphertext.to_vec();
        let opened = self
            .key
            .open_in_place(self.nonce(), Aad::from(aad), &mut message);
        let len = opened.map_err(|_| Error::DecryptError)?.len();
        self.advance()?;
        message.truncate(len);
        Ok(message)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

/// `LabeledExtract` and `LabeledExpand` of RFC 9180 §4.
struct Labeled {
    hkdf: hkdf::Algorithm,
    /// The bytes that name the algorithms.
    suite: Vec<u8>,
}

impl Labeled {
    fn extract(&self, salt: &[u8], label: &[u8], secret: &[u8]) -> Secret {
        let key = hmac::Key::new(self.hkdf.hmac_algorithm(), salt);
        let mut context = hmac::Context::with_key(&key);
        for part in [VERSION, &self.suite, label, secret] {
            context.update(part);
        }
        Zeroizing::new(context.sign().as_ref().to_vec())
    }

    fn expand(&self, secret: &Secret, label: &[u8], info: &[&[u8]], len: usize) -> Secret {
        let encoded_len = u16::try_from(len).expect("at most 64 bytes").to_be_bytes();
        let mut parts = vec![&encoded_len[..], VERSION, &self.suite, label];
        parts.extend_from_slice(info);
        let prk = hkdf::Prk::new_less_safe(self.hkdf, secret);
        let mut output = Zeroizing::new(vec![0; len]);
        prk.expand(&parts, Length(len))
            .and_then(|okm| okm.fill(&mut output))
            .expect("an output is shorter than 255 hashes");
        output
    }
}

fn no_key(_: aws_lc_rs::error::Unspecified) -> Error {
    Error::General("cannot generate a key of HPKE".to_owned())
}

type Secret = Zeroizing<Vec<u8>>;

const VERSION: &[u8] = b"HPKE-v1";
/// The mode without a pre-shared key and without a key of the sender.
const MODE_BASE: u8 = 0;

#[cfg(test)]
mod tests;
