//! Name servers of a system.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name servers that a tunnel has set. The previous ones return when it is dropped.
#[derive(Debug)]
pub(crate) enum NameServers {
    /// In a file that programs read.
    File {
        /// Restores the content.
        _file: File,
    },
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
        Ok(Self::File { _file: file })
    }
}

impl File {
    fn write(path: &Path, servers: &[IpAddr], device: &str) -> io::Result<Self> {
        let previous = match fs::read(path) {
            Ok(bytes) => original(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut written = format!(
            "# Set by courser tunnel ({device}), which restores what follows at its end.\n"
        );
        for server in servers {
            let _ = writeln!(written, "nameserver {server}");
        }
        written.push_str(SEPARATOR);
        for line in String::from_utf8_lossy(&previous).lines() {
            let _ = writeln!(written, "#{line}");
        }
        // In place, as the file may be one that a container or a namespace was given.
        fs::write(path, &written)?;
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
        if fs::read(&self.path).is_ok_and(|bytes| bytes == self.written.as_bytes()) {
            let _ = fs::write(&self.path, &self.previous);
        }
    }
}

/// Returns the content that a tunnel has kept in the file because it ended without restoring it, or the content itself.
fn original(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let Some((first, kept)) = text.split_once(SEPARATOR) else {
        return bytes.to_vec();
    };
    if !first.starts_with("# Set by courser tunnel") {
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

/// What follows is the previous content, as comments.
const SEPARATOR: &str = "# Previous content:\n";

#[cfg(test)]
mod tests;
