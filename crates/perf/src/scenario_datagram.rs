//! Datagrams in one direction or both.

use courser_measure::Failure;

use crate::bench::{Bench, Outcome};
use crate::datagram::{self, Shape};
use crate::link::Link;
use crate::session::Session;

/// Sends datagrams, receives datagrams, or both, and counts those that were lost.
pub(crate) async fn run(bench: &mut Bench<'_>, shape: Shape) -> Result<Outcome, Failure> {
    let mut session = Session::open(bench.remote, 1).await?;
    let report = session.ask().await;
    let Some(Link::Quic(connection)) = session.lanes(bench.remote, 1).await?.pop() else {
        return Err(Failure::new("datagrams need QUIC"));
    };
    let meter = session.meter();
    let mark = bench.mark(session.io()).await;
    let mut datagrams = None;
    let work = async {
        let counts = datagram::measure(&connection, report.as_ref(), shape, &meter).await?;
        datagrams = Some(counts);
        Ok(())
    };
    let watched = bench
        .watch
        .run(work, &meter, bench.amount, || session.counters())
        .await;
    let standing = bench.standing(session.io(), session.counters());
    let watched = watched.transpose()?;
    let outcome = bench
        .outcome(mark, (standing, Some(session)), watched, &meter)
        .await;
    Ok(Outcome {
        datagrams,
        ..outcome
    })
}
