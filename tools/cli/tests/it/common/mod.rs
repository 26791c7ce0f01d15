//! Runs the binary, alone or as server and client.

#![allow(dead_code, reason = "each test file uses its own part")]

#[cfg(target_os = "linux")]
pub mod overflow;

use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// Reports that the running test cannot check anything on this machine. The test harness does not capture the
/// line, so that `.ci/run` can count it.
pub fn skipped(reason: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {reason}");
}

/// Returns the binary as a command.
pub fn courser(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("SSLKEYLOGFILE");
    command
}

/// Runs the binary to its end.
pub fn run(arguments: &[&str]) -> Output {
    courser(arguments).output().expect("the binary starts")
}

/// Runs the binary, expects a failure, and returns its one line.
pub fn refusal(arguments: &[&str]) -> String {
    let output = run(arguments);
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(!output.status.success(), "{arguments:?} must fail: {error}");
    assert_eq!(
        error.lines().count(),
        1,
        "{arguments:?} must print one line: {error:?}"
    );
    assert!(error.starts_with("courser: "), "{arguments:?}: {error:?}");
    error.trim_end().to_owned()
}

/// A perf server in its own process, killed at the end.
pub struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The address of the server, the same for UDP and TCP.
    pub address: SocketAddr,
}

impl Server {
    /// Starts a server on a port that the system chooses.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", arguments)
    }

    /// Starts a server on this address.
    pub fn start_on(listen: &str, arguments: &[&str]) -> Self {
        let all = [&["perf", "server", "--listen", listen, "--json"], arguments].concat();
        let mut child = courser(&all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = Self {
            child,
            lines,
            address: unknown,
        };
        let events = if arguments.contains(&"--tcp") { 2 } else { 1 };
        for _ in 0..events {
            let event = server.next_event();
            assert_eq!(event["event"], "listening", "{event}");
            let address = event["address"].as_str().expect("an address").parse();
            server.address = address.expect("an address");
        }
        server
    }

    /// Returns the next event of the server.
    pub fn next_event(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("UTF-8");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Returns the server process, for signals.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Runs a client against the server to its end.
    pub fn client(&self, arguments: &[&str]) -> Output {
        let address = self.address.to_string();
        let all = [&["perf", "client", &address, "--insecure"], arguments].concat();
        run(&all)
    }

    /// Runs a client against the server and returns its report.
    pub fn report(&self, arguments: &[&str]) -> Value {
        let output = self.client(&[arguments, &["--json"]].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        assert_eq!(error, "", "{arguments:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A temporary folder, removed on drop.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("courser-cli-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("our folder");
        path.to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate and its key in files.
pub struct Certificate {
    _folder: Folder,
    /// The path of the PEM file with the certificate.
    pub cert: String,
    /// The path of the PEM file with the key.
    pub key: String,
}

/// Creates a certificate for localhost and 127.0.0.1 that is valid until the given year.
pub fn certificate(until: i32) -> Certificate {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = rcgen::CertificateParams::new(names).expect("names are valid");
    params.not_before = rcgen::date_time_ymd(2000, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = rcgen::KeyPair::generate().expect("random numbers");
    let cert = params.self_signed(&key).expect("signable");
    let folder = Folder::new();
    Certificate {
        cert: folder.file("cert.pem", &cert.pem()),
        key: folder.file("key.pem", &key.serialize_pem()),
        _folder: folder,
    }
}

/// Returns the number at `path`, whose parts are separated by dots.
pub fn number(report: &Value, path: &str) -> f64 {
    let found = path.split('.').fold(report, |value, part| &value[part]);
    found
        .as_f64()
        .unwrap_or_else(|| panic!("no number at {path}: {found} in {report:#}"))
}
