//! Keeps the private key of a server outside of it: a task signs for the server, as a key server would. Handshakes
//! run on threads that may block, so that other connections continue meanwhile.

use std::sync::Arc;
use std::time::Duration;

use courser::rustls::sign::{CertifiedKey, Signer, SigningKey};
use courser::rustls::{Error, SignatureAlgorithm, SignatureScheme};
use courser::{ClientConfig, Endpoint, ServerConfig, runtime};
use tokio::sync::{mpsc, oneshot};

/// A message to sign, and the channel for the signature. A failure drops the channel.
type Job = (Vec<u8>, oneshot::Sender<Vec<u8>>);

/// A private key that is kept elsewhere. It can only request signatures.
#[derive(Clone, Debug)]
struct RemoteKey(mpsc::Sender<Job>);

impl SigningKey for RemoteKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered
            .contains(&self.scheme())
            .then(|| Box::new(self.clone()) as _)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for RemoteKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let ask = async {
            let (answer, signature) = oneshot::channel();
            self.0.send((message.to_vec(), answer)).await.ok()?;
            signature.await.ok()
        };
        let failed = || Error::General("the key server has not signed".to_owned());
        runtime::block_on(ask).ok_or_else(failed)
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP256_SHA256
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (jobs, mut inbox) = mpsc::channel::<Job>(100);
    tokio::spawn(async move {
        while let Some((message, answer)) = inbox.recv().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if let Ok(signature) = rcgen::SigningKey::sign(&made.signing_key, &message) {
                let _ = answer.send(signature);
            }
        }
    });
    let chain = vec![made.cert.der().clone()];
    let key = Arc::new(CertifiedKey::new(chain, Arc::new(RemoteKey(jobs))));
    let config = ServerConfig::with_async_certificates(move |_name| {
        let key = key.clone();
        async move { Some(key) }
    })?;
    let server = Endpoint::server(config.alpn(["hello"]), "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(async move { server.accept().await?.await.ok()?.open_uni().await.ok() });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let trusted = ClientConfig::with_roots([made.cert.der().clone()])?.alpn(["hello"]);
    let connection = client.connect_with(trusted, address, "localhost")?.await?;
    println!("connected to {}", connection.remote_address());
    Ok(())
}
