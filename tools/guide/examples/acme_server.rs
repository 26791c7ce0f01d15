//! A server with certificates of Let's Encrypt: a program of the guide. It needs a DNS name, and port 443.

// ANCHOR: all
use axum::{Router, routing::get};
use courser::server::{Acme, Certificates, shutdown_signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("usage: acme_server NAME")?;
    // Account and certificate are kept in this folder.
    let acme = Acme::new([&name], "acme").contact(format!("admin@{name}"));
    let app = Router::new().route("/", get(|| async { "hello\n" }));
    courser::serve("[::]:443", Certificates::acme(acme)?)
        .drain(shutdown_signal())
        .service(app)
        .await?;
    Ok(())
}
// ANCHOR_END: all
