//! Name servers of a system.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name servers that a tunnel has set. The previous ones return when it is dropped.
#[derive(Debug)]
pub(crate) enum NameServers {
    /// In a file that programs read.
    File(File),
    /// Of the interface, by systemd-resolved. They end with the interface.
    Resolved,
}

/// `/etc/resolv.conf` with its previous content.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    previous: Vec<u8>,
    written: String,
}

impl NameServers {
    /// Sets the name servers of the system.
    ///
    /// # Errors
    /// Returns what failed.
    pub(crate) fn set(servers: &[IpAddr], device: &str) -> Result<Self, String> {
        let path = Path::new(RESOLV_CONF);
        if fs::canonicalize(path).is_ok_and(|real| real.starts_with(RESOLVED)) {
            resolvectl(servers, device)?;
            return Ok(Self::Resolved);
        }
        let file = File::write(path, servers, device);
        let file =
            file.map_err(|error| format!("cannot set name servers in {RESOLV_CONF}: {error}"))?;
        Ok(Self::File(file))
    }
}

impl NameServers {
    /// Returns true if another program has replaced the name servers, such as a client of DHCP.
    pub(crate) fn are_replaced(&self) -> bool {
        match self {
            Self::File(file) => file.is_replaced(),
            Self::Resolved => false,
        }
    }
}

impl File {
    fn is_replaced(&self) -> bool {
        !fs::read(&self.path).is_ok_and(|bytes| bytes == self.written.as_bytes())
    }

    fn write(path: &Path, servers: &[IpAddr], device: &str) -> io::Result<Self> {
        let previous = match fs::read(path) {
            Ok(bytes) => still_valid(bytes, device),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut written =
            format!("{FIRST_LINE} ({device}), which restores what follows at its end.\n");
        for server in servers {
            let _ = writeln!(written, "nameserver {server}");
        }
        written.push_str(SEPARATOR);
        for line in String::from_utf8_lossy(&previous).lines() {
            let _ = writeln!(written, "#{line}");
        }
        overwrite(path, written.as_bytes())?;
        Ok(Self {
            path: path.to_owned(),
            previous,
            written,
        })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Another program that has written the file since knows better.
        if !self.is_replaced() {
            let previous = still_valid(std::mem::take(&mut self.previous), "");
            let _ = overwrite(&self.path, &previous);
        }
    }
}

/// Replaces the content of a file in place, as it may be one that a container or a namespace was given. A disk that is full
/// leaves what fits over the content, instead of nothing.
fn overwrite(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}

/// Returns the content, or the one before it if it is of a tunnel that has ended without restoring it. That of another
/// tunnel that runs is valid as it is.
fn still_valid(mut bytes: Vec<u8>, own: &str) -> Vec<u8> {
    let runs = |device: &str| device != own && Path::new(INTERFACES).join(device).exists();
    while writer(&bytes).is_some_and(|device| !runs(device)) {
        let before = original(&bytes);
        if before.len() >= bytes.len() {
            break;
        }
        bytes = before;
    }
    bytes
}

/// Returns the device of the tunnel that has written the content.
fn writer(bytes: &[u8]) -> Option<&str> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let rest = str::from_utf8(line).ok()?.strip_prefix(FIRST_LINE)?;
    Some(rest.strip_prefix(" (")?.split_once(')')?.0)
}

/// Returns the content that a tunnel has kept in the file because it ended without restoring it, or the content itself.
fn original(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let Some((first, kept)) = text.split_once(SEPARATOR) else {
        return bytes.to_vec();
    };
    if !first.starts_with(FIRST_LINE) {
        return bytes.to_vec();
    }
    let mut restored = String::new();
    for line in kept.lines() {
        let _ = writeln!(restored, "{}", line.strip_prefix('#').unwrap_or(line));
    }
    restored.into_bytes()
}

/// Gives the servers to systemd-resolved, for all names.
fn resolvectl(servers: &[IpAddr], device: &str) -> Result<(), String> {
    let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
    let mut dns = vec!["dns", device];
    dns.extend(servers.iter().map(String::as_str));
    for arguments in [dns, vec!["domain", device, "~."]] {
        let status = Command::new("resolvectl")
            .args(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!(
                "cannot set name servers: systemd-resolved is in charge of {RESOLV_CONF}, and 'resolvectl {}' has failed",
                arguments.join(" ")
            ));
        }
    }
    Ok(())
}

const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The folder of the files that systemd-resolved writes.
const RESOLVED: &str = "/run/systemd/resolve";

const FIRST_LINE: &str = "# Set by courser tunnel";

/// The folder of the interfaces of the system.
const INTERFACES: &str = "/sys/class/net";

/// What follows is the previous content, as comments.
const SEPARATOR: &str = "# Previous content:\n";

#[cfg(test)]
mod tests;
