//! Clients that connect, send one request, and stay connected.

use std::net::SocketAddr;

use courser::h3;
use futures_util::stream::{self, StreamExt as _};
use serde_json::json;

use super::client::{config, endpoint, fetch, label};
use super::options::Options;

/// Runs the mode. Options: `server` and `count`.
///
/// Prints a line when all clients have their response, and ends with its standard input.
pub(super) async fn run(options: &Options) -> Result<(), String> {
    let server: SocketAddr = options.get("server")?;
    let count: usize = options.get("count")?;
    let config = config()?;
    let connect = |_| async {
        let client = endpoint(&config)?;
        let connecting = client.connect(server, "localhost").map_err(label)?;
        let connection = connecting.await.map_err(label)?;
        let requests = h3::Client::new(connection.clone());
        fetch(&requests).await?;
        Ok((client, connection, requests))
    };
    let results: Vec<Result<_, String>> = stream::iter(0..count)
        .map(connect)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let held: Vec<_> = results.into_iter().collect::<Result<_, _>>()?;
    println!("{}", json!({ "held": held.len() }));
    // Endpoints respond from their own tasks meanwhile.
    let end =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    end.await
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    let open = held
        .iter()
        .filter(|(_, connection, _)| connection.close_reason().is_none());
    println!("{}", json!({ "open": open.count() }));
    Ok(())
}

/// The number of simultaneous handshakes, too few for the server to send Retry packets.
const AT_ONCE: usize = 16;
