//! A custom congestion controller: its window grows while packets wait for less than 5 ms in the queues of the
//! path, and shrinks while they wait for longer. `cargo run -p courser --example custom_controller`.

use std::sync::Arc;
use std::time::Duration;

use courser::congestion::{
    AckSample, Controller, ControllerFactory, LossSample, RttEstimator, Time, initial_window,
    minimum_window,
};
use courser::{ClientConfig, Endpoint, Identity, Rate, ServerConfig, TransportConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

// ANCHOR: controller
/// A window that follows the delay.
#[derive(Debug)]
struct Gentle {
    window: u64,
    mtu: u16,
    /// A packet that was sent before this time has seen an earlier window.
    changed: Time,
}

impl Gentle {
    fn set(&mut self, now: Time, window: u64) {
        self.window = window.max(minimum_window(self.mtu));
        self.changed = now;
    }
}

impl Controller for Gentle {
    fn on_sent(&mut self, _: Time, _: u64, _: u64, _: u64) {}

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        // One change for each round trip, and none while there is too little to send.
        if sample.app_limited || sample.largest_acked_sent < self.changed {
            return;
        }
        let waiting = sample.rtt.latest().saturating_sub(sample.rtt.min());
        if waiting < Duration::from_millis(5) {
            self.set(sample.now, self.window + self.window / 4);
        } else {
            self.set(sample.now, self.window - self.window / 8);
        }
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        // One reduction for each round trip (RFC 9002 §7.3.2).
        if sample.largest_lost_sent >= self.changed {
            self.set(sample.now, self.window / 2);
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn pacing_rate(&self, _: &RttEstimator) -> Option<Rate> {
        None // the pacer spreads the window over a round trip
    }

    fn in_slow_start(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "gentle"
    }
}

/// Creates a controller for each path.
#[derive(Debug)]
struct GentleFactory;

impl ControllerFactory for GentleFactory {
    fn make(&self, mtu: u16, _seed: u64) -> Box<dyn Controller> {
        let window = initial_window(mtu);
        let changed = Time::ZERO;
        Box::new(Gentle {
            window,
            mtu,
            changed,
        })
    }
}
// ANCHOR_END: controller

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["bulk"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    let receiving = tokio::spawn(async move {
        let connection = server.accept().await.ok_or("closed")?.await?;
        let bytes = connection
            .accept_uni()
            .await?
            .read_to_end(20_000_000)
            .await?;
        connection.close(0u32.into(), b"received");
        server.wait_idle().await;
        Result::Ok(bytes.len())
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let transport = TransportConfig {
        controller_factory: Some(Arc::new(GentleFactory)),
        ..TransportConfig::default()
    };
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["bulk"]);
    let config = config.transport_config(transport);
    let connection = client.connect_with(config, address, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(&vec![0; 20_000_000]).await?;
    stream.finish()?;
    assert_eq!(receiving.await??, 20_000_000);
    let path = connection.stats().path;
    println!(
        "{}: a window of {} bytes",
        path.controller, path.congestion_window
    );
    assert_eq!(path.controller, "gentle");
    Ok(())
}
