//! The command line of `courser sim proxy`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use courser_sim::link::{DuplexSpec, LinkSpec, NatSpec};
use courser_units::{parse_duration, parse_positive};

use crate::values::parse_listen;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = GRAMMAR)]
pub(crate) struct ProxyArguments {
    /// Listen for clients on this address; port 0 lets the system choose
    #[arg(long, short, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) listen: SocketAddr,

    /// Forward to this server
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) to: String,

    /// Link in both directions, or 'TO-SERVER;TO-CLIENT'
    ///
    /// The grammar is at the end of this text.
    #[arg(long, value_name = "LINK", default_value = "none", value_parser = parse_duplex)]
    pub(crate) link: DuplexSpec,

    /// Link towards the clients [default: as --link]
    #[arg(long, value_name = "LINK", value_parser = parse_link)]
    pub(crate) link_back: Option<LinkSpec>,

    /// Seed of the random number generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Stop after this time [default: run until Ctrl-C]
    #[arg(long, short = 't', value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) time: Option<Duration>,

    /// Change the clients' ports towards the server at this interval, like a NAT
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) rebind_every: Option<Duration>,

    /// Maximum number of clients; datagrams of further clients are ignored
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_clients)]
    pub(crate) max_clients: usize,

    /// Forget clients that have been idle for this long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_duration)]
    pub(crate) idle: Duration,

    /// Check for amplification until this many bytes of a client have been forwarded
    #[arg(long, value_name = "BYTES", default_value = "2400", value_parser = parse_positive)]
    pub(crate) amplification_bytes: u64,

    /// Maximum number of bytes on the link in each direction
    ///
    /// Datagrams beyond it are dropped and counted.
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = parse_positive)]
    pub(crate) hold: u64,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Run on this core only
    #[arg(long, value_name = "CORE")]
    pub(crate) core: Option<usize>,
}

impl ProxyArguments {
    /// Returns both directions and the NAT.
    pub(crate) fn spec(&self) -> DuplexSpec {
        let mut spec = self.link.clone();
        if let Some(back) = &self.link_back {
            spec.back = back.clone();
        }
        if let Some(every) = self.rebind_every {
            let address = spec.nat.is_some_and(|nat| nat.address);
            spec.nat = Some(NatSpec {
                address,
                ..NatSpec::every(every)
            });
        }
        spec
    }
}

fn parse_duplex(text: &str) -> Result<DuplexSpec, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn parse_link(text: &str) -> Result<LinkSpec, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn parse_clients(text: &str) -> Result<usize, String> {
    let count = parse_positive(text)?;
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= MAX_CLIENTS)
        .ok_or_else(|| format!("{count} is not between 1 and {MAX_CLIENTS}"))
}

/// The largest number of clients, because each has a socket, and all are polled.
const MAX_CLIENTS: usize = 900;

/// The text after the flags, in `-h` and, with the grammar of links, in `--help`.
macro_rules! examples {
    () => {
        "\
Examples:
  courser sim proxy -l 127.0.0.1:4434 --to 127.0.0.1:4433 --link 20mbit,40ms,1%,queue=64k
      20 Mbit/s, 40 ms and 1 % loss each way, with a queue of 64 kB
  courser sim proxy -l [::1]:4434 --to [::1]:4433 --link '50mbit,10ms;5mbit,10ms' --json
      An asymmetric link: 50 Mbit/s to the server, 5 Mbit/s to the client
  courser sim proxy -l 127.0.0.1:0 --to localhost:4433 --link 15ms,30%:3 --rebind-every 5
      Heavy loss, and a NAT that changes ports every 5 seconds"
    };
}

const EXAMPLES: &str = concat!(examples!(), "\n\nThe grammar of LINK is in --help.");
const GRAMMAR: &str = concat!(
    "\
A LINK is a list of effects, separated by commas. All are optional:
  20mbit  40ms  1%                 rate, one-way delay, random loss
  rtt=80ms  jitter=5ms             half of it as delay each way; random extra delay
  queue=64k | 25p | 100ms | 1bdp   size of the queue in front of the rate limit
  codel | codel-ecn | l4s          queue management that drops or marks early
  loss=30%:3  gilbert=1%:20%       at most 3 losses in a row; bursty loss
  drop=1,3,7-9  first=3  mask=0x5  every=100
                                   lose these datagrams
  reorder=5%:25ms  duplicate=1%  corrupt=1%  truncate=1%  extend=1%
  policer=10mbit:64k  ecn=bleach  ecn=ce:5%@1s
  mtu=1280 | 1280/icmp             drop larger packets; or report them to the sender with
                                   ICMP (needs CAP_NET_RAW)
  blackhole=5s:2s[:30s]            drop everything: start, duration, period
  rebind=[addr:]5s                 change the client's port or address towards the server
  rate@10s=5mbit                   change at a time; also delay, jitter, loss, mtu, policer
Use '|' to chain links and ';' to separate the two directions.

",
    examples!()
);
