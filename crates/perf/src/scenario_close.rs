//! The time of a close until both ends have closed.

use courser_measure::Failure;

use crate::bench::{Bench, Outcome, Quota};
use crate::counters::IoCounters;
use crate::link::Connector;
use crate::meter::Meter;
use crate::remote::Remote;
use crate::wire::Request;

/// Connects, makes one request, closes, and waits until the server has closed too.
pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<Outcome, Failure> {
    let meter = Meter::new();
    let mut io = Connector::new(bench.remote)?.io();
    let mark = bench.mark(io).await;
    let quota = Quota::new(bench.amount);
    let work = close_all(bench.remote, &quota, &meter, &mut io);
    let watched = bench.watch.run(work, &meter, bench.amount, || None).await;
    let standing = bench.standing(io, None);
    let watched = watched.transpose()?;
    Ok(bench.outcome(mark, (standing, None), watched, &meter).await)
}

async fn close_all(
    remote: &Remote,
    quota: &Quota,
    meter: &Meter,
    io: &mut IoCounters,
) -> Result<(), Failure> {
    let request = Request::new(1, 1);
    while quota.take() {
        // Each connection has a socket of its own, so that nothing else keeps it busy.
        let connector = Connector::new(remote)?;
        let mut link = connector.connect(remote).await?;
        link.exchange(&request, &Meter::new()).await?;
        meter.on_done(link.close_and_wait(&connector).await?);
        *io = io.plus(&connector.io());
    }
    Ok(())
}
