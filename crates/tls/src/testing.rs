//! Handshakes between two ends in memory, and certificates for them.

use std::sync::{Arc, Mutex};

use courser_crypto::{
    ClientTls, EncryptionLevel, KeyChange, KeyPair, ServerTls, TlsError, TlsSession,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair as CertKey};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{KeyLog, RootCertStore};

use crate::{
    ClientOptions, Identity, ServerOptions, TlsClient, TlsServer, Trust, client_config,
    server_config,
};

pub(crate) mod messages;

pub(crate) const SERVER_NAME: &str = "courser.example";
pub(crate) const CLIENT_PARAMETERS: &[u8] = b"parameters of the client";
pub(crate) const SERVER_PARAMETERS: &[u8] = b"parameters of the server";

/// A certificate authority that issues identities for tests.
pub(crate) struct Authority {
    issuer: Issuer<'static, CertKey>,
    certificate: CertificateDer<'static>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = CertKey::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    /// Issues the certificate of an authority below this one.
    pub(crate) fn authority(&self, name: &str) -> Self {
        let key = CertKey::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }

    pub(crate) fn identity(&self, name: &str) -> Identity {
        self.sign(CertificateParams::new([name.to_owned()]).unwrap())
    }

    /// Issues a certificate with several names.
    pub(crate) fn identity_of(&self, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        self.sign(CertificateParams::new(names).unwrap())
    }

    pub(crate) fn expired_identity(&self, name: &str) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(1999, 1, 1);
        params.not_after = rcgen::date_time_ymd(2000, 1, 1);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Identity {
        let key = CertKey::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }
}

/// Returns matching options of a client and a server, for a test to change.
pub(crate) fn options() -> (ClientOptions, ServerOptions) {
    options_of(&Authority::new("root"))
}

pub(crate) fn options_of(authority: &Authority) -> (ClientOptions, ServerOptions) {
    let alpn = vec![b"test".to_vec()];
    let client = ClientOptions::new(Trust::Roots(authority.roots()), alpn.clone());
    (
        client,
        ServerOptions::new(authority.identity(SERVER_NAME), alpn),
    )
}

pub(crate) fn tls(options: (ClientOptions, ServerOptions)) -> (TlsClient, TlsServer) {
    let client = TlsClient::new(client_config(options.0).unwrap()).unwrap();
    (
        client,
        TlsServer::new(server_config(options.1).unwrap()).unwrap(),
    )
}

/// Bytes in transit, in chunks with their level.
pub(crate) type Flight = Vec<(EncryptionLevel, Vec<u8>)>;

/// One end of a handshake and the keys it derived.
pub(crate) struct End {
    pub(crate) session: Box<dyn TlsSession>,
    pub(crate) handshake: Option<KeyPair>,
    pub(crate) one_rtt: Option<KeyPair>,
    level: EncryptionLevel,
}

impl End {
    pub(crate) fn new(session: Box<dyn TlsSession>) -> Self {
        let level = EncryptionLevel::Initial;
        Self {
            session,
            handshake: None,
            one_rtt: None,
            level,
        }
    }

    /// Returns everything that the session has to send now.
    pub(crate) fn flight(&mut self) -> Flight {
        let mut flight = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let change = self.session.write(&mut bytes);
            let is_done = bytes.is_empty() && change.is_none();
            if !bytes.is_empty() {
                flight.push((self.level, bytes));
            }
            match change {
                Some(KeyChange::Handshake(secrets)) => {
                    self.handshake = Some(secrets.key_pair());
                    self.level = EncryptionLevel::Handshake;
                }
                Some(KeyChange::OneRtt(secrets)) => {
                    self.one_rtt = Some(secrets.key_pair());
                    self.level = EncryptionLevel::OneRtt;
                }
                None if is_done => return flight,
                None => {}
            }
        }
    }

    pub(crate) fn read(&mut self, flight: &Flight) -> Result<(), TlsError> {
        flight
            .iter()
            .try_for_each(|(level, bytes)| self.session.read(*level, bytes))
    }
}

/// Starts two ends that have not exchanged any bytes.
pub(crate) fn start(client: &TlsClient, server: &TlsServer) -> (End, End) {
    let client = client
        .start(SERVER_NAME, CLIENT_PARAMETERS.to_vec())
        .unwrap();
    let server = server.start(SERVER_PARAMETERS.to_vec()).unwrap();
    (End::new(client), End::new(server))
}

/// Passes bytes between the ends until neither has any to send.
pub(crate) fn drive(client: &mut End, server: &mut End) -> Result<(), TlsError> {
    loop {
        let there = client.flight();
        server.read(&there)?;
        let back = server.flight();
        client.read(&back)?;
        if there.is_empty() && back.is_empty() {
            return Ok(());
        }
    }
}

/// Performs a whole handshake, which must succeed.
pub(crate) fn connect(client: &TlsClient, server: &TlsServer) -> (End, End) {
    let (mut client, mut server) = start(client, server);
    drive(&mut client, &mut server).unwrap();
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    (client, server)
}

/// Performs a whole handshake, which must fail, and returns its error.
pub(crate) fn refused(options: (ClientOptions, ServerOptions)) -> TlsError {
    let (client, server) = tls(options);
    let (mut client, mut server) = start(&client, &server);
    drive(&mut client, &mut server).unwrap_err()
}

/// A user's key log that records labels and refuses the exporter secret.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl Lines {
    pub(crate) fn labels(&self) -> Vec<String> {
        let mut labels = self.0.lock().unwrap().clone();
        labels.sort();
        labels
    }
}

impl KeyLog for Lines {
    fn log(&self, label: &str, _client_random: &[u8], _secret: &[u8]) {
        self.0.lock().unwrap().push(label.to_owned());
    }

    fn will_log(&self, label: &str) -> bool {
        label != "EXPORTER_SECRET"
    }
}

pub(crate) fn lines() -> Arc<Lines> {
    Arc::default()
}
