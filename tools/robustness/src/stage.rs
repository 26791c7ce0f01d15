//! Victims of attacks on servers, and honest clients beside them.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use courser_adversary::{Plan, Victim};

use super::helper::Helper;
use super::honest::{Clients, Load, Service, Storey};
use super::hosts::Hosts;
use super::process::{Process, Serve, Server, append_to};
use courser_measure::kernel_drops_at;

/// What one attack needs.
pub(super) struct Stage<'a> {
    courser: &'a Path,
    site: &'a Path,
    plan: &'a Plan,
    /// The hosts behind a UDP proxy.
    hosts: Option<Hosts>,
}

/// A running victim.
pub(super) enum Target {
    Server(Server),
    IpProxy(Helper, SocketAddr),
}

/// Honest clients that run.
pub(super) enum Beside {
    Requests(Load),
    Storey(Clients),
}

impl<'a> Stage<'a> {
    pub(super) fn new(courser: &'a Path, site: &'a Path, plan: &'a Plan) -> Result<Self, String> {
        let hosts = match plan.victim {
            Victim::Proxy => Some(Hosts::start()?),
            _ => None,
        };
        Ok(Self {
            courser,
            site,
            plan,
            hosts,
        })
    }

    /// Returns true if the attack is on sessions or tunnels.
    pub(super) fn is_above_requests(&self) -> bool {
        self.plan.victim != Victim::Server
    }

    /// Returns the hosts behind a UDP proxy.
    pub(super) fn hosts(&self) -> Option<&Hosts> {
        self.hosts.as_ref()
    }

    /// Starts a victim, whose errors are appended to `log`.
    pub(super) fn start(&self, log: Option<&Path>) -> Result<Target, String> {
        if self.plan.victim == Victim::IpProxy {
            let errors = log.map(append_to).transpose()?;
            let mut helper = Helper::start_with(None, &["ip-proxy".to_owned()], errors)?;
            let line = helper.line()?;
            let address = line["addresses"][0].as_str().and_then(|it| it.parse().ok());
            let address = address.ok_or_else(|| format!("the IP proxy printed `{line}`"))?;
            return Ok(Target::IpProxy(helper, address));
        }
        let mut serve = Serve::folder(self.courser, self.site);
        serve.log = log.map(Path::to_owned);
        if self.plan.needs_early_data() {
            serve.content.push("--early-data".into());
        }
        if self.plan.victim == Victim::Sessions {
            serve.content.push("--webtransport-echo".into());
        }
        if let Some(hosts) = &self.hosts {
            serve.command = "proxy";
            serve.content.clear();
            for target in [hosts.goals.echo, hosts.goals.silent] {
                serve.content.push("--allow".into());
                serve.content.push(target.to_string().into());
            }
        }
        serve.start().map(Target::Server)
    }

    /// Starts honest clients of a victim.
    pub(super) fn honest(&self, server: SocketAddr, time: Duration) -> Result<Beside, String> {
        let storey = match (self.plan.victim, &self.hosts) {
            (Victim::Sessions, _) => Storey::Sessions,
            (Victim::IpProxy, _) => Storey::Ip,
            (_, Some(hosts)) => Storey::Udp(hosts.goals.echo),
            _ => return Load::start(self.courser, server, time).map(Beside::Requests),
        };
        Ok(Beside::Storey(Clients::start(storey, server, time)))
    }
}

impl Target {
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Server(server) => server.address,
            Self::IpProxy(_, address) => *address,
        }
    }

    pub(super) fn process(&mut self) -> &mut Process {
        match self {
            Self::Server(server) => &mut server.process,
            Self::IpProxy(helper, _) => &mut helper.process,
        }
    }

    /// Returns the number of datagrams that the kernel dropped at its socket.
    pub(super) fn kernel_drops(&self) -> u64 {
        kernel_drops_at(self.address().port())
    }

    /// Ends the victim. Returns what it has forwarded and must not.
    pub(super) fn finish(self) -> Vec<String> {
        let Self::IpProxy(helper, _) = self else {
            return Vec::new();
        };
        let foreign = helper.finish().map(|counts| counts["foreign"].as_u64());
        match foreign {
            Ok(Some(0)) => Vec::new(),
            Ok(Some(count)) => vec![format!("{count} hostile packets have reached the network")],
            _ => vec!["the IP proxy has not reported its packets".to_owned()],
        }
    }
}

impl Beside {
    /// Waits for the result.
    pub(super) fn finish(self) -> Service {
        match self {
            Self::Requests(load) => load.finish(),
            Self::Storey(clients) => clients.finish(),
        }
    }
}
