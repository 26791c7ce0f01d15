//! A client over HTTP/3: the second program of the guide.

// ANCHOR: all
use courser::{Client, client::HttpVersion, rustls::pki_types::CertificateDer};
use http_body_util::BodyExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1);
    let url = url.as_deref().unwrap_or("https://127.0.0.1:4433/");

    let certificate = CertificateDer::from(std::fs::read("certificate.der")?);
    let client = Client::builder()
        .root(certificate)
        .version(HttpVersion::Http3Only)
        .build()?;

    let response = client.get(url).await?;
    println!("{:?} {}", response.version(), response.status());
    let body = response.into_body().collect().await?.to_bytes();
    print!("{}", String::from_utf8_lossy(&body));
    client.close().await;
    Ok(())
}
// ANCHOR_END: all
