//! An extension of HTTP/3 in one process: streams with a type of their own beside requests. Both ends
//! announce it with a setting. `cargo run -p courser --example http3_extension`.

use std::convert::Infallible;

use courser::{ClientConfig, Endpoint, Identity, ServerConfig, Side, h3};
use http::{Request, Response};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The setting that announces the extension, and the type of its streams.
const SETTING: u64 = 0x7a11;
const NOTES: u64 = 0x7a15;

fn config(side: Side) -> Result<h3::Config> {
    let mut config = h3::Config::new(side);
    config.extensions = h3::Extensions::new()
        .setting(SETTING, 1)?
        .announced_by(SETTING)
        .unidirectional_stream(NOTES)?;
    Ok(config)
}

/// Prints the notes of a client until its connection is over.
async fn print_notes(extension: h3::Extension) -> Result {
    while let Ok(mut stream) = extension.accept().await {
        let number = stream.receive.read_varint().await?.ok_or("no number")?;
        while let Some(text) = stream.receive.read_chunk(1000).await? {
            println!("note {number}: {}", String::from_utf8_lossy(&text));
        }
    }
    Ok(())
}

async fn serve(endpoint: Endpoint) -> Result {
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let service = tower::service_fn(|_: Request<h3::Body>| async {
        Ok::<_, Infallible>(Response::new(h3::Empty))
    });
    let serve = h3::serve(connection, service).config(config(Side::Server)?);
    serve
        .extension(|extension| drop(tokio::spawn(print_notes(extension))))
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let server_config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let server = Endpoint::server(server_config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(serve(server));

    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let client_config = ClientConfig::with_roots([identity.certificate()])?.alpn([h3::ALPN]);
    let connection = endpoint.connect_with(client_config, address, "localhost")?;
    let client = h3::Client::with_config(connection.await?, config(Side::Client)?);
    let extension = client.extension();
    // This waits for the server's settings.
    for number in 0..3 {
        let mut stream = extension.open_uni(NOTES).await?;
        stream.write_all(&[number]).await?;
        stream.write_all(b"beside the requests").await?;
        stream.finish()?;
    }
    let request = Request::get("https://localhost/").body(h3::Empty)?;
    println!("status {}", client.send(request).await?.status());
    client.close();
    endpoint.wait_idle().await;
    Ok(())
}
