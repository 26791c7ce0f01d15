//! What `courser sim proxy` may be told.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use courser_sim::link::{DuplexSpec, LinkSpec, NatSpec};

use crate::args::parse_listen;
use crate::quantity::{parse_duration, parse_positive};

#[derive(Args, Debug)]
#[command(after_help = GRAMMAR)]
pub(crate) struct ProxyArguments {
    /// Address for clients; port 0 lets the system choose one.
    #[arg(long, short, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) listen: SocketAddr,

    /// The server.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) to: String,

    /// What the link does, each way; or 'THERE;BACK'.
    #[arg(long, value_name = "LINK", default_value = "none", value_parser = parse_duplex)]
    pub(crate) link: DuplexSpec,

    /// What it does on the way back to clients, if that is something else.
    #[arg(long, value_name = "LINK", value_parser = parse_link)]
    pub(crate) link_back: Option<LinkSpec>,

    /// All chance follows from this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// How long to run, in seconds; otherwise until Ctrl-C.
    #[arg(long, short = 't', value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) time: Option<Duration>,

    /// Gives clients another port towards the server every so many seconds, as a NAT may.
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) rebind_every: Option<Duration>,

    /// Clients at a time; more are ignored.
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_clients)]
    pub(crate) max_clients: usize,

    /// Forgets clients that are silent for so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_duration)]
    pub(crate) idle: Duration,

    /// Watches amplification until so many bytes of a client have reached the server.
    #[arg(long, value_name = "BYTES", default_value = "2400", value_parser = parse_positive)]
    pub(crate) amplification_bytes: u64,

    /// Bytes that the link may hold each way, whatever its delay asks for; more is dropped and
    /// counted.
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = parse_positive)]
    pub(crate) hold: u64,

    /// Writes JSON to standard output, for programs.
    #[arg(long)]
    pub(crate) json: bool,

    /// Runs on this core only.
    #[arg(long, value_name = "CORE")]
    pub(crate) core: Option<usize>,
}

impl ProxyArguments {
    /// Both directions and the NAT, from the flags together.
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
        .ok_or_else(|| format!("{count} is not within 1 and {MAX_CLIENTS}"))
}

/// Each has a socket, and all sockets are looked at whenever one has something.
const MAX_CLIENTS: usize = 900;

const GRAMMAR: &str = "\
A LINK has fields between commas, all optional:
  20mbit  40ms  1%                 rate, one-way delay, random loss
  rtt=80ms  jitter=5ms             delay of half as much each way; up to so much more
  queue=64k | 25p | 100ms | 1bdp   what may wait for the rate
  codel | codel-ecn | l4s          how the queue drops or marks before it is full
  loss=30%:3  gilbert=1%:20%       at most 3 in a row; in bursts
  drop=1,3,7-9  first=3  mask=0x5  every=100
  reorder=5%:25ms  duplicate=1%  corrupt=1%  truncate=1%  extend=1%
  policer=10mbit:64k  ecn=bleach  ecn=ce:5%@1s
  mtu=1280 | 1280/icmp             larger packets vanish; or their sender is told (needs the
                                   right to send ICMP, CAP_NET_RAW)
  blackhole=5s:2s[:30s]            from when, for how long, how often
  rebind=[addr:]5s                 another port or address towards the server
  rate@10s=5mbit                   from then on; also delay, jitter, loss, mtu, policer
'|' puts another link behind, ';' separates the ways there and back.

Examples:
  courser sim proxy --listen 127.0.0.1:4434 --to 127.0.0.1:4433 --link 20mbit,40ms,1%,queue=64k
  courser sim proxy --listen [::1]:4434 --to [::1]:4433 --link '50mbit,10ms;5mbit,10ms' --json
  courser sim proxy --listen 127.0.0.1:0 --to localhost:4433 --link 15ms,30%:3 --rebind-every 5";
