//! The handshake scenario: full or resumed handshakes, one after the other or several at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::EarlyData;
use courser_measure::Failure;

use crate::bench::{Bench, Outcome, Quota, run_all};
use crate::link::Connector;
use crate::meter::Meter;
use crate::remote::Remote;
use crate::wire::Request;

/// Connects and closes until the amount is reached.
pub(crate) async fn run(
    bench: &mut Bench<'_>,
    parallel: u64,
    resume: bool,
    early_data: bool,
) -> Result<Outcome, Failure> {
    let resume = resume || early_data;
    let remote = if resume {
        bench.remote.resuming()
    } else {
        bench.remote.clone()
    };
    let connector = match early_data {
        true => Connector::with_early_data(&remote)?,
        false => Connector::new(&remote)?,
    };
    let worker = Arc::new(Worker {
        remote,
        connector,
        resume,
        early_data,
    });
    if resume {
        worker.collect_tickets(parallel).await?;
    }
    let meter = Meter::new();
    let start = bench.start(worker.connector.io()).await;
    let quota = Quota::new(bench.work);
    let tasks = (0..parallel).map(|_| {
        let (worker, quota, meter) = (worker.clone(), quota.clone(), meter.clone());
        async move { worker.run(&quota, &meter).await }
    });
    let finished = bench
        .run(
            start,
            run_all(tasks),
            &meter,
            || worker.connector.io(),
            None,
        )
        .await?;
    let outcome = bench.outcome(finished, None, &meter).await;
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, worker.connector.wait_idle()).await;
    Ok(Outcome {
        resumed: Some(meter.resumed()),
        early_accepted: early_data.then(|| meter.early_accepted()),
        ..outcome
    })
}

/// The settings that the tasks of this scenario share.
#[derive(Debug)]
struct Worker {
    remote: Remote,
    connector: Connector,
    resume: bool,
    early_data: bool,
}

impl Worker {
    async fn run(&self, quota: &Quota, meter: &Meter) -> Result<(), Failure> {
        while quota.take() {
            let took = match self.early_data {
                true => self.request_early(meter).await?,
                false => self.connect(self.resume, meter).await?,
            };
            meter.on_done(took);
        }
        Ok(())
    }

    /// Opens and closes one connection. Returns the duration of its handshake. With `wants_tickets`, waits for
    /// tickets before closing.
    async fn connect(&self, wants_tickets: bool, meter: &Meter) -> Result<Duration, Failure> {
        let began = Instant::now();
        let mut link = self.connector.connect(&self.remote).await?;
        let took = began.elapsed();
        meter.on_resumed(link.agreed().resumed);
        if wants_tickets {
            // Tickets arrive before the first response or with it, unless the request was sent in early data.
            link.exchange(&Request::new(1, 1), &Meter::new()).await?;
            if self.early_data {
                link.complete().await?;
            }
        }
        link.close();
        Ok(took)
    }

    /// Sends a request on a new connection, in early data if there is a ticket. Returns the time until its
    /// response.
    async fn request_early(&self, meter: &Meter) -> Result<Duration, Failure> {
        let began = Instant::now();
        let mut link = self.connector.connect(&self.remote).await?;
        let response = link.exchange(&Request::new(1, 1), &Meter::new()).await;
        let mut took = began.elapsed();
        let early_data = link.complete().await?;
        if early_data == EarlyData::Rejected {
            // The streams were discarded, but the connection continues.
            link.exchange(&Request::new(1, 1), &Meter::new()).await?;
            took = began.elapsed();
        } else {
            response?;
        }
        meter.on_early_data(early_data == EarlyData::Accepted);
        meter.on_resumed(link.agreed().resumed);
        link.close();
        Ok(took)
    }

    async fn collect_tickets(&self, count: u64) -> Result<(), Failure> {
        for _ in 0..count.min(MAX_TICKETS) {
            self.connect(true, &Meter::new()).await?;
        }
        Ok(())
    }
}

/// The number of tickets that rustls keeps for one server.
const MAX_TICKETS: u64 = 8;

/// Time limit for closing. A server that does not answer has closed already.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
