//! Sockets that a service manager has opened (`LISTEN_FDS`).

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use courser::server::Protocol;
use http::Method;
use http_body_util::BodyExt as _;
use rustix::process::Signal;

use super::client::{Client, request};
use super::serving::Serving;
use super::within;
use crate::common::{Folder, courser};

/// The sockets of a service manager, which stay open while servers are replaced.
struct Sockets {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Sockets {
    fn open() -> Self {
        loop {
            let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().expect("bound")) {
                return Self { tcp, udp };
            }
        }
    }

    fn address(&self) -> SocketAddr {
        self.tcp.local_addr().expect("bound")
    }

    /// Returns a command that starts courser with both sockets.
    fn command(&self, arguments: &[&str]) -> Command {
        let tcp = self.tcp.try_clone().expect("a descriptor");
        let udp = self.udp.try_clone().expect("a descriptor");
        passing([tcp.into(), udp.into()], "$$", arguments)
    }
}

/// Returns a command that starts courser with two descriptors for the process `of`, as the shell writes it.
fn passing([third, fourth]: [OwnedFd; 2], of: &str, arguments: &[&str]) -> Command {
    let plain = courser(arguments);
    let script = format!(
        "exec 3<&0 4<&2 </dev/null 2>&1; \
         export LISTEN_FDS=2 LISTEN_PID={of} LISTEN_FDNAMES=web.socket:web.socket; exec \"$0\" \"$@\""
    );
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .arg(plain.get_program())
        .args(arguments)
        .stdin(third)
        .stderr(fourth)
        .env_remove("SSLKEYLOGFILE");
    command
}

/// Starts courser with two descriptors, expects a failure, and returns its message.
fn refusal(descriptors: [OwnedFd; 2], of: &str, arguments: &[&str]) -> String {
    let mut command = passing(descriptors, of, arguments);
    let child = command.stdout(Stdio::piped()).spawn();
    let output = child.expect("a shell").wait_with_output();
    let output = output.expect("an end");
    let error = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!output.status.success(), "{arguments:?} must fail: {error}");
    error
}

/// A client that arrives while a server finishes waits for the next one, as with `systemctl restart`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_refuses_no_client() {
    let folder = Folder::new();
    folder.file("large", &"x".repeat(30_000_000));
    folder.file("small", "small");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    for protocol in Protocol::ALL {
        let sockets = Sockets::open();
        let of_first = Folder::new();
        let dev = of_first.path().join("dev");
        let dev = dev.to_str().expect("UTF-8").to_owned();
        let arguments = ["serve", "--json", "--tls-dev-dir", &dev, &path];
        let arguments = [&arguments[..], &["--no-compress"]].concat();
        let mut first = Serving::spawn(sockets.command(&arguments), of_first);
        // No --listen: the sockets have the address.
        assert_eq!(first.address, sockets.address());
        let mut client = first.client(protocol).await;
        let large = request(Method::GET, "/large", &[], "");
        let response = within(client.begin(large)).await.expect("an answer");
        first.signal(Signal::TERM);
        assert_eq!(first.next_event()["event"], "draining", "{protocol}");
        let (address, certificate) = (first.address, first.certificate());
        let waiting = tokio::spawn(async move {
            let client = Client::connect(protocol, address, certificate);
            let mut client = client.await.expect("a server");
            client.get("/small", &[]).await.text()
        });
        let content = within(response.into_body().collect()).await;
        let content = content.expect("finished").to_bytes();
        assert_eq!(content.len(), 30_000_000, "{protocol}");
        drop(client);
        let drained = first.next_event();
        assert_eq!(drained["requests_cut"], 0, "{protocol}: {drained}");
        first.ended();
        let _second = Serving::spawn(sockets.command(&arguments), Folder::new());
        let text = within(waiting).await.expect("no panic");
        assert_eq!(text, "small", "{protocol}");
    }
}

/// An upgrade keeps the addresses of the sockets without --listen, and their protection from refusals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgraded_process_has_the_sockets_too() {
    let folder = Folder::new();
    folder.file("small", "small");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let sockets = Sockets::open();
    let of_first = Folder::new();
    let dev = of_first.path().join("dev");
    let dev = dev.to_str().expect("UTF-8").to_owned();
    let arguments = ["serve", "--json", "--tls-dev-dir", &dev, &path];
    let mut serving = Serving::spawn(sockets.command(&arguments), of_first);
    serving.signal(Signal::USR2);
    let announced = serving.next_event();
    assert_eq!(announced["addresses"], serving.announced["addresses"]);
    let upgraded = serving.next_event();
    assert_eq!(upgraded["event"], "upgraded", "{upgraded}");
    let number = upgraded["process"].as_i64().expect("a number");
    let new = i32::try_from(number)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let new = new.expect("a process ID");
    while serving.next_event()["event"] != "drained" {}
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        assert_eq!(client.get("/small", &[]).await.text(), "small");
    }
    rustix::process::kill_process(new, Signal::TERM).expect("a running process");
    assert_eq!(serving.next_event()["event"], "draining");
    let tcp = std::net::TcpStream::connect(sockets.address());
    assert!(tcp.is_ok(), "the socket stays open: {tcp:?}");
    while serving.next_event()["event"] != "drained" {}
}

#[test]
fn unusable_sockets_end_the_start_with_a_reason() {
    let folder = Folder::new();
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let null = || OwnedFd::from(std::fs::File::open("/dev/null").expect("readable"));
    let sockets = Sockets::open();
    let both = || -> [OwnedFd; 2] {
        let tcp = sockets.tcp.try_clone().expect("a descriptor");
        [
            tcp.into(),
            sockets.udp.try_clone().expect("a descriptor").into(),
        ]
    };
    let address = sockets.address().to_string();
    let error = refusal([null(), null()], "$$", &["serve", &path]);
    assert!(
        error.contains("web.socket (descriptor 3)") && error.contains("not a socket"),
        "{error}"
    );
    let elsewhere = ["serve", &path, "--listen", "127.0.0.2:0"];
    let error = refusal(both(), "$$", &elsewhere);
    assert!(
        error.contains(&address) && error.contains("does not listen on that address"),
        "{error}"
    );
    // A shell in between: the sockets are open, for another process.
    let error = refusal(both(), "1", &["serve", &path, "--listen", &address]);
    assert!(
        error.contains("to process 1 (LISTEN_PID)") && error.contains("exec"),
        "{error}"
    );
}
