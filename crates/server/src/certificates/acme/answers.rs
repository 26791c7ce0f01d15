//! The answers to the challenges of pending orders.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use courser_base::Mutex;
use courser_quic::ConfigError;
use courser_tls::rustls::pki_types::PrivatePkcs8KeyDer;
use courser_tls::rustls::server::{ClientHello, ResolvesServerCert};
use courser_tls::rustls::sign::CertifiedKey;
use courser_tls::rustls::{self, crypto::CryptoProvider};
use instant_acme::{Identifier, KeyAuthorization};
use rcgen::{CertificateParams, CustomExtension, KeyPair};

/// The answers that an ACME server may ask for at this moment.
#[derive(Default, Debug)]
pub(crate) struct Answers {
    /// The certificates of TLS-ALPN-01, by the name that the ACME server requests.
    tls: Mutex<HashMap<String, Arc<CertifiedKey>>>,
    /// The contents of HTTP-01, by token.
    http: Mutex<HashMap<String, String>>,
}

/// An answer that is given until this is dropped.
#[derive(Debug)]
pub(super) struct Answer {
    answers: Arc<Answers>,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Name(String),
    Token(String),
}

impl Answers {
    /// Answers TLS-ALPN-01 for a name (RFC 8737 §3).
    pub(super) fn over_tls(
        self: &Arc<Self>,
        identifier: &Identifier,
        proof: &KeyAuthorization,
    ) -> Result<Answer, ConfigError> {
        let unusable = |error: rcgen::Error| ConfigError::Identity(error.to_string());
        let name = match identifier {
            Identifier::Ip(address) => address.to_string(),
            Identifier::Dns(name) => name.clone(),
            _ => return Err(ConfigError::Identity("an unknown kind of name".to_owned())),
        };
        let mut params = CertificateParams::new([name]).map_err(unusable)?;
        let proof = proof.digest();
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(proof.as_ref())];
        let key = KeyPair::generate().map_err(unusable)?;
        let certificate = params.self_signed(&key).map_err(unusable)?;
        let pkcs8 = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = courser_tls::crypto_provider();
        let signer = provider.key_provider.load_private_key(pkcs8.into());
        let signer = signer.map_err(|error| ConfigError::Identity(error.to_string()))?;
        let name = requested_name(identifier);
        // Its critical extension is unknown to verifiers, also to the one that compares certificate and key.
        let certified = CertifiedKey::new(vec![certificate.der().clone()], signer);
        self.tls.lock().insert(name.clone(), Arc::new(certified));
        Ok(self.answer(Key::Name(name)))
    }

    /// Answers HTTP-01 for a token (RFC 8555 §8.3).
    pub(super) fn over_http(self: &Arc<Self>, token: &str, proof: &KeyAuthorization) -> Answer {
        let proof = proof.as_str().to_owned();
        self.http.lock().insert(token.to_owned(), proof);
        self.answer(Key::Token(token.to_owned()))
    }

    fn answer(self: &Arc<Self>, key: Key) -> Answer {
        Answer {
            answers: self.clone(),
            key,
        }
    }

    /// Returns the content for a token of HTTP-01.
    pub(crate) fn content(&self, token: &str) -> Option<String> {
        self.http.lock().get(token).cloned()
    }

    /// Returns the configuration for connections that only validate a name.
    pub(crate) fn tls_config(
        self: &Arc<Self>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<rustls::ServerConfig>, rustls::Error> {
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Answers {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        self.tls.lock().get(&name).cloned()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        match &self.key {
            Key::Name(name) => drop(self.answers.tls.lock().remove(name)),
            Key::Token(token) => drop(self.answers.http.lock().remove(token)),
        }
    }
}

/// Returns the name that an ACME server requests (SNI): addresses have their name in the reverse zone (RFC 8738
/// §6).
fn requested_name(identifier: &Identifier) -> String {
    match identifier {
        Identifier::Ip(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        Identifier::Ip(IpAddr::V6(address)) => {
            let nibbles = address.octets().into_iter().rev();
            let mut name = String::new();
            for byte in nibbles {
                name.push_str(&format!("{:x}.{:x}.", byte & 15, byte >> 4));
            }
            name + "ip6.arpa"
        }
        Identifier::Dns(name) => name.to_ascii_lowercase(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 8738 §6 and RFC 3596 §2.5.
    #[test]
    fn addresses_are_requested_by_their_name_in_the_reverse_zone() {
        let requested = |text: &str| {
            let address = text.parse().expect("an address");
            requested_name(&Identifier::Ip(address))
        };
        assert_eq!(requested("192.0.2.1"), "1.2.0.192.in-addr.arpa");
        assert_eq!(
            requested("4321:0:1:2:3:4:567:89ab"),
            "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa"
        );
        let name = Identifier::Dns("Example.ORG".to_owned());
        assert_eq!(requested_name(&name), "example.org");
    }

    #[test]
    fn answers_end_with_their_orders() {
        let answers = Arc::new(Answers::default());
        answers.http.lock().insert("t".to_owned(), "p".to_owned());
        let answer = answers.answer(Key::Token("t".to_owned()));
        assert_eq!(answers.content("t").as_deref(), Some("p"));
        drop(answer);
        assert_eq!(answers.content("t"), None);
    }
}
