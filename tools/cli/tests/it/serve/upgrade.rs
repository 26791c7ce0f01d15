//! A process that is replaced by another one.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use courser::server::Protocol;
use http::Method;
use http_body_util::BodyExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::client::request;
use super::running::{admin, start};
use super::serving::Serving;
use super::within;
use crate::common::{Folder, courser};

/// The process that an upgrade has started, ended on drop.
struct NewProcess(Pid);

impl NewProcess {
    fn of(event: &Value) -> Self {
        let number = event["process"].as_i64().expect("a number");
        let number = i32::try_from(number).expect("a process ID");
        Self(Pid::from_raw(number).expect("a process ID"))
    }
}

impl Drop for NewProcess {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// A response that the old process has begun is finished, and new clients are served meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_process_serves_while_the_old_one_finishes() {
    let folder = Folder::new();
    folder.file("large", &"x".repeat(30_000_000));
    folder.file("small", "small");
    for protocol in Protocol::ALL {
        let others = ["--admin", "127.0.0.1:0", "--redirect-http", "127.0.0.1:0"];
        let mut serving = start(&folder, &[&["--no-compress"][..], &others].concat());
        let endpoints = serving.announced["admin"].clone();
        let mut client = serving.client(protocol).await;
        let large = request(Method::GET, "/large", &[], "");
        let response = within(client.begin(large)).await.expect("an answer");
        serving.signal(Signal::USR2);
        // Two processes report, in either order.
        let mut events = [serving.next_event(), serving.next_event()];
        if events[0]["event"] == "upgraded" {
            events.swap(0, 1);
        }
        let [announced, upgraded] = events;
        assert_eq!(announced["event"], "listening", "{announced}");
        assert_eq!(announced["addresses"], serving.announced["addresses"]);
        assert_eq!(announced["admin"], endpoints, "{announced}");
        assert_eq!(announced["redirects"], serving.announced["redirects"]);
        assert_eq!(upgraded["event"], "upgraded", "{upgraded}");
        let new_process = NewProcess::of(&upgraded);
        for _ in 0..5 {
            let mut late = serving.client(protocol).await;
            assert_eq!(late.get("/small", &[]).await.text(), "small", "{protocol}");
        }
        assert_eq!(admin(&serving, "/ready").0, 200, "{protocol}");
        assert_eq!(serving.next_event()["event"], "draining");
        let content = within(response.into_body().collect()).await;
        let content = content.expect("finished").to_bytes();
        assert_eq!(content.len(), 30_000_000, "{protocol}");
        let drained = serving.next_event();
        assert_eq!(drained["event"], "drained", "{drained}");
        assert_eq!(drained["requests_cut"], 0, "{protocol}: {drained}");
        drop(new_process);
        serving.ended();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_that_cannot_start_changes_nothing() {
    let folder = Folder::new();
    folder.file("small", "small");
    let types = Folder::new();
    let file = types.file("types", "text/plain abc\n");
    let mut serving = start(&folder, &["--mime", &file]);
    types.file("types", "not a type\n");
    serving.signal(Signal::USR2);
    let warning = loop {
        let event = serving.next_of_all_events();
        let text = event["text"].as_str().unwrap_or_default().to_owned();
        if text.contains("new process") {
            break text;
        }
    };
    assert!(
        warning.contains("it has ended: exit status: 1; this one continues"),
        "{warning}"
    );
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        assert_eq!(
            client.get("/small", &[]).await.text(),
            "small",
            "{protocol}"
        );
    }
}

/// systemd follows another main process only if that is its child, and accepts messages of the main process only.
#[test]
fn service_manager_follows_the_new_process() {
    let folder = Folder::new();
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let manager = Folder::new();
    let name = manager.path().join("notify");
    let socket = UnixDatagram::bind(&name).expect("bound");
    let limit = Some(Duration::from_secs(120));
    socket.set_read_timeout(limit).expect("an option");
    let received = || {
        let mut buffer = [0; 64];
        let len = socket.recv(&mut buffer).expect("a message");
        String::from_utf8_lossy(&buffer[..len]).into_owned()
    };
    let mut command = courser(&["serve", "--listen", "127.0.0.1:0", "--json", &path]);
    command.env("NOTIFY_SOCKET", &name);
    let mut serving = Serving::spawn(command, Folder::new());
    assert_eq!(received(), "READY=1");
    serving.signal(Signal::USR2);
    // Both processes write here, so either may be first.
    let mut events = [serving.next_event(), serving.next_event()];
    events.sort_by_key(|event| event["event"].to_string());
    let [listening, upgraded] = events;
    assert_eq!(listening["event"], "listening");
    let new_process = NewProcess::of(&upgraded);
    assert_eq!(received(), format!("MAINPID={}", upgraded["process"]));
    let stat = format!("/proc/{}/stat", upgraded["process"]);
    let stat = std::fs::read_to_string(stat).expect("a running process");
    let (_, fields) = stat.rsplit_once(") ").expect("the name is in parentheses");
    let parent = fields.split(' ').nth(1).expect("an ID");
    assert_ne!(parent, serving.child().id().to_string(), "{stat}");
    while serving.next_event()["event"] != "drained" {}
    serving.ended();
    socket.set_nonblocking(true).expect("an option");
    let more = socket.recv(&mut [0; 64]);
    assert!(more.is_err(), "the old process sent another message");
    drop(new_process);
}
