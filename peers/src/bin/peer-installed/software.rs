//! A server under way.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use peers::installed::{Protocol, Software};
use peers::process::{self, CpuTime};
use peers::{Failure, ServerResult, descriptors, identity};

use crate::Options;
use crate::configuration::{self, Content, Site};
use crate::origin::Origin;
use crate::probe;

/// A server that was started, with its origin if it is a proxy. Dropped before [`Running::end`], it is killed.
#[derive(Debug)]
pub(crate) struct Running {
    options: Options,
    address: SocketAddr,
    child: Child,
    /// CPU time of children before this one.
    cpu_before: CpuTime,
    /// Folder with its configuration and its output.
    own: PathBuf,
    /// The address at which nginx reports its counts.
    status: Option<SocketAddr>,
    /// The counts at the first answer.
    counts_before: Counts,
    origin: Option<Origin>,
}

/// Counts of a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    connections: u64,
    requests: u64,
}

impl Running {
    /// Writes the configuration and starts the program.
    pub(crate) fn start(options: &Options, address: SocketAddr) -> Result<Self, Failure> {
        let id = std::process::id();
        let own = options.identity.join(format!("peer-installed-{id}"));
        fs::create_dir(&own)?;
        let certificate = options.identity.join(identity::CERTIFICATE_PEM);
        let key = options.identity.join(identity::KEY_PEM);
        let origin = match (options.origin_core, options.response_size) {
            (Some(core), Some(size)) => Some(Origin::start(core, size)?),
            _ => None,
        };
        let content = match (&origin, &options.folder) {
            (Some(origin), _) => Content::Origin(origin.address()),
            (None, Some(folder)) => Content::Folder(folder),
            (None, None) => return Err("neither a folder nor an origin".into()),
        };
        let site = Site {
            content,
            certificate: &certificate,
            key: &key,
            protocol: options.protocol,
            port: address.port(),
            streams: options.streams,
            descriptors: descriptors::raise()?,
        };
        let mut command = Command::new(&options.program);
        let mut status = None;
        match options.software {
            Software::Courser => {
                courser(&mut command, &site);
            }
            Software::Nginx => {
                let reports = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
                let text = configuration::nginx(&site, &own, reports.port());
                command.arg("-p").arg(&own).args(["-e", "stderr", "-c"]);
                command.arg(write(&own, "nginx.conf", &text)?);
                status = Some(reports);
            }
            Software::H2o => {
                let openssl = write(&own, "openssl.conf", &configuration::openssl())?;
                command.env("OPENSSL_CONF", openssl).arg("-c");
                command.arg(write(&own, "h2o.conf", &configuration::h2o(&site))?);
            }
            Software::Caddy => {
                // It looks for its own files there.
                for variable in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
                    command.env(variable, &own);
                }
                let text = configuration::caddy(&site);
                command.args(["run", "--config"]);
                command.arg(write(&own, "caddy.json", &text)?);
            }
        }
        let output = File::create(own.join(LOG))?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let cpu_before = CpuTime::of_children()?;
        let child = command
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", options.program.display()))?;
        Ok(Self {
            options: options.clone(),
            address,
            child,
            cpu_before,
            own,
            status,
            counts_before: Counts::default(),
            origin,
        })
    }

    /// Returns once the server has answered a handshake.
    pub(crate) async fn wait_until_it_answers(&mut self) -> Result<(), Failure> {
        let (identity, protocol) = (self.options.identity.clone(), self.options.protocol);
        let (address, deadline) = (self.address, Instant::now() + TIMEOUT);
        let is_running = || match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("ended with {status}").into()),
        };
        let answered = probe::wait(&identity, protocol, address, deadline, is_running).await;
        answered.map_err(|failure| self.with_log(&failure))?;
        if let Some(status) = self.status {
            self.counts_before = stub_status(status)?;
        }
        Ok(())
    }

    /// Reads what the server used and counted, and ends it.
    pub(crate) fn end(mut self, version: String) -> Result<ServerResult, Failure> {
        let mut counts = match self.status {
            // The request for the counts is one of them, and comes on a connection of its own.
            Some(status) => Some(stub_status(status)?.since(self.counts_before).less_own()),
            None => None,
        };
        // Whatever a proxy counts, its origin has answered so many requests.
        if let Some(origin) = &self.origin {
            let connections = counts.unwrap_or_default().connections;
            counts = Some(Counts {
                connections,
                requests: origin.answers(),
            });
        }
        let peak_rss_kib = process::peak_rss_kib_of_tree(self.child.id());
        kill(
            Pid::from_raw(i32::try_from(self.child.id())?),
            Signal::SIGTERM,
        )?;
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None if Instant::now() >= deadline => {
                    return Err(self.with_log(&"does not end".into()));
                }
                None => thread::sleep(PAUSE),
            }
        };
        if !status.success() {
            return Err(self.with_log(&format!("ended with {status}").into()));
        }
        let counted = counts.unwrap_or_default();
        Ok(ServerResult {
            version,
            connections: counted.connections,
            answers: counted.requests,
            received: 0,
            sent: 0,
            peak_rss_kib,
            path: None,
            is_uncounted: counts.is_none(),
            cpu: Some(CpuTime::of_children()?.since(self.cpu_before)),
            datagrams: None,
            socket_drops: None,
        })
    }

    /// A failure with the name of the server and the last lines that it printed.
    fn with_log(&self, failure: &Failure) -> Failure {
        let printed = fs::read_to_string(self.own.join(LOG)).unwrap_or_default();
        let lines: Vec<&str> = printed.lines().collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        let name = self.options.software.name();
        format!("{name}: {failure}; it printed: {}", last.join(" | ")).into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both are without effect on a child that was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What is left over goes with the folder of the run.
        let _ = fs::remove_dir_all(&self.own);
    }
}

impl Counts {
    fn since(self, earlier: Self) -> Self {
        Self {
            connections: self.connections.saturating_sub(earlier.connections),
            requests: self.requests.saturating_sub(earlier.requests),
        }
    }

    fn less_own(self) -> Self {
        Self {
            connections: self.connections.saturating_sub(1),
            requests: self.requests.saturating_sub(1),
        }
    }
}

fn courser(command: &mut Command, site: &Site<'_>) {
    command.arg("serve");
    match site.content {
        Content::Folder(folder) => command.arg(folder),
        Content::Origin(origin) => command.args(["--proxy", &format!("http://{origin}")]),
    };
    command.args(["--listen", &format!("127.0.0.1:{}", site.port)]);
    command.arg("--cert").arg(site.certificate);
    command.arg("--key").arg(site.key);
    command.args(["--no-compress", "--drain-timeout", "5"]);
    command.arg(match site.protocol {
        Protocol::H3 => "--no-tcp",
        Protocol::H1 | Protocol::H2 => "--no-quic",
    });
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    fs::write(&path, text)?;
    Ok(path)
}

/// Asks nginx for its counts.
fn stub_status(address: SocketAddr) -> Result<Counts, Failure> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    parse_counts(&answer).ok_or_else(|| format!("nginx reports no counts: {answer}").into())
}

/// Reads the line of accepted and handled connections and of requests.
fn parse_counts(answer: &str) -> Option<Counts> {
    let (_, figures) = answer.split_once("server accepts handled requests")?;
    let mut figures = figures
        .split_whitespace()
        .map(|figure| figure.parse::<u64>());
    let connections = figures.next()?.ok()?;
    figures.next()?.ok()?;
    Some(Counts {
        connections,
        requests: figures.next()?.ok()?,
    })
}

/// A server starts, and ends, in less.
const TIMEOUT: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(2);

/// Name of the file with a server's output.
const LOG: &str = "log";

/// Lines of a server's output that failures show.
const LOG_LINES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_nginx_are_read() {
        let answer = "HTTP/1.1 200 OK\r\n\r\nActive connections: 1 \n\
                      server accepts handled requests\n 5 5 44 \n\
                      Reading: 0 Writing: 1 Waiting: 0 \n";
        let counts = Counts {
            connections: 5,
            requests: 44,
        };
        assert_eq!(parse_counts(answer), Some(counts));
        assert_eq!(parse_counts("HTTP/1.1 404 Not Found\r\n\r\n"), None);
    }
}
