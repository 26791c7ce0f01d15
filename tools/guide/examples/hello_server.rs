//! A server for HTTP/3, HTTP/2 and HTTP/1.1: the first program of the guide.

// ANCHOR: all
use axum::{Router, extract::Path, routing::get};
use courser::{Identity, server::shutdown_signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A certificate for development. The client trusts exactly this one.
    let identity = Identity::dev()?;
    std::fs::write("certificate.der", identity.certificate())?;

    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/{name}", get(greet));

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:4433");
    let server = courser::serve(address, identity).drain(shutdown_signal());
    let server = server.bind()?;
    println!("https://{}/", server.local_addr());
    let drained = server.service(app).await?;
    println!("{drained}");
    Ok(())
}

async fn greet(Path(name): Path<String>) -> String {
    format!("hello, {name}\n")
}
// ANCHOR_END: all
