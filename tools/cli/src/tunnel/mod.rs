//! `courser tunnel`: a client of an IP proxy, with a TUN device.

pub(crate) mod args;

use std::process::ExitCode;

use courser_measure::tls::Trust;
use courser_tunnel::{Config, Wishes};

use self::args::Arguments;
use crate::error::Failure;
use crate::output;
use crate::process::{runtime_for, stop_signal};

/// Runs the command until a signal or a failure.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let config = config(arguments)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // One thread for packets of the device, one for those of the connection, and both for cryptography.
    let runtime = runtime_for(cores.clamp(1, MOST_THREADS) as u16)?;
    let result = runtime.block_on(async {
        if arguments.check {
            return print_plan(&config).await;
        }
        let mut report = |event: courser_tunnel::Event| output::line(event.to_string());
        tokio::select! {
            result = courser_tunnel::run(&config, &mut report) => result,
            () = stop_signal() => Ok(()),
            () = hang_up() => Ok(()),
        }
    });
    runtime.shutdown_background();
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(failure) => Err(Failure::new(failure.to_string())),
    }
}

/// Resolves when the terminal is closed, unless that is to be ignored, as under `nohup`: name servers and rules would
/// remain.
async fn hang_up() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if !ignores_hang_up(&status)
            && let Ok(mut hang_up) = signal(SignalKind::hangup())
        {
            hang_up.recv().await;
            return;
        }
    }
    std::future::pending().await
}

/// Returns true if the process ignores SIGHUP, the first bit of a mask.
#[cfg(unix)]
fn ignores_hang_up(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}

async fn print_plan(config: &Config) -> Result<(), courser_tunnel::Failure> {
    let plan = courser_tunnel::check(config).await?;
    output::line(plan.to_string());
    Ok(())
}

/// Turns the flags into settings.
fn config(arguments: &Arguments) -> Result<Config, Failure> {
    let template = courser_tunnel::template(&arguments.proxy);
    let template = template.map_err(|error| Failure::new(error.to_string()))?;
    let mut headers = Vec::new();
    for field in &arguments.headers {
        let malformed = || Failure::new(format!("--header '{field}' is not NAME: VALUE"));
        let (name, value) = field.split_once(':').ok_or_else(malformed)?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    if let Some(token) = &arguments.auth {
        headers.push(("proxy-authorization".to_owned(), format!("Bearer {token}")));
    }
    let trust = match &arguments.cacert {
        Some(file) => Trust::File(file.clone()),
        None if arguments.insecure => Trust::AnyServer,
        None => Trust::System,
    };
    Ok(Config {
        template,
        trust,
        headers,
        name: arguments.tun.clone(),
        wishes: Wishes {
            routes: arguments.route.clone(),
            default_route: arguments.default_route,
            dns: arguments.dns.clone(),
            mtu: arguments.mtu.0,
        },
        timeout: arguments.timeout,
    })
}

/// Threads of a tunnel. More of them would wait for each other.
const MOST_THREADS: usize = 4;

#[cfg(all(test, unix))]
mod tests {
    use super::ignores_hang_up;

    #[test]
    fn ignored_hang_ups_are_recognized() {
        assert!(ignores_hang_up("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hang_up("Name:\tx\nSigIgn:\t0000000000001000\n"));
        assert!(!ignores_hang_up(""));
    }
}
