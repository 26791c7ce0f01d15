//! What runs in the namespaces.

use std::io::{Read as _, Write as _};
use std::net::{
    IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket,
};
use std::process::exit;
use std::thread;
use std::time::Duration;

use courser::masque::{self, IpProxy, Policy};
use courser::{Identity, Side, h3};
use courser_measure::tls::Trust;
use courser_tunnel::{Config, Wishes, check, ip_transport, run as tunnel, serve_ip, template};
use socket2::{Domain, Protocol, Socket, Type};

/// The variable with the role and its arguments.
pub const ROLE: &str = "COURSER_TEST_TUNNEL";

/// Plays the role of the variable, and ends the process.
pub fn run() {
    let Ok(text) = std::env::var(ROLE) else {
        return;
    };
    let words: Vec<&str> = text.split(' ').collect();
    let succeeded = match words.as_slice() {
        ["target"] => target(),
        ["proxy"] => proxy(),
        ["client", wishes @ ..] => client(wishes),
        ["probe", "ping", address] => ping(address),
        ["probe", "upload", address] => upload(address),
        ["probe", "download", address] => download(address),
        ["probe", "resolve", name] => resolve(name),
        _ => panic!("no role: {text}"),
    };
    exit(i32::from(!succeeded));
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

fn proxy() -> bool {
    runtime().block_on(async {
        let pool = ["10.89.0.0/24", "fd00:89::/64"].map(|it| it.parse().expect("a prefix"));
        let network = serve_ip(&pool, Some("courser1")).expect("a device");
        // It is told that the pool is private, and nothing else.
        assert!(
            network.warnings.iter().all(|it| it.contains("masquerade")),
            "{:?}",
            network.warnings
        );
        let mut policy = Policy::public_only();
        for prefix in ["198.18.1.0/30", "fd00:18:1::/64"] {
            policy = policy.allow(prefix.parse().expect("a prefix"), 0..=65_535);
        }
        let proxy = IpProxy::new(pool, policy, network.device).open_to_all();
        let mut settings = h3::Config::new(Side::Server);
        masque::enable(&mut settings, Side::Server);
        let identity = Identity::dev().expect("a certificate");
        let server = courser::serve("198.18.0.1:4433", identity)
            .config(settings)
            .transport(ip_transport());
        let server = server.bind().expect("a socket");
        println!("ready");
        server.service(proxy).await.is_ok()
    })
}

fn client(wishes: &[&str]) -> bool {
    let mut config = Config {
        template: template("198.18.0.1:4433").expect("a proxy"),
        trust: Trust::AnyServer,
        headers: Vec::new(),
        name: Some("courser0".to_owned()),
        wishes: Wishes::default(),
        timeout: Duration::from_secs(5),
    };
    let mut is_check = false;
    for wish in wishes {
        match wish.split_once('=') {
            Some(("--route", prefix)) => {
                config.wishes.routes.push(prefix.parse().expect("a prefix"))
            }
            Some(("--dns", server)) => config.wishes.dns.push(server.parse().expect("an address")),
            None if *wish == "--default-route" => config.wishes.default_route = true,
            None if *wish == "--check" => is_check = true,
            _ => panic!("no wish: {wish}"),
        }
    }
    runtime().block_on(async {
        if is_check {
            println!("{}", check(&config).await.expect("a plan"));
            return true;
        }
        let mut report = |event: courser_tunnel::Event| println!("{event}");
        tokio::select! {
            ended = tunnel(&config, &mut report) => {
                println!("failed: {}", ended.expect_err("a tunnel ends with a failure only"));
                false
            }
            _ = tokio::signal::ctrl_c() => true,
        }
    })
}

/// Serves uploads and downloads over TCP, and names over UDP.
fn target() -> bool {
    let listener = TcpListener::bind("[::]:7000").expect("a port");
    let names = UdpSocket::bind("[::]:53").expect("a port");
    thread::spawn(move || answer_names(&names));
    println!("ready");
    for stream in listener.incoming().flatten() {
        thread::spawn(move || {
            let _ = serve(stream);
        });
    }
    true
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut first = [0];
    stream.read_exact(&mut first)?;
    if first == *b"d" {
        return stream.write_all(&payload());
    }
    let mut received = Vec::new();
    stream.read_to_end(&mut received)?;
    stream.write_all(if received == payload() {
        b"same"
    } else {
        b"else"
    })
}

/// Answers queries of addresses of IPv4 with 192.0.2.99, and others with no record.
fn answer_names(socket: &UdpSocket) {
    let mut query = [0; 512];
    while let Ok((length, peer)) = socket.recv_from(&mut query) {
        // Behind the header: labels, a zero, type and class.
        let Some(end) = query[12..length].iter().position(|byte| *byte == 0) else {
            continue;
        };
        let question = &query[..12 + end + 5];
        let is_ipv4 = question[question.len() - 3] == 1;
        let mut answer = question.to_vec();
        answer[2..4].copy_from_slice(&[0x81, 0x80]);
        answer[6..12].copy_from_slice(&[0, u8::from(is_ipv4), 0, 0, 0, 0]);
        if is_ipv4 {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 99]);
        }
        let _ = socket.send_to(&answer, peer);
    }
}

fn payload() -> Vec<u8> {
    (0..3_000_000_u32)
        .map(|it| (it >> 8) as u8 ^ it as u8)
        .collect()
}

fn connect(address: &str) -> TcpStream {
    let ip: IpAddr = address.parse().expect("an address");
    let stream = TcpStream::connect_timeout(&SocketAddr::from((ip, 7000)), Duration::from_secs(20));
    let stream = stream.expect("a connection");
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).expect("a limit");
    stream
}

fn upload(address: &str) -> bool {
    let mut stream = connect(address);
    stream.write_all(b"u").expect("written");
    stream.write_all(&payload()).expect("written");
    stream.shutdown(std::net::Shutdown::Write).expect("the end");
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).expect("an answer");
    answer == *b"same"
}

fn download(address: &str) -> bool {
    let mut stream = connect(address);
    stream.write_all(b"d").expect("written");
    let mut received = Vec::new();
    stream.read_to_end(&mut received).expect("received");
    received == payload()
}

/// Sends up to three echo requests, and returns true once one is answered.
fn ping(address: &str) -> bool {
    let address: IpAddr = address.parse().expect("an address");
    let (domain, protocol, kind, answer, header) = match address {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8, 0, 20),
        // The system gives no header of IPv6, and writes the checksum.
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128, 129, 0),
    };
    let mut socket = Socket::new(domain, Type::RAW, Some(protocol)).expect("root");
    let wait = Some(Duration::from_millis(700));
    socket.set_read_timeout(wait).expect("a time");
    socket
        .connect(&SocketAddr::from((address, 0)).into())
        .expect("a route");
    let identifier = std::process::id().to_be_bytes();
    (1..=3).any(|sequence| {
        let mut request = [kind, 0, 0, 0, identifier[2], identifier[3], 0, sequence];
        let words = request
            .chunks(2)
            .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]));
        let sum: u32 = words.sum();
        let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
        request[2..4].copy_from_slice(&checksum.to_be_bytes());
        if socket.send(&request).is_err() {
            return false;
        }
        let mut packet = [0; 1500];
        while let Ok(len) = socket.read(&mut packet) {
            let message = packet[..len].get(header..).unwrap_or_default();
            if message.first() == Some(&answer) && message.get(4..8) == Some(&request[4..]) {
                return true;
            }
        }
        false
    })
}

fn resolve(name: &str) -> bool {
    let found = (name, 80).to_socket_addrs().expect("an answer");
    found
        .map(|it| it.ip())
        .any(|it| it == Ipv4Addr::new(192, 0, 2, 99))
}
