//! Attacks on a complete server over real sockets.

use std::convert::Infallible;
use std::time::Duration;

use courser::server::{Body, Limits, ReadRate};
use courser_adversary::{Attacker, Counts, Sockets, attacks, client_tls};
use courser_sim::identity::identity;
use http::{Request, Response};

use crate::harness::Content;

/// Runs an attack for `time` against a server with a large response.
fn attack(name: &str, limits: Limits, time: Duration) -> Counts {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("the runtime is built");
    let within = runtime.enter();
    let server = courser::serve("127.0.0.1:0", identity()).limits(limits);
    let server = server.bind().expect("a free port");
    let address = server.handle().local_addr();
    let service = tower::service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Content::large()))
    });
    runtime.spawn(server.service(service).into_future());
    drop(within);
    let plan = attacks::find(name).expect("the attack exists");
    let mut attack = (plan.make)();
    let mut attacker = Attacker::new(address, client_tls(b"h3"), [7; 32]);
    attack.start(&mut attacker);
    let local = "127.0.0.1:0".parse().expect("the address is valid");
    Sockets::bind(local)
        .and_then(|mut sockets| sockets.run(&mut attacker, &mut *attack, time))
        .expect("the sockets are bound");
    attacker.counts().clone()
}

/// Attack A88, limit K105: fifty clients that accept one byte every two seconds.
#[test]
fn drips_of_credit_are_excessive_load() {
    let mut limits = Limits::default();
    // A single byte is enough progress for this limit.
    limits.write_timeout = Some(Duration::from_secs(4));
    limits.read_rate = Some(ReadRate {
        bytes_per_second: 240,
        grace: Duration::from_secs(2),
    });
    let counts = attack("drip-credit", limits, Duration::from_secs(8));
    let excessive = counts.closes.get("H3 0x107").copied();
    assert!(excessive >= Some(50), "{counts:?}");
    assert_eq!(counts.closes.len(), 1, "{counts:?}");
}
