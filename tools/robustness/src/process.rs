//! Processes of a run, and their statistics from the system.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use courser_measure::{MetricsPage, cpu_time_of, kernel_drops_at, memory_of};

/// A folder of files to serve and a private one. Both are removed on drop.
pub(super) struct Site {
    path: PathBuf,
    private: PathBuf,
}

impl Site {
    /// Creates the folders, with a small and a large file.
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
            // The file is sparse, so that nothing is read from the disk.
            File::create(site.path.join("large"))?.set_len(LARGE)
        };
        fill().map_err(|error| format!("cannot fill {}: {error}", folder.display()))?;
        Ok(site)
    }

    /// Returns the folder to serve.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder for logs and keys, which is not served.
    pub(super) fn private(&self) -> &Path {
        &self.private
    }
}

/// The size in bytes of the file that honest clients request.
pub(super) const SMALL: usize = 1000;

/// The size in bytes of the file that attacks request.
const LARGE: u64 = 64 << 20;

impl Drop for Site {
    fn drop(&mut self) {
        // A folder left in the system's temporary directory does no harm.
        let _ = self.path.parent().map(std::fs::remove_dir_all);
    }
}

/// A child process, which is killed on drop.
pub(super) struct Process(Child);

/// Returns a command whose process the kernel kills when this one ends. It runs on one core if `core`
/// is set.
pub(super) fn command(program: &OsStr, core: Option<usize>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]);
    if let Some(core) = core {
        command.args(["taskset", "--cpu-list", &core.to_string()]);
    }
    command.arg(program);
    command
}

/// The options of a `courser serve` or `courser proxy`.
pub(super) struct Serve<'a> {
    pub(super) courser: &'a Path,
    /// `serve` or `proxy`.
    pub(super) command: &'static str,
    /// The folder, `--proxy URL`, or the rules of a forward proxy.
    pub(super) content: Vec<OsString>,
    /// The UDP address. Port 0 lets the system choose.
    pub(super) listen: SocketAddr,
    /// The core to which the server is restricted.
    pub(super) core: Option<usize>,
    /// The file to which standard error is appended.
    pub(super) log: Option<PathBuf>,
}

impl<'a> Serve<'a> {
    /// Returns options for serving a folder on a port that the system chooses.
    pub(super) fn folder(courser: &'a Path, site: &Path) -> Self {
        Self {
            courser,
            command: "serve",
            content: vec![site.into()],
            listen: loopback(),
            core: None,
            log: None,
        }
    }

    /// Starts the server and waits until it listens.
    pub(super) fn start(&self) -> Result<Server, String> {
        let errors = match &self.log {
            None => Stdio::null(),
            Some(path) => append_to(path)?,
        };
        let mut child = command(self.courser.as_os_str(), self.core)
            .arg(self.command)
            .args(&self.content)
            .arg(match self.command {
                "proxy" => "--only-http3",
                _ => "--no-tcp",
            })
            .args(["--listen", &self.listen.to_string(), "--json"])
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
        let (address, admin) = addresses(&line)
            .ok_or_else(|| format!("`courser {}` printed `{line}`", self.command))?;
        // Drains the pipe, so that the server never blocks on it.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok(Server {
            process,
            address,
            admin,
        })
    }
}

/// A running `courser serve`.
pub(super) struct Server {
    pub(super) process: Process,
    pub(super) address: SocketAddr,
    admin: SocketAddr,
}

impl Server {
    /// Returns the values of its metrics page, or none if it does not respond.
    pub(super) fn metrics(&self) -> MetricsPage {
        MetricsPage::parse(&fetch(self.admin, "/metrics").unwrap_or_default())
    }

    /// Returns the number of datagrams for its port that the kernel dropped.
    pub(super) fn kernel_drops(&self) -> u64 {
        kernel_drops_at(self.address.port())
    }
}

/// Returns the response of an HTTP/1.0 server, including its header section.
fn fetch(server: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&server, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {server}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

impl Process {
    pub(super) fn spawn(mut command: Command) -> Result<Self, String> {
        command.spawn().map(Self).map_err(|error| {
            let program = command.get_program().display();
            format!("cannot start {program}: {error}")
        })
    }

    /// Starts `courser get` with a hostile server, with early data if `is_early`. Its errors are
    /// appended to `log`.
    pub(super) fn get(
        courser: &Path,
        server: SocketAddr,
        is_early: bool,
        log: &Path,
    ) -> Result<Self, String> {
        let mut get = command(courser.as_os_str(), None);
        get.args(["get", "--insecure", "--http3-only", "--silent"])
            .args(["--output", "/dev/null"])
            .args(is_early.then_some("--early-data=first"))
            .arg(format!("https://{server}/"))
            .stdout(Stdio::null())
            .stderr(append_to(log)?);
        Self::spawn(get)
    }

    /// Starts `courser webtransport` with a hostile server. Its errors are appended to `log`.
    pub(super) fn session(courser: &Path, server: SocketAddr, log: &Path) -> Result<Self, String> {
        let mut session = command(courser.as_os_str(), None);
        session
            .args(["webtransport", "--insecure", "--uni", "--wait", "1"])
            .arg(format!(
                "https://{server}{}",
                courser_adversary::sessions::SESSION
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(append_to(log)?);
        Self::spawn(session)
    }

    /// Returns the child process.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Returns the process ID.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns true while the process runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Returns true if a signal has ended the process.
    pub(super) fn is_ended_by_signal(&mut self) -> bool {
        let status = self.0.try_wait().ok().flatten();
        status.is_some_and(|status| status.signal().is_some())
    }

    pub(super) fn terminate(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        if let Some(pid) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Returns the resident memory in KiB, or zero if the process has ended.
    pub(super) fn rss(&self) -> u64 {
        memory_of(self.id()).resident
    }

    /// Returns the peak of resident memory in KiB.
    pub(super) fn peak_rss(&self) -> u64 {
        memory_of(self.id()).peak
    }

    /// Returns the CPU time of all threads so far.
    pub(super) fn cpu(&self) -> Duration {
        cpu_time_of(self.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the IPv4 loopback address with port 0.
pub(super) fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Parses the first address and the admin address from the announcement of `courser serve`.
fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let announcement: serde_json::Value = serde_json::from_str(line).ok()?;
    let address = announcement["addresses"][0].as_str()?.parse().ok()?;
    let admin = announcement["admin"].as_str()?;
    let admin = admin.strip_prefix("http://")?.trim_end_matches('/');
    Some((address, admin.parse().ok()?))
}

/// Returns the path of a program in the same folder as this one.
pub(super) fn sibling(name: &str) -> PathBuf {
    std::env::current_exe().map_or_else(|_| name.into(), |program| program.with_file_name(name))
}

/// Opens a file to which standard error of a process is appended.
pub(super) fn append_to(path: &Path) -> Result<Stdio, String> {
    let file = File::options().create(true).append(true).open(path);
    file.map(Stdio::from)
        .map_err(|error| format!("cannot open {}: {error}", path.display()))
}

/// The text that every panic message contains.
pub(super) const PANIC: &str = "panicked at";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcement_names_both_addresses() {
        let line = r#"{"addresses":["127.0.0.1:4433"],"admin":"http://127.0.0.1:9443/"}"#;
        let (address, admin) = addresses(line).expect("the announcement has both addresses");
        assert_eq!((address.port(), admin.port()), (4433, 9443));
        assert_eq!(addresses(r#"{"addresses":["127.0.0.1:4433"]}"#), None);
    }
}
