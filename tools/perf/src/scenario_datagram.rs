//! The datagram scenario: datagrams in one direction or both.

use courser_measure::Failure;

use crate::bench::{Bench, Outcome};
use crate::datagram::{self, Shape};
use crate::link::Link;
use crate::session::Session;

/// Sends datagrams, receives datagrams, or both, and counts those that were lost.
pub(crate) async fn run(bench: &mut Bench<'_>, shape: Shape) -> Result<Outcome, Failure> {
    let mut session = Session::open(bench.remote, 1).await?;
    datagram::check_version(session.server_report().await.as_ref(), "datagram")?;
    let Some(link @ (Link::Quic(_) | Link::WebTransport(_))) =
        session.lanes(bench.remote, 1).await?.pop()
    else {
        return Err(Failure::new("datagrams need QUIC"));
    };
    let meter = session.meter();
    let start = bench.start(session.io()).await;
    let mut datagrams = None;
    let work = async {
        let counts = link.measure_datagrams(shape, &meter).await?;
        datagrams = Some(counts);
        Ok(())
    };
    let finished = bench
        .run(start, work, &meter, || session.io(), Some(&session))
        .await?;
    let outcome = bench.outcome(finished, Some(session), &meter).await;
    Ok(Outcome {
        datagrams,
        ..outcome
    })
}
