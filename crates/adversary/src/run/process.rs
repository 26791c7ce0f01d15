//! Processes under attack, and what the system counts about them.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A folder of files, removed when dropped.
pub(super) struct Site(PathBuf);

impl Site {
    /// Makes a folder with a small and a large file.
    pub(super) fn make() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("courser-attack-{}", std::process::id()));
        let site = Self(path);
        let fill = || {
            std::fs::create_dir_all(&site.0)?;
            std::fs::write(site.0.join("index.html"), [b'x'; 1000])?;
            // Sparse: nothing is read from the disk.
            std::fs::File::create(site.0.join("large"))?.set_len(LARGE)
        };
        fill().map_err(|error| format!("cannot fill {}: {error}", site.0.display()))?;
        Ok(site)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// Bytes of the file that attacks ask for.
const LARGE: u64 = 64 << 20;

impl Drop for Site {
    fn drop(&mut self) {
        // A folder in the system's temporary directory is no reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child process that ends with this value.
pub(super) struct Process(Child);

impl Process {
    /// Starts `courser serve` on this folder, and returns where it listens.
    pub(super) fn serve(courser: &Path, site: &Path) -> Result<(Self, SocketAddr), String> {
        let mut child = Command::new(courser)
            .arg("serve")
            .arg(site)
            .args(["--listen", "127.0.0.1:0", "--no-tcp", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", courser.display()))?;
        let output = child.stdout.take().expect("standard output is piped");
        let process = Self(child);
        let mut line = String::new();
        let mut output = BufReader::new(output);
        output
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let address = address(&line).ok_or_else(|| format!("`courser serve` printed `{line}`"))?;
        // Keeps the pipe empty, so that the server never waits for it.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok((process, address))
    }

    /// Starts `courser get` on a hostile server.
    pub(super) fn get(courser: &Path, server: SocketAddr) -> Result<Self, String> {
        Command::new(courser)
            .args([
                "get",
                "--insecure",
                "--http3-only",
                "--silent",
                "--output",
                "/dev/null",
            ])
            .arg(format!("https://{server}/"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(|error| format!("cannot start {}: {error}", courser.display()))
    }

    /// True while it runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
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

/// The first address in the announcement of `courser serve`.
fn address(line: &str) -> Option<SocketAddr> {
    let announcement: serde_json::Value = serde_json::from_str(line).ok()?;
    announcement["addresses"][0].as_str()?.parse().ok()
}
