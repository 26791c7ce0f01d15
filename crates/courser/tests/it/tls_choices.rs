//! Client certificates, raw public keys, algorithms, Encrypted Client Hello, OCSP, and keys kept elsewhere.

use std::sync::Arc;
use std::time::Duration;

use courser::rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use courser::rustls::sign::{CertifiedKey, Signer, SigningKey};
use courser::rustls::{self, RootCertStore, SignatureAlgorithm, SignatureScheme};
use courser::{
    ClientAuthentication, ClientConfig, ConfigError, Connection, ConnectionError, Cryptography,
    Ech, EchRejection, Endpoint, HandshakeFailure, HandshakeFailureKind, Identity, KeyExchange,
    RawKeyVerifier, ServerConfig, TransportErrorCode, runtime,
};

use crate::common::{loopback, within};

type Ended = Result<Connection, ConnectionError>;

/// Runs a handshake. Returns the results of client and server.
async fn handshake(client: ClientConfig, server: ServerConfig) -> (Ended, Ended) {
    let server = Endpoint::server(server.alpn(["test"]), loopback()).expect("a port");
    let endpoint = Endpoint::client(loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    let connecting = endpoint.connect_with(client.alpn(["test"]), address, "localhost");
    let connecting = connecting.expect("configured");
    let accept = async { server.accept().await.expect("open").await };
    within(10, async { tokio::join!(connecting, accept) }).await
}

fn client_of(server: &Identity) -> ClientConfig {
    ClientConfig::with_roots([server.certificate()]).expect("a certificate")
}

fn roots(certificate: CertificateDer<'static>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    roots
}

fn dev() -> Identity {
    Identity::dev().expect("random numbers")
}

#[tokio::test]
async fn optional_client_certificate_is_sent_if_present() {
    let (server, ours) = (dev(), dev());
    for identity in [None, Some(&ours)] {
        let policy = ClientAuthentication::Optional(roots(ours.certificate()));
        let config = ServerConfig::with_identity(&server).expect("matching key");
        let config = config.client_authentication(policy).expect("roots");
        let client = match identity {
            Some(identity) => client_of(&server).identity(identity).expect("matching key"),
            None => client_of(&server),
        };
        let (client, accepted) = handshake(client, config).await;
        client.expect("accepted");
        let shown = accepted.expect("accepted").peer_identity();
        assert_eq!(shown, identity.map(|it| vec![it.certificate()]));
    }
}

/// RFC 8446 §4.4.2.4, RFC 9001 §4.8: certificate_required is CRYPTO_ERROR 0x174.
#[tokio::test]
async fn missing_client_certificate_is_crypto_error_0x174() {
    let (server, ours) = (dev(), dev());
    let policy = ClientAuthentication::Required(roots(ours.certificate()));
    let config = ServerConfig::with_identity(&server).expect("matching key");
    let config = config.client_authentication(policy).expect("roots");
    let (client, accepted) = handshake(client_of(&server), config).await;
    let Err(ConnectionError::TransportError(own)) = accepted else {
        panic!("the server accepts");
    };
    assert_eq!(own.code, TransportErrorCode::crypto(116));
    assert_eq!(own.code.value(), 0x174);
    // A client with TLS 1.3 has completed its handshake by then.
    let error = within(10, client.expect("not refused yet").closed()).await;
    let failure = HandshakeFailure::after_handshake(&error, "the server").expect("an alert");
    assert_eq!(
        failure.kind(),
        HandshakeFailureKind::ClientCertificateRequired
    );
    assert!(
        failure
            .to_string()
            .contains("requires a client certificate"),
        "{failure}"
    );
}

/// RFC 7250.
#[tokio::test]
async fn raw_public_keys_replace_certificates_at_both_ends() {
    let (server, ours) = (dev(), dev());
    let [key, our_key] = [&server, &ours].map(|it| it.public_key().expect("a key"));
    let clients = RawKeyVerifier::new([our_key.clone()]).expect("a key");
    let config = ServerConfig::with_raw_public_key(&server).expect("a key");
    let config = config.client_authentication(ClientAuthentication::Verifier(Arc::new(clients)));
    let client = ClientConfig::with_raw_public_keys([key.clone()]).expect("a key");
    let client = client.raw_identity(&ours).expect("a key");
    let (client, accepted) = handshake(client, config.expect("a verifier")).await;
    let presented = |connection: Ended| {
        let chain = connection
            .expect("accepted")
            .peer_identity()
            .expect("a key");
        SubjectPublicKeyInfoDer::from(chain[0].to_vec())
    };
    assert_eq!(presented(client), key);
    assert_eq!(presented(accepted), our_key);
}

#[tokio::test]
async fn server_with_another_raw_public_key_is_refused() {
    let (server, other) = (dev(), dev());
    let config = ServerConfig::with_raw_public_key(&server).expect("a key");
    let client = ClientConfig::with_raw_public_keys([other.public_key().expect("a key")]);
    let (client, accepted) = handshake(client.expect("a key"), config).await;
    assert!(client.is_err() && accepted.is_err());
}

#[tokio::test]
async fn post_quantum_key_exchange_is_the_default_and_can_be_replaced() {
    let identity = dev();
    let other = Cryptography::default().groups([KeyExchange::Secp384r1]);
    let suites = Cryptography::default().suites_by_name("TLS_CHACHA20_POLY1305_SHA256");
    let cases = [
        (
            Cryptography::default(),
            "X25519MLKEM768",
            "TLS_AES_128_GCM_SHA256",
        ),
        (other, "secp384r1", "TLS_AES_128_GCM_SHA256"),
        (
            suites.expect("known"),
            "X25519MLKEM768",
            "TLS_CHACHA20_POLY1305_SHA256",
        ),
    ];
    for (cryptography, group, suite) in cases {
        let server = ServerConfig::with_identity(&identity).expect("matching key");
        let server = server.cryptography(cryptography).expect("TLS 1.3");
        let (client, _accepted) = handshake(client_of(&identity), server).await;
        let data = client
            .expect("a handshake")
            .handshake_data()
            .expect("complete");
        assert_eq!(data.key_exchange.as_deref(), Some(group));
        assert_eq!(data.suite.map(courser::CipherSuite::name), Some(suite));
    }
}

#[tokio::test]
async fn ech_grease_connects_and_real_ech_needs_server_support() {
    let identity = dev();
    let server = || ServerConfig::with_identity(&identity).expect("matching key");
    let grease = Ech::grease().expect("random numbers");
    let client = client_of(&identity).ech(Some(grease)).expect("TLS 1.3");
    let (client, _accepted) = handshake(client, server()).await;
    let data = client
        .expect("a handshake")
        .handshake_data()
        .expect("complete");
    assert!(!data.encrypted_hello);

    let ech = Ech::from_config_list(ECH_CONFIG_LIST).expect("a list");
    let client = client_of(&identity)
        .ech(Some(ech.clone()))
        .expect("TLS 1.3");
    let (client, accepted) = handshake(client, server()).await;
    let Err(ConnectionError::TransportError(own)) = &client else {
        panic!("the server has no ECH");
    };
    assert_eq!(own.code, TransportErrorCode::crypto(121), "ech_required");
    assert_eq!(ech.rejection(), Some(EchRejection::Disabled));
    assert!(accepted.is_err());
}

/// A configuration with the public name `localhost`, whose private key does not exist (RFC 9849 §4).
const ECH_CONFIG_LIST: &[u8] = &[
    0, 60, 0xfe, 0x0d, 0, 56, // lengths and version
    1, 0, 0x20, 0, 32, // config_id, DHKEM(X25519, HKDF-SHA256), length of the key
    9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
    0, 4, 0, 1, 0, 1, // HKDF-SHA256, AES-128-GCM
    0, 9, b'l', b'o', b'c', b'a', b'l', b'h', b'o', b's', b't', 0, 0,
];

#[tokio::test]
async fn stapled_ocsp_response_reaches_the_client() {
    let identity = dev().with_ocsp(b"a response".to_vec());
    let server = ServerConfig::with_identity(&identity).expect("matching key");
    let (client, _accepted) = handshake(client_of(&identity), server).await;
    let data = client
        .expect("a handshake")
        .handshake_data()
        .expect("complete");
    assert_eq!(data.ocsp_response.as_deref(), Some(&b"a response"[..]));
}

#[test]
fn custom_tls_configuration_cannot_be_changed_later() {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let custom = || ClientConfig::with_rustls(Arc::new(tls.clone()));
    let errors = [
        custom().cryptography(Cryptography::default()).err(),
        custom().ech(None).err(),
    ];
    for error in errors {
        let Some(ConfigError::Tls(text)) = error else {
            panic!("no error");
        };
        assert!(text.contains("builder of rustls"), "{text}");
    }
}

/// A remote key, which signs slowly, and fails for one of the names.
#[derive(Clone, Debug)]
struct RemoteKey {
    key: Arc<dyn SigningKey>,
    fails: bool,
}

impl SigningKey for RemoteKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.key.choose_scheme(offered)?;
        let fails = self.fails;
        Some(Box::new(RemoteSigner { signer, fails }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[derive(Debug)]
struct RemoteSigner {
    signer: Box<dyn Signer>,
    fails: bool,
}

impl Signer for RemoteSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let round_trip = async { tokio::task::yield_now().await };
        runtime::block_on(round_trip);
        match self.fails {
            true => Err(rustls::Error::General("the key server is away".to_owned())),
            false => self.signer.sign(message),
        }
    }

    fn scheme(&self) -> SignatureScheme {
        self.signer.scheme()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signer_that_fails_ends_its_own_connection_with_an_alert() {
    let names = ["good.test", "bad.test"].map(str::to_owned);
    let generated = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key.into()).expect("a key");
    let certificate = generated.cert.der().clone();
    let chain = vec![certificate.clone()];
    let config = ServerConfig::with_async_certificates(move |name: Option<String>| {
        let fails = name.as_deref() == Some("bad.test");
        let key = key.clone();
        let key = Arc::new(RemoteKey { key, fails });
        let key = Arc::new(CertifiedKey::new(chain.clone(), key));
        async move { Some(key) }
    });
    let config = config.expect("random numbers").alpn(["test"]);
    let server = Endpoint::server(config, loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    let accepting = server.clone();
    let (failures, mut failed) = tokio::sync::mpsc::unbounded_channel();
    crate::common::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            match incoming.await {
                Ok(connection) => {
                    crate::common::spawn(async move { connection.closed().await });
                }
                Err(error) => failures.send(error.to_string()).expect("read"),
            }
        }
    });
    let endpoint = Endpoint::client(loopback()).expect("a port");
    let client = ClientConfig::with_roots([certificate])
        .expect("valid roots")
        .alpn(["test"]);
    let connect = async |name: &str| {
        let connecting = endpoint.connect_with(client.clone(), address, name);
        within(10, connecting.expect("configured")).await
    };
    let before = connect("good.test").await.expect("signed");
    let refused = connect("bad.test").await;
    let Err(ConnectionError::ConnectionClosed(close)) = refused else {
        panic!("the server cannot sign");
    };
    assert_eq!(close.code, TransportErrorCode::crypto(80), "internal_error");
    let reason = within(10, failed.recv()).await.expect("a failure");
    assert!(reason.contains("the key server is away"), "{reason}");
    connect("good.test").await.expect("signed");
    before.open_uni().await.expect("still open");
    assert!(before.rtt() < Duration::from_secs(10));
}
