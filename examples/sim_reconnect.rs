//! A client that survives outages: it connects again with growing delays, resumes its session, and continues where
//! the server has confirmed. `cargo run -p courser-sim --example sim_reconnect`.
//!
//! The client appends numbered lines to a log. A line that arrives twice is not appended twice, so it may be sent
//! again after a lost connection, and in early data. `main` runs it through a minute without any packet.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::{ClientConfig, Connection, EarlyDataOptions, Endpoint, ServerConfig, runtime};
use courser_sim::{World, identity::identity};

type Boxed = Box<dyn Error + Send + Sync>;

/// Appends one line. Returns the length of the log, or the error and whether to try again.
async fn append(connection: &Connection, number: u64) -> Result<u64, (bool, Boxed)> {
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

/// Appends lines until the log has `lines`. Returns the number of connections and the time.
async fn client(lines: u64) -> Result<(u32, Duration), Boxed> {
    // The endpoint and the configuration live longer than a connection: tickets and tokens are in them.
    let mut endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["log"]);
    endpoint.set_default_client_config(config.early_data(true));
    let (began, mut length, mut connections, mut failures) = (runtime::now(), 0, 0, 0);
    loop {
        // With a ticket this is ready at once, and the next line leaves in the first packets.
        let connected = endpoint
            .connect("10.0.0.2:4433".parse()?, "localhost")?
            .early()
            .await;
        let lost: Boxed = match connected {
            Err(error) if !error.is_retryable() => return Err(error.into()),
            Err(error) => error.into(),
            Ok(connection) => {
                connections += 1;
                loop {
                    match append(&connection, length).await {
                        Ok(confirmed) if confirmed >= lines => {
                            return Ok((connections, runtime::now() - began));
                        }
                        Ok(confirmed) => (length, failures) = (confirmed, 0),
                        Err((true, error)) => break error,
                        Err((false, error)) => return Err(error),
                    }
                    runtime::sleep(Duration::from_millis(100)).await;
                }
            }
        };
        let delay = back_off(failures, runtime::now() - began);
        println!("{lost}: trying again in {delay:?}");
        runtime::sleep(delay).await;
        failures += 1;
    }
}

/// Returns a delay that doubles from 100 ms to 10 s, less up to half of it, so that the clients of a server that was
/// restarted do not return in the same moment. The clock is random enough, and repeatable in the simulator.
fn back_off(failures: u32, running: Duration) -> Duration {
    let most = Duration::from_millis(100 << failures.min(7)).min(Duration::from_secs(10));
    most - most / 2 * (running.subsec_micros() % 1000) / 1000
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

fn main() -> Result<(), Boxed> {
    for seconds in [2, 60] {
        let link = format!("20ms,1%,blackhole=1s:{seconds}s");
        let runs = (0..10).map(|seed| run(seed, &link));
        let slowest = runs.max_by_key(|run| run.as_ref().map_or(Duration::MAX, |run| run.1));
        let (connections, time) = slowest.ok_or("no run")??;
        println!("an outage of {seconds} s: {connections} connections, {time:?}");
    }
    Ok(())
}
