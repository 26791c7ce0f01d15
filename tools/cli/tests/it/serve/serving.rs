//! Servers in their own processes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use courser::Identity;
use courser::rustls::pki_types::CertificateDer;
use courser::server::Protocol;
use serde_json::Value;

use super::client::Client;
use crate::common::{Folder, courser};

/// A server in its own process, killed on drop.
pub(crate) struct Serving {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The folder of the certificate, deleted on drop.
    folder: Folder,
    pub(crate) address: SocketAddr,
    /// The first event, which has the addresses and the certificate.
    pub(crate) announced: Value,
}

impl Serving {
    /// Starts a server on a port that the system chooses, with a certificate for this test.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_as(arguments, courser)
    }

    /// Starts a server with this limit on descriptors.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_with_descriptors(limit: u32, arguments: &[&str]) -> Self {
        Self::start_with_limit(&format!("-n {limit}"), arguments)
    }

    /// Starts a server with a resource limit, in the syntax of `ulimit`.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_with_limit(limit: &str, arguments: &[&str]) -> Self {
        Self::start_as(arguments, |arguments| {
            let plain = courser(arguments);
            let mut limited = std::process::Command::new("sh");
            limited
                .args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")])
                .arg(plain.get_program())
                .args(arguments)
                .stdin(Stdio::null())
                .env_remove("SSLKEYLOGFILE");
            limited
        })
    }

    /// Starts a server whose arguments contain a port. Returns `None` if another process uses the port, so that the
    /// server ends immediately.
    pub(crate) fn start_if_free(arguments: &[&str]) -> Option<Self> {
        let (mut command, folder) = Self::command(arguments, courser);
        Self::begin(&mut command, folder)
    }

    fn start_as(arguments: &[&str], command: impl FnOnce(&[&str]) -> Command) -> Self {
        let (command, folder) = Self::command(arguments, command);
        Self::spawn(command, folder)
    }

    /// Returns a command with the usual arguments and these, and the folder of its certificate.
    fn command(arguments: &[&str], command: impl FnOnce(&[&str]) -> Command) -> (Command, Folder) {
        let folder = Folder::new();
        let path = folder.file("dev", "");
        std::fs::remove_file(&path).expect("our file");
        let common = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--tls-dev-dir",
            &path,
        ];
        (command(&[&common[..], arguments].concat()), folder)
    }

    /// Starts a server with these arguments only. The folder is kept.
    pub(crate) fn run(arguments: &[&str], folder: Folder) -> Self {
        Self::spawn(courser(arguments), folder)
    }

    /// Starts a server with these arguments only. A busy machine may take longer to leave the address than this waits
    /// for it, so it is started up to 20 times.
    #[cfg(target_os = "linux")]
    pub(crate) fn run_next(arguments: &[&str]) -> Self {
        let mut tries = (0..20).map(|_| Self::begin(&mut courser(arguments), Folder::new()));
        tries.find_map(|it| it).expect("a server that listens")
    }

    /// Starts a server with a command. The folder is kept.
    pub(crate) fn spawn(mut command: Command, folder: Folder) -> Self {
        Self::begin(&mut command, folder).expect("a server that listens")
    }

    /// Starts a server, and returns it when it listens. Returns `None` if it ends before.
    fn begin(command: &mut Command, folder: Folder) -> Option<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut serving = Self {
            child,
            lines,
            folder,
            address: ([0, 0, 0, 0], 0).into(),
            announced: Value::Null,
        };
        if serving.lines.fill_buf().expect("a pipe").is_empty() {
            return None;
        }
        serving.announced = serving.next_event();
        assert_eq!(
            serving.announced["event"], "listening",
            "{}",
            serving.announced
        );
        let address = serving.announced["addresses"][0]
            .as_str()
            .expect("an address");
        serving.address = address.parse().expect("an address");
        Some(serving)
    }

    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("UTF-8");
        line.trim_end().to_owned()
    }

    /// Returns the next event. Warnings depend on the machine and are skipped.
    pub(crate) fn next_event(&mut self) -> Value {
        loop {
            let event = self.next_of_all_events();
            if event["event"] != "warning" {
                return event;
            }
        }
    }

    /// Returns the next event or warning.
    pub(crate) fn next_of_all_events(&mut self) -> Value {
        let line = self.next_line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        let path = |name: &str| self.folder.path().join("dev").join(name);
        let identity = Identity::from_pem_files(path("cert.pem"), path("key.pem"));
        identity.expect("written by the server").certificate()
    }

    pub(crate) async fn client(&self, protocol: Protocol) -> Client {
        let connected = Client::connect(protocol, self.address, self.certificate());
        super::within(connected).await.expect("a server")
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn child(&self) -> &Child {
        &self.child
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).expect("small");
        let id = rustix::process::Pid::from_raw(id).expect("not 0");
        rustix::process::kill_process(id, signal).expect("a running process");
    }

    /// Lowers the limit on descriptors of the running server.
    #[cfg(target_os = "linux")]
    pub(crate) fn limit_descriptors(&self, limit: u64) {
        let id = i32::try_from(self.child.id()).expect("small");
        let id = rustix::process::Pid::from_raw(id);
        let new = rustix::process::Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        };
        rustix::process::prlimit(id, rustix::process::Resource::Nofile, new).expect("our process");
    }

    /// Waits for the end, which must be a success.
    #[cfg(unix)]
    pub(crate) fn ended(&mut self) {
        let status = self.child.wait().expect("a child");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
