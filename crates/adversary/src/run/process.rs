//! Processes of a run, and what the system counts about them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A folder of files, and one that is not served, removed when dropped.
pub(super) struct Site {
    path: PathBuf,
    private: PathBuf,
}

impl Site {
    /// Makes a folder with a small and a large file.
    pub(super) fn make() -> Result<Self, String> {
        let name = format!("courser-attack-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let site = Self {
            path: folder.join("site"),
            private: folder.join("private"),
        };
        let fill = || {
            std::fs::create_dir_all(&site.path)?;
            std::fs::create_dir_all(&site.private)?;
            std::fs::write(site.path.join("index.html"), [b'x'; SMALL])?;
            // Sparse: nothing is read from the disk.
            File::create(site.path.join("large"))?.set_len(LARGE)
        };
        fill().map_err(|error| format!("cannot fill {}: {error}", folder.display()))?;
        Ok(site)
    }

    /// The folder that is served.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder for logs and keys.
    pub(super) fn private(&self) -> &Path {
        &self.private
    }
}

/// Bytes of the file that honest clients ask for.
pub(super) const SMALL: usize = 1000;

/// Bytes of the file that attacks ask for.
const LARGE: u64 = 64 << 20;

impl Drop for Site {
    fn drop(&mut self) {
        // A folder in the system's temporary directory is no reason to fail.
        let _ = self.path.parent().map(std::fs::remove_dir_all);
    }
}

/// A child process that ends with this value.
pub(super) struct Process(Child);

/// A command whose process the kernel kills when this one ends, on one core if there is a number.
pub(super) fn command(program: &OsStr, core: Option<usize>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]);
    if let Some(core) = core {
        command.args(["taskset", "--cpu-list", &core.to_string()]);
    }
    command.arg(program);
    command
}

/// The settings of a `courser serve`.
pub(super) struct Serve<'a> {
    /// The binary.
    pub(super) courser: &'a Path,
    /// The folder, or `--proxy URL`.
    pub(super) content: Vec<OsString>,
    /// The UDP address; port 0 lets the system choose.
    pub(super) listen: SocketAddr,
    /// The only core that it runs on.
    pub(super) core: Option<usize>,
    /// The file that standard error is appended to.
    pub(super) log: Option<PathBuf>,
}

impl<'a> Serve<'a> {
    /// Serves a folder on a port of the system's choice.
    pub(super) fn folder(courser: &'a Path, site: &Path) -> Self {
        Self {
            courser,
            content: vec![site.into()],
            listen: loopback(),
            core: None,
            log: None,
        }
    }

    /// Starts it and waits until it listens.
    pub(super) fn start(&self) -> Result<Server, String> {
        let errors = match &self.log {
            None => Stdio::null(),
            Some(path) => File::options()
                .create(true)
                .append(true)
                .open(path)
                .map_err(|error| format!("cannot open {}: {error}", path.display()))?
                .into(),
        };
        let mut child = command(self.courser.as_os_str(), self.core)
            .arg("serve")
            .args(&self.content)
            .args(["--listen", &self.listen.to_string(), "--no-tcp", "--json"])
            .args(["--admin", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.courser.display()))?;
        let output = child.stdout.take().expect("standard output is piped");
        let process = Process(child);
        let mut line = String::new();
        let mut output = BufReader::new(output);
        output
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let (address, admin) =
            addresses(&line).ok_or_else(|| format!("`courser serve` printed `{line}`"))?;
        // Keeps the pipe empty, so that the server never waits for it.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok(Server {
            process,
            address,
            admin,
        })
    }
}

/// A `courser serve` that listens.
pub(super) struct Server {
    pub(super) process: Process,
    pub(super) address: SocketAddr,
    admin: SocketAddr,
}

impl Server {
    /// The counters of its metrics page; empty when it does not answer.
    pub(super) fn metrics(&self) -> Metrics {
        Metrics::parse(&ask(self.admin, "/metrics").unwrap_or_default())
    }

    /// Datagrams for its port that the kernel dropped.
    pub(super) fn kernel_drops(&self) -> u64 {
        kernel_drops(self.address.port())
    }
}

/// Values of a metrics page by their names without labels; values of one name are added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    fn parse(text: &str) -> Self {
        let mut values = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            let name = name.split('{').next().unwrap_or(name);
            *values.entry(name.to_owned()).or_default() += value;
        }
        Self(values)
    }

    /// The value of `courser_NAME`, zero if it is missing.
    pub(super) fn get(&self, name: &str) -> f64 {
        let value = self.0.get(&format!("courser_{name}"));
        value.copied().unwrap_or(0.0)
    }
}

/// The answer of an HTTP/1.0 server, head included.
fn ask(server: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&server, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {server}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

impl Process {
    /// Runs a command.
    pub(super) fn spawn(mut command: Command) -> Result<Self, String> {
        command.spawn().map(Self).map_err(|error| {
            let program = command.get_program().display();
            format!("cannot start {program}: {error}")
        })
    }

    /// Starts `courser get` on a hostile server.
    pub(super) fn get(courser: &Path, server: SocketAddr) -> Result<Self, String> {
        let mut get = command(courser.as_os_str(), None);
        get.args(["get", "--insecure", "--http3-only", "--silent"])
            .args(["--output", "/dev/null"])
            .arg(format!("https://{server}/"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self::spawn(get)
    }

    /// The process as the system knows it.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// The number of the process.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// True while it runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        if let Some(pid) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Memory in use, in KiB; zero when it has ended.
    pub(super) fn rss(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The most memory that was ever in use, in KiB.
    pub(super) fn peak_rss(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// CPU time so far, of all threads.
    pub(super) fn cpu(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.0.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // The name in parentheses may hold spaces; user and system time are fields 14 and 15.
        let fields = text.rsplit(')').next().unwrap_or_default();
        let ticks: u64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        Duration::from_millis(ticks * TICK_MS)
    }

    fn status(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.0.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix(field))
            .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
            .unwrap_or(0)
    }
}

/// Linux counts CPU time for user space in hundredths of a second on every architecture.
const TICK_MS: u64 = 10;

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Datagrams for this local port that the kernel dropped because the receiver was too slow.
pub(super) fn kernel_drops(port: u16) -> u64 {
    let text = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
    let of_port = format!(":{port:04X}");
    text.lines()
        .skip(1)
        .filter(|line| {
            let local = line.split_whitespace().nth(1);
            local.is_some_and(|local| local.ends_with(&of_port))
        })
        .filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
        .sum()
}

/// Port 0 of the IPv4 loopback address.
pub(super) fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// The first address in the announcement of `courser serve`, and that of its admin page.
fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let announcement: serde_json::Value = serde_json::from_str(line).ok()?;
    let address = announcement["addresses"][0].as_str()?.parse().ok()?;
    let admin = announcement["admin"].as_str()?;
    let admin = admin.strip_prefix("http://")?.trim_end_matches('/');
    Some((address, admin.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_name_are_added_up() {
        let text = "# HELP courser_requests Requests.\n\
                    courser_requests_total{protocol=\"h3\",code=\"200\"} 7\n\
                    courser_requests_total{protocol=\"h3\",code=\"404\"} 2\n\
                    courser_ready 1.0\n# EOF\n";
        let metrics = Metrics::parse(text);
        assert_eq!(metrics.get("requests_total"), 9.0);
        assert_eq!(metrics.get("ready"), 1.0);
        assert_eq!(metrics.get("missing"), 0.0);
    }

    #[test]
    fn announcement_names_both_addresses() {
        let line = r#"{"addresses":["127.0.0.1:4433"],"admin":"http://127.0.0.1:9443/"}"#;
        let (address, admin) = addresses(line).expect("both are there");
        assert_eq!((address.port(), admin.port()), (4433, 9443));
        assert_eq!(addresses(r#"{"addresses":["127.0.0.1:4433"]}"#), None);
    }
}
