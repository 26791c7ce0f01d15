// The beginning of doc tests: an IP proxy on loopback, for a network in memory.

mod courser {
    pub use courser_http3_tokio as h3;
    pub use courser_masque_tokio as masque;
    pub use courser_quic::*;
}

#[allow(unused_imports)]
use courser::{ClientConfig, Endpoint, Identity, ServerConfig, Side, h3, masque};

include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/echo.rs"));

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[allow(dead_code)]
struct Started {
    template: String,
    root: courser_tls::rustls::pki_types::CertificateDer<'static>,
}

#[allow(dead_code)]
async fn start() -> Result<Started> {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let template = format!(
        "https://localhost:{}/.well-known/masque/ip/{{target}}/{{ipproto}}/",
        server.local_addr()?.port(),
    );
    let policy = masque::Policy::public_only().allow("192.0.2.0/24".parse()?, 0..=65_535);
    let pool = ["10.89.0.0/16".parse()?, "fd00:89::/64".parse()?];
    let proxy = masque::IpProxy::new(pool, policy, Echo::default()).open_to_all();
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
    Ok(Started { template, root })
}
