//! Runs a measurement from beginning to end.

use courser_measure::Failure;

use crate::bench::{Bench, Outcome};
use crate::link::Connector;
use crate::meter::Watch;
use crate::plan::{Plan, Scenario};
use crate::remote::Remote;
use crate::scenario_rr::{self, Shape};
use crate::{
    datagram, scenario_bulk, scenario_close, scenario_datagram, scenario_handshake, scenario_mixed,
};

/// Runs one scenario against a server.
///
/// # Errors
/// Returns an error if the plan cannot be measured ([`Plan::check`]), the server cannot be reached, a
/// connection breaks, or the measurement is stopped during its warm-up.
pub async fn measure(remote: &Remote, plan: &Plan, watch: Watch<'_>) -> Result<Outcome, Failure> {
    let mut bench = Bench::open(remote, plan, watch).await?;
    let outcome = match plan.scenario {
        Scenario::Bulk {
            direction,
            connections,
            streams,
        } => scenario_bulk::run(&mut bench, direction, connections, streams).await,
        Scenario::Rr {
            connections,
            in_flight,
            request_size,
            response_size,
            uni,
        } => {
            let shape = Shape {
                connections,
                in_flight,
                request_size,
                response_size,
                uni,
            };
            scenario_rr::run(&mut bench, shape).await
        }
        Scenario::Latency {
            request_size,
            response_size,
            uni,
        } => {
            let shape = Shape {
                connections: 1,
                in_flight: 1,
                request_size,
                response_size,
                uni,
            };
            scenario_rr::run(&mut bench, shape).await
        }
        Scenario::Handshake {
            parallel,
            resume,
            early_data,
        } => scenario_handshake::run(&mut bench, parallel, resume, early_data).await,
        Scenario::Datagram {
            direction,
            size,
            rate,
        } => {
            let shape = datagram::Shape {
                direction,
                size,
                rate,
                amount: plan.amount,
            };
            scenario_datagram::run(&mut bench, shape).await
        }
        Scenario::Mixed(mixed) => scenario_mixed::run(&mut bench, mixed, plan).await,
        Scenario::Close => scenario_close::run(&mut bench).await,
    };
    bench.close().await;
    outcome
}

/// Returns the first server that answers.
///
/// # Errors
/// Returns the failure of the first server if none answers.
pub async fn reachable(mut remotes: Vec<Remote>) -> Result<Remote, Failure> {
    if remotes.len() == 1 {
        return Ok(remotes.remove(0));
    }
    let mut first_failure = None;
    for remote in remotes {
        let connector = Connector::new(&remote)?;
        match connector.connect(&remote).await {
            Ok(link) => {
                link.close();
                return Ok(remote);
            }
            Err(failure) => {
                first_failure.get_or_insert(failure);
            }
        }
    }
    Err(first_failure.unwrap_or_else(|| Failure::new("the server has no address")))
}
