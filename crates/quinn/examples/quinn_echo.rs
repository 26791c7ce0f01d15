//! A program for quinn 0.11, which courser-quinn compiles as it is: a server that echoes, and its client.

use std::error::Error;
use std::sync::Arc;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivateKeyDer;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = generated.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(generated.signing_key.serialize_der().into());

    let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key)?;
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(10));
    config.transport_config(Arc::new(transport));
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    let serving = tokio::spawn(serve(server));

    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = Endpoint::client("127.0.0.1:0".parse()?)?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connection = client.connect(address, "localhost")?.await?;
    println!("connected to {}", connection.remote_address());
    for word in ["hello", "world"] {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(word.as_bytes()).await?;
        send.finish()?;
        let echo = recv.read_to_end(100).await?;
        println!("sent {word}, received {}", String::from_utf8(echo)?);
    }
    connection.close(VarInt::from_u32(0), b"done");
    client.wait_idle().await;
    println!("the server saw: {}", serving.await?);
    Ok(())
}

/// Echoes the streams of one connection. Returns the reason of its end.
async fn serve(endpoint: Endpoint) -> String {
    let connection = match endpoint.accept().await {
        Some(incoming) => match incoming.await {
            Ok(connection) => connection,
            Err(error) => return error.to_string(),
        },
        None => return "the endpoint is closed".to_owned(),
    };
    loop {
        let (mut send, mut recv) = match connection.accept_bi().await {
            Ok(streams) => streams,
            Err(error) => return error.to_string(),
        };
        tokio::spawn(async move {
            let data = recv.read_to_end(100).await?;
            send.write_all(&data).await?;
            send.finish()?;
            Ok::<(), Box<dyn Error + Send + Sync>>(())
        });
    }
}
