//! The close scenario: the time until both ends have closed a connection.

use std::cell::Cell;

use courser_measure::{Failure, IoCounters};

use crate::bench::{Bench, Outcome, Quota};
use crate::link::Connector;
use crate::meter::Meter;
use crate::remote::Remote;
use crate::wire::Request;

/// Connects, makes one request, closes, and waits until the server has closed too.
pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<Outcome, Failure> {
    let meter = Meter::new();
    let io = Cell::new(Connector::new(bench.remote)?.io());
    let start = bench.start(io.get()).await;
    let quota = Quota::new(bench.work);
    let work = close_all(bench.remote, &quota, &meter, &io);
    let finished = bench.run(start, work, &meter, || io.get(), None).await?;
    Ok(bench.outcome(finished, None, &meter).await)
}

async fn close_all(
    remote: &Remote,
    quota: &Quota,
    meter: &Meter,
    io: &Cell<IoCounters>,
) -> Result<(), Failure> {
    let request = Request::new(1, 1);
    while quota.take() {
        // Each connection has its own socket, so that `wait_idle` waits for no other connection.
        let connector = Connector::new(remote)?;
        let mut link = connector.connect(remote).await?;
        link.exchange(&request, &Meter::new()).await?;
        meter.on_done(link.close_and_wait(&connector).await?);
        io.set(io.get().plus(&connector.io()));
    }
    Ok(())
}
