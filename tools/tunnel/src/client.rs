//! Keeps a tunnel.

use std::net::SocketAddr;
use std::time::Duration;

use courser::masque::{Ended, IpTunnel, Prefix, Tun};
use courser_measure::printable;
use courser_tun::network::Network;
use tokio::time::{Instant, sleep, timeout};

use crate::config::Config;
use crate::event::Event;
use crate::failure::Failure;
use crate::link::{self, Link};
use crate::machine;
use crate::plan::{Plan, Surroundings, Tunnel};
use crate::system::{self, System, unusable};

/// Keeps a tunnel to a proxy, and the network of the system with it, until the future is dropped or the tunnel cannot be
/// kept: the proxy refuses the client, or the system the network. A connection that is lost is made again, with growing
/// pauses; meanwhile the device remains, and packets into it are dropped.
///
/// # Errors
/// Returns the first failure before the tunnel is up, and later those that another attempt would not mend.
///
/// # Cancel safety
/// Dropping the future takes back the device, addresses, routes, rules and name servers.
pub async fn run(config: &Config, report: &mut dyn FnMut(Event)) -> Result<(), Failure> {
    let mut addresses = link::resolve(config).await?;
    let tun = Tun::open(config.name.as_deref()).map_err(unusable)?;
    let mut system = System::new(&tun)?;
    let mut link = Link::open(config, &addresses, &[]).await?;
    let mut wait = FIRST_WAIT;
    let mut plan = None;
    loop {
        let began = Instant::now();
        report(Event::Connected {
            proxy: link.proxy,
            device: tun.name().to_owned(),
        });
        let reason = carry(config, &tun, &mut system, &link, &mut plan, report).await?;
        if began.elapsed() > STABLE {
            wait = FIRST_WAIT;
        }
        // The address that has worked comes first.
        addresses.retain(|it| *it != link.proxy);
        addresses.insert(0, link.proxy);
        drop(link);
        let mut reason = reason.to_string();
        link = loop {
            // It may contain text of the proxy.
            let shown = printable(&reason);
            report(Event::Lost {
                reason: shown,
                wait,
            });
            let next = reconnect(config, &mut addresses, &mut system, plan.as_mut(), wait);
            let outcome = tokio::select! {
                outcome = next => outcome,
                gone = drain(&tun) => return Err(gone),
            };
            wait = (wait * 2).min(LONGEST_WAIT);
            match outcome {
                Ok(link) => break link,
                Err(failure) if failure.is_final() => return Err(failure),
                Err(failure) => reason = failure.to_string(),
            }
        };
    }
}

/// Connects to the proxy, and returns what [`run`] would do for it. Nothing is changed on the system. What this process
/// lacks to do it is among the warnings.
///
/// # Errors
/// Returns an error if the proxy is not reached or refuses the tunnel.
///
/// # Cancel safety
/// Dropping the future closes the connection.
pub async fn check(config: &Config) -> Result<Plan, Failure> {
    let addresses = link::resolve(config).await?;
    let link = Link::open(config, &addresses, &[]).await?;
    let name = config.name.as_deref().unwrap_or("tun0");
    let network = Network::open().map(|mut network| system::surroundings(&mut network, 0));
    let mut plan = plan(config, name, &link, &network.unwrap_or_default());
    plan.warnings.extend(machine::obstacles());
    link.tunnel.close();
    Ok(plan)
}

fn plan(config: &Config, device: &str, link: &Link, surroundings: &Surroundings) -> Plan {
    let tunnel = &link.tunnel;
    let known = Tunnel {
        device,
        proxy: link.proxy.ip().to_canonical(),
        assigned: &tunnel.assigned().get(),
        offered: &tunnel.routes().get(),
        max_packet_size: tunnel.max_packet_size(),
        has_ipv6: machine::has_ipv6(),
        surroundings,
    };
    Plan::new(&known, &config.wishes)
}

/// Carries packets, and follows changes of the tunnel, until it ends.
async fn carry(
    config: &Config,
    tun: &Tun,
    system: &mut System<'_>,
    link: &Link,
    applied: &mut Option<Plan>,
    report: &mut dyn FnMut(Event),
) -> Result<Ended, Failure> {
    let tunnel = &link.tunnel;
    let (mut assigned, mut routes) = (tunnel.assigned(), tunnel.routes());
    let mut surroundings = system.surroundings();
    let mut was_warned = false;
    let (carried, disturbance) = (tun.carry(tunnel), disturbed(tun));
    tokio::pin!(carried, disturbance);
    loop {
        // Read before the plan is made, so that no change after it is missed.
        let known = tunnel.max_packet_size();
        let mut wanted = plan(config, tun.name(), link, &surroundings);
        match applied {
            Some(before) => wanted.hold(before),
            None if wanted.addresses.is_empty() => return Err(no_address(&wanted)),
            None => {}
        }
        let hosts: Vec<_> = wanted.addresses.iter().map(Prefix::host).collect();
        tunnel.use_addresses(&hosts);
        if applied.as_ref() != Some(&wanted) {
            system.apply(&wanted)?;
            report(Event::Applied(wanted.clone()));
        }
        let wanted = applied.insert(wanted);
        let changed = tokio::select! {
            ended = &mut carried => return ended.map_err(unusable),
            changed = rested(assigned.changed()) => changed,
            changed = rested(routes.changed()) => changed,
            changed = settled(tunnel, known) => changed,
            () = &mut disturbance => {
                // It may have begun before another branch was ready, and is not forgotten then.
                disturbance.set(disturbed(tun));
                if system.restore(wanted)? {
                    report(Event::Warning(DISTURBED.to_owned()));
                }
                let has_lost = system.lost_name_servers();
                if has_lost && !std::mem::replace(&mut was_warned, has_lost) {
                    report(Event::Warning(NAMES.to_owned()));
                }
                surroundings = system.surroundings();
                Ok(())
            }
        };
        if let Err(ended) = changed {
            return Ok(ended);
        }
    }
}

fn no_address(plan: &Plan) -> Failure {
    let reasons = plan.warnings.join("; ");
    Failure::System(format!(
        "the proxy has assigned no address that this machine can use: {reasons}"
    ))
}

/// Waits for a change, and a little longer: a proxy that changes its mind all the time does not keep the system busy.
async fn rested<T>(changed: impl Future<Output = Result<T, Ended>>) -> Result<(), Ended> {
    changed.await?;
    sleep(SETTLE).await;
    Ok(())
}

/// Waits until the network of the system has changed, and rests.
async fn disturbed(tun: &Tun) {
    if tun.changed().await.is_err() {
        // Without reports the tunnel works as long as it is left alone.
        return std::future::pending().await;
    }
    sleep(SETTLE).await;
}

/// Waits for another size, and until the search for it rests.
async fn settled(tunnel: &IpTunnel, known: usize) -> Result<(), Ended> {
    let mut size = tunnel.max_packet_size_changed(known).await?;
    // A search that never rests, on a path that drops at random, must not leave the interface as it was.
    let latest = Instant::now() + LONGEST_SETTLE;
    while Instant::now() < latest {
        match timeout(SETTLE, tunnel.max_packet_size_changed(size)).await {
            Ok(changed) => size = changed?,
            Err(_) => break,
        }
    }
    Ok(())
}

/// Opens the tunnel again after a pause: through the addresses that are known, or those that the name has then.
async fn reconnect(
    config: &Config,
    addresses: &mut Vec<SocketAddr>,
    system: &mut System<'_>,
    plan: Option<&mut Plan>,
    wait: Duration,
) -> Result<Link, Failure> {
    sleep(wait).await;
    // The name server may be behind the tunnel, so that an answer is a chance only.
    if let Ok(Ok(found)) = timeout(LOOKUP, link::resolve(config)).await {
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses.truncate(crate::system::MAX_PROXIES);
    }
    let mut previous = Vec::new();
    if let Some(plan) = plan {
        previous.clone_from(&plan.addresses);
        // No address may be searched through the tunnel.
        plan.proxies = addresses.iter().map(|it| it.ip().to_canonical()).collect();
        system.restore(plan)?;
        system.apply(plan)?;
    }
    Link::open(config, addresses, &previous).await
}

/// Drops the packets of the system while there is no tunnel, so that they do not arrive late.
async fn drain(tun: &Tun) -> Failure {
    let mut packets = Vec::new();
    loop {
        if let Err(error) = tun.recv_many(&mut packets, 64).await {
            return unusable(error.into());
        }
        packets.clear();
    }
}

/// The pause before the first attempt to connect again.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest pause between attempts (K642).
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Time after which a tunnel counts as one that works.
const STABLE: Duration = Duration::from_secs(30);

/// Time for the name of the proxy while there is no tunnel.
const LOOKUP: Duration = Duration::from_secs(3);

/// Time without another size, after which the MTU of the interface follows. Each change makes TCP measure again.
const SETTLE: Duration = Duration::from_millis(200);

const DISTURBED: &str =
    "another program has removed parts of the tunnel from the system: they were set again";

const NAMES: &str =
    "another program has replaced the name servers of the tunnel: names are resolved as it wants";

/// Time after which the interface follows a size that keeps changing.
const LONGEST_SETTLE: Duration = Duration::from_secs(2);
