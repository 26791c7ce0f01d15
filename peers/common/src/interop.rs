//! The contract between `courser interop matrix` and the programs that it starts: the variables of the QUIC interop
//! runner, with those that `interop/README.md` adds.
//!
//! This file needs the standard library alone, because the example `interop_peer_quinn` includes it.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;

/// The result of an end. Its error is printed and ends the program.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The cases that a stack supports, by their names in the runner.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    /// The cases that both of its ends support.
    pub both: &'static [&'static str],
    /// The cases that its server supports and its client does not.
    pub server: &'static [&'static str],
}

/// Runs the end that the last argument names, in the case of `TESTCASE`. Returns the exit code of the program, which is
/// 127 for a case that the stack does not support.
///
/// # Errors
/// Returns an error if a variable is missing or unusable, and the error of the end.
pub fn run(
    cases: Cases,
    serve: impl FnOnce(Server) -> Result,
    fetch: impl FnOnce(Client) -> Result,
) -> Result<ExitCode> {
    let case = text(&environment, "TESTCASE")?;
    let is_server = env::args().next_back().as_deref() == Some("server");
    if !cases.supports(&case, is_server) {
        return Ok(ExitCode::from(127));
    }
    if is_server {
        serve(Server::new(case, &environment)?)?;
    } else {
        fetch(Client::new(case, &environment)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Cases {
    fn supports(self, case: &str, is_server: bool) -> bool {
        self.both.contains(&case) || (is_server && self.server.contains(&case))
    }
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Server {
    /// The name of the case.
    pub case: String,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The preferred address to announce, if the case has one.
    pub preferred: Option<SocketAddrV4>,
    /// The file of the certificate chain, in PEM.
    pub certificate: PathBuf,
    /// The file of the private key, in PEM.
    pub key: PathBuf,
    root: PathBuf,
}

impl Server {
    fn new(case: String, variables: Lookup<'_>) -> Result<Self> {
        let certificates = PathBuf::from(text(variables, "CERTS")?);
        let preferred = variables("PREFERRED").map(|address| address.parse());
        Ok(Self {
            case,
            listen: text(variables, "LISTEN")?.parse()?,
            preferred: preferred.transpose()?,
            certificate: certificates.join("cert.pem"),
            key: certificates.join("priv.key"),
            root: text(variables, "WWW")?.into(),
        })
    }

    /// Returns the file that a request of HTTP/0.9 names, such as `GET /name`. Returns `None` for other requests.
    pub fn answer(&self, request: &[u8]) -> Option<Vec<u8>> {
        self.file(request.trim_ascii_end().strip_prefix(b"GET ")?)
    }

    /// Returns the file that a path names, such as `/name`. Returns `None` if there is no such file, and for paths that
    /// lead out of the folder.
    pub fn file(&self, path: &[u8]) -> Option<Vec<u8>> {
        let name = std::str::from_utf8(path).ok()?.strip_prefix('/')?;
        if name.contains('/') || name.starts_with('.') {
            return None;
        }
        fs::read(self.root.join(name)).ok()
    }
}

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Client {
    /// The name of the case.
    pub case: String,
    /// The address of the server.
    pub server: SocketAddr,
    /// The names of the files to download.
    pub files: Vec<String>,
    downloads: PathBuf,
}

impl Client {
    fn new(case: String, variables: Lookup<'_>) -> Result<Self> {
        let mut server = None;
        let mut files = Vec::new();
        for url in text(variables, "REQUESTS")?.split_whitespace() {
            let (authority, file) = url
                .strip_prefix("https://")
                .and_then(|rest| rest.split_once('/'))
                .ok_or_else(|| format!("no URL of a file: {url}"))?;
            server = Some(authority.parse()?);
            files.push(file.to_owned());
        }
        Ok(Self {
            case,
            server: server.ok_or("REQUESTS is empty")?,
            files,
            downloads: text(variables, "DOWNLOADS")?.into(),
        })
    }

    /// Returns the connections of the case in their order.
    pub fn connections(&self) -> Vec<Connection<'_>> {
        let with = |files, start| Connection { files, start };
        if self.case == "multiconnect" {
            let each = self.files.chunks(1);
            return each.map(|file| with(file, Start::Full)).collect();
        }
        if !self.resumes() {
            return vec![with(&self.files, Start::Full)];
        }
        let start = match self.case.as_str() {
            "zerortt" => Start::Early,
            _ => Start::Resumed,
        };
        let (first, others) = self.files.split_at(1);
        vec![with(first, Start::Full), with(others, start)]
    }

    /// Returns true if the second connection resumes the session of the first one, which has to wait for a ticket.
    pub fn resumes(&self) -> bool {
        matches!(self.case.as_str(), "resumption" | "zerortt")
    }

    /// Writes a file that was downloaded.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn save(&self, file: &str, content: &[u8]) -> io::Result<()> {
        fs::write(self.downloads.join(file), content)
    }

    /// Returns a local address that can reach the server, with port 0.
    pub fn local(&self) -> SocketAddr {
        match self.server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }
}

/// One connection of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection<'a> {
    /// The names of the files that travel over it.
    pub files: &'a [String],
    /// Its handshake.
    pub start: Start,
}

/// The handshake of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// A full handshake.
    Full,
    /// The resumption of the session before.
    Resumed,
    /// The same, with requests in 0-RTT packets.
    Early,
}

/// Returns the request of a file over HTTP/0.9.
pub fn request(file: &str) -> String {
    format!("GET /{file}\r\n")
}

/// The name in the certificates of all cases.
pub const SERVER_NAME: &str = "localhost";

/// A look-up of variables by name.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

fn environment(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn text(variables: Lookup<'_>, name: &str) -> Result<String> {
    variables(name).ok_or_else(|| format!("{name} is not set").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: Cases = Cases {
        both: &["transfer"],
        server: &["chacha20"],
    };

    fn lookup(name: &str) -> Option<String> {
        let value = match name {
            "REQUESTS" => "https://[::1]:4433/a https://[::1]:4433/b  https://[::1]:4433/c",
            "DOWNLOADS" | "WWW" => env!("CARGO_MANIFEST_DIR"),
            "LISTEN" => "127.0.0.1:4433",
            "CERTS" => "certs",
            _ => return None,
        };
        Some(value.to_owned())
    }

    fn client(case: &str) -> Client {
        Client::new(case.to_owned(), &lookup).expect("the variables are set")
    }

    fn server() -> Server {
        Server::new("transfer".to_owned(), &lookup).expect("the variables are set")
    }

    #[test]
    fn server_may_support_more_cases_than_client() {
        assert!(CASES.supports("transfer", true) && CASES.supports("transfer", false));
        assert!(CASES.supports("chacha20", true) && !CASES.supports("chacha20", false));
        assert!(!CASES.supports("teleport", true));
    }

    #[test]
    fn variables_become_settings() {
        let client = client("transfer");
        assert_eq!(client.server, "[::1]:4433".parse().expect("an address"));
        assert_eq!(client.files, ["a", "b", "c"]);
        assert!(client.local().is_ipv6());
        let server = server();
        assert_eq!(server.certificate, PathBuf::from("certs/cert.pem"));
        assert_eq!(server.preferred, None);
    }

    #[test]
    fn missing_and_unusable_variables_are_errors() {
        let none = |_: &str| None;
        assert!(Server::new(String::new(), &none).is_err());
        let without_files = |name: &str| match name {
            "REQUESTS" => Some(String::new()),
            _ => lookup(name),
        };
        assert!(Client::new(String::new(), &without_files).is_err());
        let odd = |name: &str| match name {
            "REQUESTS" => Some("http://[::1]:4433/a".to_owned()),
            _ => lookup(name),
        };
        assert!(Client::new(String::new(), &odd).is_err());
        let preferred = |name: &str| match name {
            "PREFERRED" => Some("nowhere".to_owned()),
            _ => lookup(name),
        };
        assert!(Server::new(String::new(), &preferred).is_err());
    }

    #[test]
    fn case_decides_about_connections() {
        let shape = |case: &str| -> Vec<(usize, Start)> {
            let client = client(case);
            let all = client.connections().into_iter();
            all.map(|it| (it.files.len(), it.start)).collect()
        };
        assert_eq!(shape("transfer"), [(3, Start::Full)]);
        assert_eq!(shape("multiconnect"), [(1, Start::Full); 3]);
        assert_eq!(shape("resumption"), [(1, Start::Full), (2, Start::Resumed)]);
        assert_eq!(shape("zerortt"), [(1, Start::Full), (2, Start::Early)]);
    }

    #[test]
    fn server_answers_with_files_of_its_folder() {
        let server = server();
        let manifest = server.answer(request("Cargo.toml").as_bytes());
        assert!(manifest.is_some_and(|file| !file.is_empty()));
        assert_eq!(server.answer(b"POST /Cargo.toml"), None);
        assert_eq!(server.answer(b"GET /missing\r\n"), None);
        assert_eq!(server.file(b"/../Cargo.toml"), None);
        assert_eq!(server.file(b"/src/lib.rs"), None);
    }
}
