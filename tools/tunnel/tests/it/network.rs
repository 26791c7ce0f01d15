//! Three namespaces: client, proxy, target.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::roles::ROLE;

pub const PROXY: &str = "198.18.0.1";
pub const TARGET4: &str = "198.18.1.2";
pub const TARGET6: &str = "fd00:18:1::2";

/// The namespaces, which are deleted on drop. A target is running.
pub struct Network {
    prefix: String,
    target: Option<Process>,
}

impl Network {
    /// Returns `None` where there are no namespaces or TUN devices.
    pub fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("courser-tunnel-{}-{count}", std::process::id());
        let mut network = Self {
            prefix,
            target: None,
        };
        if !fs::exists("/dev/net/tun").is_ok_and(|it| it) || !network.set_up() {
            let test = thread::current().name().unwrap_or_default().to_owned();
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {test}: no network namespaces with TUN devices"
            );
            return None;
        }
        let target = network.start("target", "target", &[]);
        target.wait_for("ready");
        network.target = Some(target);
        Some(network)
    }

    fn set_up(&self) -> bool {
        let [client, proxy, target] = ["client", "proxy", "target"].map(|it| self.name(it));
        for name in [&client, &proxy, &target] {
            if !succeeds(&format!("netns add {name}"))
                || !succeeds(&format!("-n {name} link set lo up"))
            {
                return false;
            }
        }
        let folder = format!("/etc/netns/{client}");
        let resolv = format!("{folder}/resolv.conf");
        if fs::create_dir_all(folder).is_err()
            || fs::write(resolv, "# before\nnameserver 192.0.2.53\n").is_err()
        {
            return false;
        }
        [
            format!("-n {proxy} link add veth0 type veth peer name veth0 netns {client}"),
            format!("-n {proxy} link add veth1 type veth peer name veth0 netns {target}"),
            format!("-n {proxy} address add {PROXY}/30 dev veth0"),
            format!("-n {client} address add 198.18.0.2/30 dev veth0"),
            format!("-n {proxy} address add 198.18.1.1/30 dev veth1"),
            format!("-n {target} address add {TARGET4}/30 dev veth0"),
            format!("-n {proxy} address add fd00:18:1::1/64 dev veth1 nodad"),
            format!("-n {target} address add {TARGET6}/64 dev veth0 nodad"),
            format!("-n {proxy} link set veth0 up"),
            format!("-n {proxy} link set veth1 up"),
            format!("-n {client} link set veth0 up"),
            format!("-n {target} link set veth0 up"),
            // The pool of the proxy.
            format!("-n {target} route add 10.89.0.0/24 via 198.18.1.1"),
            format!("-n {target} -6 route add fd00:89::/64 via fd00:18:1::1"),
            format!("netns exec {proxy} sysctl -qw net.ipv4.ip_forward=1"),
            format!("netns exec {proxy} sysctl -qw net.ipv6.conf.all.forwarding=1"),
        ]
        .iter()
        .all(|command| succeeds(command))
    }

    fn name(&self, end: &str) -> String {
        format!("{}-{end}", self.prefix)
    }

    /// Runs `ip` in a namespace, and returns what it prints.
    pub fn ip(&self, end: &str, arguments: &str) -> String {
        let output = Command::new("ip")
            .args(["-n", &self.name(end)])
            .args(arguments.split(' '))
            .output()
            .expect("ip starts");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Sets a variable of the kernel in a namespace.
    pub fn set(&self, end: &str, variable: &str) {
        let name = self.name(end);
        assert!(succeeds(&format!(
            "netns exec {name} sysctl -qw {variable}"
        )));
    }

    /// Returns the name servers of the client.
    pub fn resolv_conf(&self) -> String {
        let path = format!("/etc/netns/{}/resolv.conf", self.name("client"));
        fs::read_to_string(path).expect("a file")
    }

    /// Starts a role in a namespace.
    pub fn start(&self, end: &str, role: &str, arguments: &[&str]) -> Process {
        Process::start(&self.name(end), role, arguments)
    }

    /// Starts the proxy, and waits until it serves.
    pub fn proxy(&self) -> Process {
        let proxy = self.start("proxy", "proxy", &[]);
        proxy.wait_for("ready");
        proxy
    }

    /// Runs a probe at the client, which must succeed.
    pub fn probe(&self, arguments: &[&str]) {
        assert!(self.try_probe(arguments), "{arguments:?}");
    }

    pub fn try_probe(&self, arguments: &[&str]) -> bool {
        self.start("client", "probe", arguments).succeeds()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.target = None;
        for end in ["client", "proxy", "target"] {
            succeeds(&format!("netns delete {}", self.name(end)));
        }
        let _ = fs::remove_dir_all(format!("/etc/netns/{}", self.name("client")));
    }
}

fn succeeds(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    let silent = command
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// A role of this binary in a namespace, killed at the end.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(namespace: &str, role: &str, arguments: &[&str]) -> Self {
        let own = std::env::current_exe().expect("the test binary");
        let mut child = Command::new("ip")
            .args(["netns", "exec", namespace])
            .arg(own)
            .args(["--exact", "role", "--nocapture"])
            .env(ROLE, [&[role], arguments].concat().join(" "))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ip starts");
        let output = child.stdout.take().expect("piped");
        let (sender, lines) = channel();
        // Ends with the output.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Waits for a line with this text.
    pub fn wait_for(&self, text: &str) {
        // The loss of a proxy is noticed after 30 s.
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut seen = String::new();
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if line.contains(text) {
                return;
            }
            seen.push_str(&line);
            seen.push('\n');
        }
        panic!("no line with '{text}', but:\n{seen}");
    }

    /// Interrupts the process as a user does, and waits for its end.
    pub fn interrupt(mut self) {
        let id = self.child.id().to_string();
        // `ip netns exec` has become the program itself.
        let mut kill = Command::new("kill");
        assert!(
            kill.args(["-INT", &id])
                .status()
                .is_ok_and(|it| it.success())
        );
        assert!(self.child.wait().is_ok_and(|status| status.success()));
    }

    fn succeeds(mut self) -> bool {
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            for line in self.lines.try_iter() {
                eprintln!("{line}");
            }
        }
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
