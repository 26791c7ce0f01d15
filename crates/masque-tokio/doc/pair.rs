// The beginning of doc tests: a proxy on loopback, and a target that echoes UDP packets.

mod courser {
    pub use courser_http3_tokio as h3;
    pub use courser_masque_tokio as masque;
    pub use courser_quic::*;
}

#[allow(unused_imports)]
use courser::{ClientConfig, Endpoint, Identity, ServerConfig, Side, h3, masque};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[allow(dead_code)]
struct Started {
    template: String,
    root: courser_tls::rustls::pki_types::CertificateDer<'static>,
    echo: std::net::SocketAddr,
}

async fn start() -> Result<Started> {
    let target = tokio::net::UdpSocket::bind("127.0.0.1:0").await?;
    let echo = target.local_addr()?;
    tokio::spawn(async move {
        let mut buffer = [0; 2000];
        while let Ok((len, from)) = target.recv_from(&mut buffer).await {
            let _ = target.send_to(&buffer[..len], from).await;
        }
    });
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let template = format!(
        "https://localhost:{}/.well-known/masque/udp/{{target_host}}/{{target_port}}/",
        server.local_addr()?.port(),
    );
    let policy = masque::Policy::nothing().allow("127.0.0.0/8".parse()?, 0..=65_535);
    let proxy = masque::UdpProxy::new(policy).open_to_all();
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let mut settings = h3::Config::new(Side::Server);
            masque::enable(&mut settings, Side::Server);
            let serving = h3::serve(incoming.await?, proxy.clone()).config(settings);
            tokio::spawn(serving.into_future());
        }
        Result::Ok(())
    });
    let root = identity.certificate();
    Ok(Started { template, root, echo })
}
