//! The log of `sim_reconnect`: a request that appends to it, its server, and the network between the two.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::{Connection, EarlyDataOptions, Endpoint, ServerConfig, runtime};
use courser_sim::{World, identity::identity};

use super::client;

pub type Boxed = Box<dyn Error + Send + Sync>;

/// Appends one line. Returns the length of the log, or the error and whether to try again.
pub async fn append(connection: &Connection, number: u64) -> Result<u64, (bool, Boxed)> {
    let (mut send, mut receive) = connection
        .open_bi()
        .await
        .map_err(|e| (e.is_retryable(), e.into()))?;
    let written = send.write_all(&number.to_be_bytes()).await;
    written.map_err(|e| (e.is_retryable(), e.into()))?;
    send.finish().map_err(|e| (false, e.into()))?;
    let mut length = [0; 8];
    let read = receive.read_exact(&mut length).await;
    read.map_err(|e| (e.is_retryable(), e.into()))?;
    Ok(u64::from_be_bytes(length))
}

/// Appends the lines of all connections to one log, and confirms each with the length of the log.
async fn server(log: Arc<Mutex<Vec<u64>>>) -> Result<(), Boxed> {
    let config = ServerConfig::with_identity(&identity())?.alpn(["log"]);
    let config = config.early_data(EarlyDataOptions::default());
    let endpoint = Endpoint::server(config, "10.0.0.2:4433".parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let log = log.clone();
        runtime::spawn(async move {
            let connection = incoming.accept()?.early().await?;
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let mut number = [0; 8];
                receive.read_exact(&mut number).await?;
                let length = {
                    let mut log = log.lock().expect("no panic");
                    if u64::from_be_bytes(number) == log.len() as u64 {
                        log.push(u64::from_be_bytes(number));
                    }
                    log.len() as u64
                };
                send.write_all(&length.to_be_bytes()).await?;
            }
            Ok::<_, Boxed>(())
        });
    }
    Ok(())
}

/// Returns the number of connections and the time in which 100 lines pass a link with an outage.
pub fn run(seed: u64, link: &str) -> Result<(u32, Duration), Boxed> {
    let mut world = World::new(seed);
    let (near, far) = (
        world.machine("client", [10, 0, 0, 1]),
        world.machine("server", [10, 0, 0, 2]),
    );
    world.join_machines(&near, &far, &link.parse()?);
    let log = Arc::new(Mutex::new(Vec::new()));
    far.spawn(server(log.clone()));
    let done = world.run_until_done(near.spawn(client(100)))??;
    assert_eq!(
        *log.lock().expect("no panic"),
        (0..100).collect::<Vec<_>>(),
        "seed {seed}"
    );
    Ok(done)
}
