//! The client's part of a measurement of datagrams.

use std::time::Duration;

use courser_measure::Failure;

use super::flow;
use super::message::{Accepted, Counted, DATAGRAM_REQUEST, Ended, Lines, Start, VERSION, line};
use super::outcome::{DatagramFlow, Datagrams};
use crate::carrier::{Carrier, Receiving, Sending};
use crate::meter::{Amount, Meter};
use crate::plan::Direction;
use crate::server_report::ServerReport;

/// The shape of the datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) direction: Direction,
    pub(crate) size: u16,
    pub(crate) rate: Option<u64>,
    pub(crate) amount: Amount,
}

impl Shape {
    fn start(self) -> Start {
        let (millis, number) = match self.amount {
            Amount::Time(time) => (
                Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                None,
            ),
            Amount::Number(number) => (None, Some(number)),
        };
        Start {
            version: VERSION,
            direction: self.direction,
            size: self.size,
            rate: self.rate,
            millis,
            number,
        }
    }
}

/// Measures datagrams on a connection to a server that passed [`check_version`].
pub(crate) async fn measure(
    carrier: &impl Carrier,
    shape: Shape,
    meter: &Meter,
) -> Result<Datagrams, Failure> {
    let start = shape.start();
    let (mut send, receive) = carrier.open_bi().await?;
    send.write_all(&DATAGRAM_REQUEST.to_be_bytes()).await?;
    send.write_all(&line(&start)).await?;
    let mut lines = Lines::new(&[], receive);
    check_accepted(&mut lines).await?;
    meter.on_load(shape.amount);
    let on_received = |size| meter.on_datagram_received(size);
    let upload = async {
        if !start.uploads() {
            return Ok(None);
        }
        let ended = flow::send(carrier, &start, |size| meter.on_datagram_sent(size)).await?;
        send_end(&mut send, ended).await?;
        Ok::<_, Failure>(Some(ended))
    };
    let download = async {
        if !start.downloads() {
            return Ok(None);
        }
        let counts = flow::receive(carrier, lines.next(), on_received).await?;
        Ok::<_, Failure>(Some(counts))
    };
    let (sent, received) = tokio::try_join!(upload, download)?;
    let upload = match sent {
        Some(ended) => {
            let counted: Counted = lines.next().await?;
            Some(DatagramFlow::new(ended, counted))
        }
        None => None,
    };
    let download = received.map(|(ended, counted)| DatagramFlow::new(ended, counted));
    // The server has answered already if it has closed the stream.
    let _ = send.finish();
    Ok(Datagrams { upload, download })
}

async fn send_end(send: &mut impl Sending, ended: Ended) -> Result<(), Failure> {
    Ok(send.write_all(&line(&ended)).await?)
}

/// Checks that the server measures datagrams in the same way. `report` is its answer to a request for its counters.
///
/// # Errors
/// Returns an error that names the scenario if it does not.
pub(crate) fn check_version(report: Option<&ServerReport>, scenario: &str) -> Result<(), Failure> {
    let Some(report) = report else {
        return Err(Failure::new(format!(
            "the server is not 'courser perf server', which --scenario {scenario} needs"
        )));
    };
    if report.datagrams < VERSION {
        return Err(Failure::new(format!(
            "the server is too old for --scenario {scenario}: it supports version {} of datagrams, this client \
             needs version {VERSION}",
            report.datagrams,
        )));
    }
    Ok(())
}

async fn check_accepted(lines: &mut Lines<impl Receiving>) -> Result<(), Failure> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, lines.next::<Accepted>()).await;
    let answer = answer.map_err(|_| {
        Failure::new("the server did not answer the request for datagrams in time")
    })??;
    match answer.refused {
        None => Ok(()),
        Some(reason) => {
            let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
            Err(Failure::new(format!("the server refused: {reason}")))
        }
    }
}

/// Time limit for the server's answer to the request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_and_foreign_servers_are_refused_with_the_reason() {
        let error = check_version(None, "mixed").expect_err("unknown");
        assert!(error.to_string().ends_with("which --scenario mixed needs"));
        let old = ServerReport::parse(b"{\"courser\":\"0.1.0\"}").expect("readable");
        let error = check_version(Some(&old), "datagram").expect_err("old");
        assert_eq!(
            error.to_string(),
            "the server is too old for --scenario datagram: it supports version 0 of datagrams, this client needs \
             version 1"
        );
        let newer = ServerReport {
            datagrams: 7,
            ..old
        };
        assert!(check_version(Some(&newer), "datagram").is_ok());
    }
}
