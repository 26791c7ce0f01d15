//! A client that survives outages: it connects again with growing delays, resumes its session, and continues where
//! the server has confirmed. `cargo run -p courser-sim --example sim_reconnect`.
//!
//! The client appends numbered lines to a log. A line that arrives twice is not appended twice, so it may be sent
//! again after a lost connection, and in early data. `main` runs it through a minute without any packet.

use std::time::Duration;

use courser::{ClientConfig, Endpoint, runtime};
use courser_sim::identity::identity;

#[path = "sim_reconnect/log.rs"]
mod log;
pub use log::run;
use log::{Boxed, append};

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
