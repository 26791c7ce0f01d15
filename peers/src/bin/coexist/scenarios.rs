//! The scenarios.

use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use peers::Failure;

use crate::frame::{Flow, Protocol};
use crate::network::Link;
use crate::options::Options;
use crate::report::{self, Row};
use crate::sender::{Place, Sender};
use crate::tcp::{self, ShortFlows};

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// The sender beside 1 MB transfers of kernel CUBIC that come and go.
    ComeAndGo,
    /// The sender beside one flow of kernel CUBIC that begins later.
    Share,
    /// The sender alone on a link whose rate rises from 10 to 80 Mbit/s.
    Step,
}

impl Scenario {
    pub(crate) fn link(self, options: &Options) -> Link {
        match self {
            Self::ComeAndGo | Self::Share => {
                Link::with_queue(options.megabits, options.rtt(), options.queue)
            }
            Self::Step => Link {
                megabits: NARROW,
                rtt: options.rtt(),
                queue: STEP_QUEUE,
            },
        }
    }

    /// Returns the title and the head of the table.
    pub(crate) fn heading(self, options: &Options) -> String {
        let link = self.link(options);
        let path = format!(
            "{} ms, queue of {} kB",
            link.rtt.as_millis(),
            link.queue / 1000
        );
        let rate = link.megabits;
        match self {
            Self::ComeAndGo => report::heading(
                &format!("Beside 1 MB transfers of kernel CUBIC, {rate} Mbit/s, {path}"),
                &[
                    "Mbit/s",
                    "packets lost",
                    "of",
                    "transfers",
                    "mean s",
                    "worst s",
                    "their packets lost",
                    "queue ms (p50, p95)",
                ],
            ),
            Self::Share => report::heading(
                &format!("Beside one flow of kernel CUBIC, {rate} Mbit/s, {path}"),
                &[
                    "Mbit/s",
                    "of CUBIC",
                    "share %",
                    "packets lost",
                    "of CUBIC",
                    "queue ms (p50, p95)",
                ],
            ),
            Self::Step => report::heading(
                &format!("From {NARROW} to {WIDE} Mbit/s, {path}"),
                &[
                    "Mbit/s in the first 0.5 s",
                    "in the next 3 s",
                    "packets lost in this time",
                ],
            ),
        }
    }

    /// Runs the scenario. Returns the figures in the order of the head.
    pub(crate) fn run(
        self,
        place: &Place<'_>,
        sender: &Sender,
        options: &Options,
    ) -> Result<Row, Failure> {
        match self {
            Self::ComeAndGo => come_and_go(place, sender, options.time()),
            Self::Share => share(place, sender, options.time()),
            Self::Step => step(place, sender),
        }
    }
}

fn come_and_go(place: &Place<'_>, sender: &Sender, time: Duration) -> Result<Row, Failure> {
    let (network, flows) = (place.network, &place.network.flows);
    let running = sender.start(place, time + LEAD * 2)?;
    tcp::discard(&network.receiver, SHORT.port)?;
    thread::sleep(LEAD);
    let from = Instant::now();
    let short = ShortFlows::start(&network.sender, SHORT.port, SHORT_BYTES, PAUSE);
    thread::sleep(time);
    let to = Instant::now();
    let times = short.finish()?;
    drop(running);
    let (long, others) = (flows.counters(sender.flow()), flows.counters(SHORT));
    let seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    Ok(vec![
        report::tenths(flows.megabits(sender.flow(), from, to)),
        long.dropped.to_string(),
        long.packets.to_string(),
        seconds.len().to_string(),
        report::hundredths(mean),
        report::hundredths(seconds.iter().copied().fold(0.0, f64::max)),
        others.dropped.to_string(),
        queue(place, from, to),
    ])
}

fn share(place: &Place<'_>, sender: &Sender, time: Duration) -> Result<Row, Failure> {
    let (network, flows) = (place.network, &place.network.flows);
    let running = sender.start(place, time + LEAD * 2)?;
    tcp::discard(&network.receiver, RIVAL.port)?;
    thread::sleep(LEAD);
    tcp::send_for(&network.sender, RIVAL.port, "cubic", time)?;
    // The first third is that in which both find their share.
    thread::sleep(time / 3);
    let from = Instant::now();
    thread::sleep(time * 2 / 3);
    let to = Instant::now();
    drop(running);
    let own = flows.megabits(sender.flow(), from, to);
    let rival = flows.megabits(RIVAL, from, to);
    Ok(vec![
        report::tenths(own),
        report::tenths(rival),
        format!("{:.0}", 100.0 * own / (own + rival)),
        flows.counters(sender.flow()).dropped.to_string(),
        flows.counters(RIVAL).dropped.to_string(),
        queue(place, from, to),
    ])
}

fn step(place: &Place<'_>, sender: &Sender) -> Result<Row, Failure> {
    let flows = &place.network.flows;
    let (before, soon, later) = (
        Duration::from_secs(10),
        Duration::from_millis(500),
        Duration::from_secs(3),
    );
    let running = sender.start(place, before + soon + later + LEAD)?;
    thread::sleep(before);
    let dropped = flows.counters(sender.flow()).dropped;
    place.network.set_rate(WIDE)?;
    let rise = Instant::now();
    thread::sleep(soon + later);
    let lost = flows.counters(sender.flow()).dropped - dropped;
    drop(running);
    let rate = |from, to| report::tenths(flows.megabits(sender.flow(), from, to));
    Ok(vec![
        rate(rise, rise + soon),
        rate(rise + soon, rise + soon + later),
        lost.to_string(),
    ])
}

fn queue(place: &Place<'_>, from: Instant, to: Instant) -> String {
    let wait = |quantile| place.network.flows.wait(quantile, from, to).as_millis();
    format!("{}, {}", wait(0.5), wait(0.95))
}

/// The time for which a sender has the link to itself at first.
const LEAD: Duration = Duration::from_secs(3);
/// The pause between two short transfers.
const PAUSE: Duration = Duration::from_secs(1);
const SHORT_BYTES: usize = 1_000_000;

const SHORT: Flow = Flow {
    protocol: Protocol::Tcp,
    port: 6001,
};
const RIVAL: Flow = Flow {
    protocol: Protocol::Tcp,
    port: 6002,
};

const NARROW: f64 = 10.0;
const WIDE: f64 = 80.0;
const STEP_QUEUE: u64 = 150_000;
