//! Runs the measurements of the demonstration, one after the other.

use courser_measure::sockets;
use courser_perf::{Comparison, DatagramFlow, Direction, Loopback, Outcome};

use crate::error::Failure;
use crate::output::{self, Progress};
use crate::perf::{describe_agreed, micros};

/// The measurements of one demonstration.
#[derive(Debug)]
pub(crate) struct Stages<'a> {
    pub(crate) server: &'a Loopback,
    pub(crate) progress: &'a Progress,
}

impl Stages<'_> {
    /// Runs all measurements and prints their figures.
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let on_begin = |what: &str| self.progress.begin(what);
        let progress = |share| self.progress.at(share);
        let comparison = Comparison::new(self.server, &on_begin, &progress);
        self.handshakes(&comparison).await?;
        let bytes = comparison.fitting_size().await?;
        for direction in [Direction::Upload, Direction::Download] {
            let both = comparison.bulk(direction, bytes).await?;
            self.print_bulk(direction.name(), &both.quic);
            self.print_bulk("  over TCP", &both.tcp);
        }
        self.requests(&comparison).await?;
        let closes = comparison.closes().await?;
        let until_closed = format!("{} until both ends have closed", percentiles(&closes.quic));
        self.print("close", &until_closed);
        self.print("  over TCP", &percentiles(&closes.tcp));
        if let Some(moves) = comparison.moves().await?.moves {
            let text = format!("{moves} (a download from new ports, one every 100 ms)");
            self.print("moves", &text);
        }
        self.datagrams(&comparison).await?;
        // Dropped datagrams explain low figures.
        let drops = comparison.kernel_drops();
        if let Some(warning) = sockets::describe_drops(drops, &self.server.capabilities) {
            self.print("warning", &warning);
        }
        Ok(())
    }

    async fn handshakes(&self, comparison: &Comparison<'_>) -> Result<(), Failure> {
        let measured = comparison.handshakes().await?;
        let (full, resumed, early) = (&measured.full, &measured.resumed, &measured.early);
        self.print(
            "handshake",
            &format!(
                "full {}, resumed {} (medians of {} and {}; {})",
                median(&full.quic),
                median(resumed),
                full.quic.count,
                resumed.count,
                describe_agreed(&full.quic.handshake.agreed),
            ),
        );
        self.print("  over TCP", &format!("full {}", median(&full.tcp)));
        self.print(
            "early data",
            &format!(
                "{} until the response to a request in 0-RTT ({} of {} were accepted)",
                median(early),
                early.early_accepted.unwrap_or(0),
                early.count,
            ),
        );
        Ok(())
    }

    fn print_bulk(&self, label: &str, outcome: &Outcome) {
        let bytes = outcome.sent + outcome.received;
        let cpu = |side: Option<f64>| side.map_or("?".to_owned(), output::three_digits);
        let server = outcome.server.as_ref();
        let mut text = format!(
            "{:>6} at {:>11}, CPU s/GB {} client, {} server",
            output::size(bytes),
            output::rate(bytes, outcome.seconds),
            cpu(outcome.client.cpu_seconds_per_gb),
            cpu(server.and_then(|server| server.cpu_seconds_per_gb)),
        );
        let sender = if outcome.sent > 0 {
            Some(&outcome.client)
        } else {
            server
        };
        if let Some(batch) = sender.and_then(|sender| sender.datagrams_per_send_call) {
            text += &format!("; {} datagrams per send call", output::three_digits(batch));
        }
        self.print(label, &text);
    }

    async fn requests(&self, comparison: &Comparison<'_>) -> Result<(), Failure> {
        let (many, single) = comparison.requests().await?;
        for (label, many, single) in [
            ("requests", &many.quic, &single.quic),
            ("  over TCP", &many.tcp, &single.tcp),
        ] {
            let rate = output::to_f64(many.count) / many.seconds.max(1e-9);
            self.print(
                label,
                &format!(
                    "{} with {} in flight, {}; one at a time {}",
                    output::per_second(rate),
                    Comparison::IN_FLIGHT,
                    percentiles(many),
                    percentiles(single),
                ),
            );
        }
        Ok(())
    }

    async fn datagrams(&self, comparison: &Comparison<'_>) -> Result<(), Failure> {
        let datagrams = comparison.datagrams().await?.datagrams.unwrap_or_default();
        let flow = |flow: Option<DatagramFlow>| {
            flow.map_or("?".to_owned(), |flow| {
                format!(
                    "{} of {} lost, {} reordered",
                    flow.lost, flow.sent, flow.reordered
                )
            })
        };
        let (up, down) = (flow(datagrams.upload), flow(datagrams.download));
        let text = format!("up {up}; down {down} (200 Mbit/s each way)");
        self.print("datagrams", &text);
        Ok(())
    }

    /// Prints a line above the progress bar, with `label` in a column of 12 characters.
    pub(crate) fn print(&self, label: &str, text: &str) {
        self.progress.line(format!("{label:<12}{text}"));
    }
}

fn median(outcome: &Outcome) -> String {
    outcome
        .latency
        .map_or("?".to_owned(), |latency| micros(latency.p50_us))
}

fn percentiles(outcome: &Outcome) -> String {
    match outcome.latency {
        Some(latency) => format!(
            "p50 {} p99 {}",
            micros(latency.p50_us),
            micros(latency.p99_us)
        ),
        None => "?".to_owned(),
    }
}
