//! TLS configurations that change transport parameters and reveal keys.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use courser_crypto::{
    Answer, ClientTls, EncryptionLevel, Exporter, HandshakeData, HeaderKey, KeyChange, Keys,
    PacketKey, Secret, ServerTls, TlsError, TlsSession, TlsStartError,
};

/// Changes encoded transport parameters before TLS receives them.
pub(crate) type Change = Arc<dyn Fn(Vec<u8>) -> Vec<u8> + Send + Sync>;

/// The keys with which one end seals.
#[derive(Default)]
pub(crate) struct Taken {
    /// The 0-RTT keys, with which a server opens packets.
    pub(crate) early: Option<Keys>,
    pub(crate) handshake: Option<Keys>,
    pub(crate) header: Option<HeaderKey>,
    /// The 1-RTT keys, by generation (RFC 9001 §6.1).
    pub(crate) one_rtt: Vec<PacketKey>,
}

/// The revealed keys, which are added as the handshake derives them.
pub(crate) type Secrets = Arc<Mutex<Taken>>;

/// A TLS configuration that changes transport parameters or reveals keys.
pub(crate) struct Tampered<T: ?Sized> {
    inner: Arc<T>,
    change: Change,
    /// Changes the parameters that a client remembers.
    remembered: Change,
    keys: Secrets,
}

impl<T: ?Sized> Tampered<T> {
    /// Changes the transport parameters of the server that a client remembers.
    pub(crate) fn remembered(
        inner: Arc<T>,
        change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner,
            change: Arc::new(|parameters| parameters),
            remembered: Arc::new(change),
            keys: Secrets::default(),
        })
    }

    /// Changes the transport parameters that this end sends.
    pub(crate) fn parameters(
        inner: Arc<T>,
        change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner,
            change: Arc::new(change),
            remembered: Arc::new(|parameters| parameters),
            keys: Secrets::default(),
        })
    }

    /// Reveals the keys with which this end seals.
    pub(crate) fn keys(inner: Arc<T>) -> (Arc<Self>, Secrets) {
        let keys = Secrets::default();
        let change: Change = Arc::new(|parameters| parameters);
        (
            Arc::new(Self {
                inner,
                change: Arc::clone(&change),
                remembered: change,
                keys: Arc::clone(&keys),
            }),
            keys,
        )
    }

    fn wrap(&self, inner: Box<dyn TlsSession>) -> Box<dyn TlsSession> {
        Box::new(Session {
            remembered: inner
                .remembered_parameters()
                .map(|bytes| (self.remembered)(bytes.to_vec())),
            inner,
            keys: Arc::clone(&self.keys),
        })
    }
}

impl ClientTls for Tampered<dyn ClientTls> {
    fn start(
        &self,
        server_name: &str,
        parameters: Vec<u8>,
    ) -> Result<Box<dyn TlsSession>, TlsStartError> {
        Ok(self.wrap(self.inner.start(server_name, (self.change)(parameters))?))
    }
}

impl ServerTls for Tampered<dyn ServerTls> {
    fn start(&self, parameters: Vec<u8>) -> Result<Box<dyn TlsSession>, TlsStartError> {
        Ok(self.wrap(self.inner.start((self.change)(parameters))?))
    }

    fn start_after_hello(&self, answer: Answer) -> Result<Box<dyn TlsSession>, TlsStartError> {
        let change = Arc::clone(&self.change);
        let changed: Answer = Box::new(move |client| {
            let (version, parameters) = answer(client);
            (version, change(parameters))
        });
        Ok(self.wrap(self.inner.start_after_hello(changed)?))
    }
}

struct Session {
    inner: Box<dyn TlsSession>,
    remembered: Option<Vec<u8>>,
    keys: Secrets,
}

/// Number of generations of 1-RTT keys that are revealed.
pub(crate) const GENERATIONS: usize = 16;

impl TlsSession for Session {
    fn set_client(&mut self, client: IpAddr) {
        self.inner.set_client(client);
    }

    fn read(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        self.inner.read(level, data)
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        let change = self.inner.write(out);
        let mut taken = self.keys.lock().expect("not poisoned");
        match &change {
            Some(KeyChange::Handshake(secrets)) => taken.handshake = Some(secrets.local.keys()),
            Some(KeyChange::OneRtt(secrets)) => {
                taken.header = Some(secrets.local.header_key());
                taken.one_rtt.push(secrets.local.packet_key());
                let mut secret = secrets.local.next();
                for _ in 1..GENERATIONS {
                    taken.one_rtt.push(secret.packet_key());
                    secret = secret.next();
                }
            }
            None => {}
        }
        change
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.inner.peer_transport_parameters()
    }

    fn handshake_data(&self) -> HandshakeData {
        self.inner.handshake_data()
    }

    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        self.inner.peer_certificates()
    }

    fn exporter(&self) -> Option<Exporter> {
        self.inner.exporter()
    }

    fn take_early_secret(&mut self) -> Option<Secret> {
        let secret = self.inner.take_early_secret();
        let keys = secret.as_ref().map(Secret::keys);
        if keys.is_some() {
            self.keys.lock().expect("not poisoned").early = keys;
        }
        secret
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        self.remembered.as_deref()
    }

    fn is_early_data_accepted(&self) -> bool {
        self.inner.is_early_data_accepted()
    }

    fn can_be_dropped(&self) -> bool {
        self.inner.can_be_dropped()
    }
}

/// Splits encoded transport parameters into identifiers and contents (RFC 9000 §18).
pub(crate) fn split_parameters(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut parameters = Vec::new();
    while !bytes.is_empty() {
        let mut reader = courser_wire::Reader::new(bytes);
        let id = reader.varint().expect("an identifier");
        let content = reader
            .varint_bytes()
            .expect("a length and content")
            .to_vec();
        parameters.push((id, content));
        bytes = reader.rest();
    }
    parameters
}

pub(crate) fn join_parameters(parameters: &[(u64, Vec<u8>)]) -> Vec<u8> {
    parameters
        .iter()
        .flat_map(|(id, content)| {
            [&varint(*id)[..], &varint(content.len() as u64), content].concat()
        })
        .collect()
}

/// Encodes a varint in its shortest form.
pub(crate) fn varint(value: u64) -> Vec<u8> {
    let mut bytes = vec![0; courser_wire::varint_len(value)];
    courser_wire::Writer::new(&mut bytes).varint(value);
    bytes
}
