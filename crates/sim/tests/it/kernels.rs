//! Sockets with scripted faults, as of unusual kernels: calls fail, and datagrams are delayed, truncated or lost.
//! Each fault may cost the datagrams that it concerns and nothing else.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use courser::runtime;
use courser::{
    ClientConfig, Connection, ConnectionError, Counters, Endpoint, ErrorCause, ServerConfig,
    SocketEvent, TransportConfig,
};
use courser_sim::World;
use courser_sim::identity::{SERVER_NAME, identity};
use courser_sim::machine::{Call, Effect, Machine, Rule, When};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const LINK: &str = "50mbit,rtt=20ms,queue=2bdp";
const BYTES: usize = 30_000;
const IDLE: Duration = Duration::from_secs(20);
/// A transfer with a few lost packets, of which the last may be the last of a flight.
const COMPLETION_LIMIT: Duration = Duration::from_secs(12);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The observations of one end.
#[derive(Clone, Debug, Default)]
struct End {
    counters: Counters,
    overflow: u64,
    events: Vec<SocketEvent>,
}

impl End {
    async fn of(endpoint: &Endpoint) -> Self {
        let mut events = Vec::new();
        while let Ok(Some(event)) = runtime::timeout(Duration::ZERO, endpoint.socket_event()).await
        {
            events.push(event);
        }
        Self {
            counters: endpoint.socket_counters(),
            overflow: endpoint.receive_overflow().unwrap_or(0),
            events,
        }
    }

    fn has_reopened(&self) -> bool {
        let is_reopened = |event: &SocketEvent| matches!(event, SocketEvent::Reopened { .. });
        self.events.iter().any(is_reopened)
    }
}

/// The result of a run.
#[derive(Debug)]
struct Outcome {
    /// The time from the first packet to the answer, or the end of the connection.
    result: Result<Duration, ConnectionError>,
    /// The same for a second connection of the same endpoints.
    again: Result<Duration, ConnectionError>,
    client: End,
    server: End,
    polls: u64,
    /// Calls that the script has changed.
    changed: u64,
}

fn settings() -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        max_idle_timeout: Some(IDLE),
        ..TransportConfig::default()
    })
}

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|at| (at * 31 % 251) as u8).collect()
}

async fn echo(connection: Connection) -> Result<(), Failure> {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let data = receive.read_to_end(BYTES).await?;
        send.write_all(&data).await?;
        send.finish()?;
    }
    Ok(())
}

/// Echoes until the client closes, and returns the observations of the server.
async fn serve() -> Result<End, Failure> {
    let config = ServerConfig::with_identity(&identity())?
        .alpn(["echo"])
        .transport_config(settings());
    let endpoint = Endpoint::server(config, (SERVER, 4433).into())?;
    let accepting = endpoint.clone();
    runtime::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            runtime::spawn(async move {
                if let Ok(connection) = incoming.await {
                    let _ = echo(connection).await;
                }
            });
        }
    });
    // Longer than two connections that end with their idle timeouts.
    runtime::sleep(4 * IDLE).await;
    Ok(End::of(&endpoint).await)
}

async fn ask(endpoint: &Endpoint) -> Result<Duration, ConnectionError> {
    let begin = runtime::now();
    let config = ClientConfig::with_roots([identity().certificate()])
        .expect("the certificate is valid")
        .alpn(["echo"])
        .transport_config(settings());
    let connecting = endpoint.connect_with(config, (SERVER, 4433).into(), SERVER_NAME);
    let connection = match connecting {
        Ok(connecting) => connecting.await?,
        Err(error) => panic!("{error}"),
    };
    let exchange = async {
        let (mut send, mut receive) = connection.open_bi().await?;
        let question = pattern();
        send.write_all(&question).await?;
        send.finish()?;
        let answer = receive.read_to_end(BYTES).await?;
        assert!(answer == question, "the echo differs");
        Ok::<_, Failure>(())
    };
    let exchanged = exchange.await;
    let took = runtime::now() - begin;
    let error = runtime::timeout(Duration::ZERO, connection.closed()).await;
    connection.close(0u32.into(), b"");
    match (exchanged, error) {
        (Ok(()), _) => Ok(took),
        (Err(_), Ok(error)) => Err(error),
        (Err(error), Err(_)) => panic!("an open connection failed: {error}"),
    }
}

async fn client() -> Result<
    (
        Result<Duration, ConnectionError>,
        Result<Duration, ConnectionError>,
        End,
    ),
    Failure,
> {
    let endpoint = Endpoint::client((CLIENT, 0).into())?;
    let first = ask(&endpoint).await;
    // What the script does to the end of the first connection is over by then.
    runtime::sleep(Duration::from_secs(1)).await;
    let second = ask(&endpoint).await;
    endpoint.wait_idle().await;
    Ok((first, second, End::of(&endpoint).await))
}

/// The machine whose sockets follow the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Client,
    Server,
}

fn run(side: Side, rules: &[Rule]) -> Outcome {
    let mut world = World::new(7);
    let near = world.machine("client", CLIENT);
    let far = world.machine("server", SERVER);
    let scripted = match side {
        Side::Client => &near,
        Side::Server => &far,
    };
    scripted.set_socket_script(rules.iter().cloned());
    world.join_machines(
        &near,
        &far,
        &LINK.parse().expect("the link specification is valid"),
    );
    let serving = far.spawn(serve());
    let done = match world.run_until_done(near.spawn(client())) {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => panic!("{side:?}, {rules:?}: {error}"),
        Err(error) => panic!("{side:?}, {rules:?}: {error}"),
    };
    let polls = [&near, &far].map(Machine::polls).iter().sum();
    let server = match world.run_until_done(serving) {
        Ok(Ok(end)) => end,
        other => panic!("{side:?}, {rules:?}: {other:?}"),
    };
    let (result, again, client) = done;
    Outcome {
        result,
        again,
        client,
        server,
        polls,
        changed: scripted.scripted_calls(),
    }
}

impl Outcome {
    fn of(&self, side: Side) -> &End {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Requires that both connections complete, without a busy loop.
    fn assert_both_completed(&self, what: &dyn std::fmt::Debug) {
        for result in [&self.result, &self.again] {
            assert!(
                result.as_ref().is_ok_and(|took| *took < COMPLETION_LIMIT),
                "{what:?}: {self:?}"
            );
        }
        assert!(self.polls < 20_000, "{what:?}: {} polls", self.polls);
    }
}

const BOTH: [Side; 2] = [Side::Client, Side::Server];

/// The codes that send and receive calls of Linux may return, by their class and then by their number: from
/// the socket layer, from routes, ICMP, firewalls, devices, tunnels, security modules and signals.
#[cfg(target_os = "linux")]
const CODES: [(i32, ErrorCause); 62] = {
    use ErrorCause::*;
    [
        (1, NotPermitted),
        (2, Other),
        (4, Other), // EINTR, which is not counted
        (5, Device),
        (6, Unreachable),
        (7, Other),
        (9, Closed),
        (12, NoBuffers),
        (13, NotPermitted),
        (14, Closed),
        (16, Other),
        (17, Other),
        (19, Unreachable),
        (20, Other),
        (22, Invalid),
        (23, NoBuffers),
        (24, NoBuffers),
        (25, Other),
        (28, Other),
        (32, Disconnected),
        (33, Other),
        (34, Other),
        (38, Invalid),
        (40, Other),
        (52, Other),
        (61, Other),
        (62, Other),
        (64, Unreachable),
        (70, Other),
        (71, Refused),
        (72, Other),
        (74, Other),
        (75, Other),
        (84, Other),
        (85, Other),
        (88, Closed),
        (89, Unreachable),
        (90, TooLarge),
        (91, Other),
        (92, Refused),
        (93, Other),
        (94, Other),
        (95, Invalid),
        (96, Other),
        (97, Invalid),
        (98, Other),
        (99, NoAddress),
        (100, Unreachable),
        (101, Unreachable),
        (102, Refused),
        (103, Refused),
        (104, Refused),
        (105, NoBuffers),
        (106, Other),
        (107, Disconnected),
        (108, Disconnected),
        (110, Refused),
        (111, Refused),
        (112, Unreachable),
        (113, Unreachable),
        (126, Unreachable),
        (127, Unreachable),
    ]
};

/// Returns true for errors that are counted without an event: those of MTU probes, and replies of peers and routers.
#[cfg(target_os = "linux")]
fn is_routine(call: Call, cause: ErrorCause) -> bool {
    use ErrorCause::*;
    match call {
        Call::Receive => !matches!(cause, NoBuffers | Disconnected | Closed | Other),
        _ => matches!(cause, TooLarge | Refused),
    }
}

#[cfg(target_os = "linux")]
const TIMES: [When; 3] = [When::First(1), When::Every(3), When::Window(2, 3)];

/// Fails calls with every code: the first one, every third one and some in the middle, at either end. In each
/// case the connection continues, the failures are counted by their cause, and an event names them. A socket
/// whose descriptor is lost is reopened.
#[cfg(target_os = "linux")]
fn fail_with_every_code(call: Call, times: &[When]) {
    for (code, cause) in CODES {
        for &when in times {
            for side in BOTH {
                let rule = Rule::new(call, when, Effect::Code(code)).of_first_socket();
                let what = (side, call, when, code);
                let outcome = run(side, &[rule]);
                outcome.assert_both_completed(&what);
                let end = outcome.of(side);
                let errors = match call {
                    Call::Receive => end.counters.receive_errors,
                    _ => end.counters.send_errors,
                };
                if outcome.changed == 0 {
                    // Not every end sends batches that early.
                    assert!(call == Call::SendBatch, "{what:?}: {outcome:?}");
                    continue;
                }
                if code != 4 && !is_routine(call, cause) {
                    let has_event = end.events.iter().any(|event| {
                        matches!(event, SocketEvent::Failed { cause: told, .. } if *told == cause)
                    });
                    assert!(has_event, "{what:?}: {:?}", end.events);
                }
                if code != 4 {
                    assert_eq!(errors.of(cause), errors.total(), "{what:?}: {errors:?}");
                    // Some may follow after they were read.
                    let failed = 1..=outcome.changed;
                    assert!(failed.contains(&errors.total()), "{what:?}: {errors:?}");
                }
                let is_lost = cause == ErrorCause::Closed;
                assert_eq!(end.has_reopened(), is_lost, "{what:?}: {:?}", end.events);
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_code_of_a_failed_send_ends_a_connection() {
    fail_with_every_code(Call::Send, &TIMES);
}

#[cfg(target_os = "linux")]
#[test]
fn no_code_of_a_failed_batch_ends_a_connection() {
    fail_with_every_code(Call::SendBatch, &TIMES[1..2]);
}

#[cfg(target_os = "linux")]
#[test]
fn no_code_of_a_failed_single_datagram_ends_a_connection() {
    fail_with_every_code(Call::SendOne, &TIMES[1..2]);
}

#[cfg(target_os = "linux")]
#[test]
fn no_code_of_a_failed_receive_call_ends_a_connection() {
    fail_with_every_code(Call::Receive, &TIMES);
}

/// EBADF, as each system names it.
const CLOSED: Effect = Effect::Code(if cfg!(windows) { 6 } else { 9 });
const BROKEN: Effect = Effect::Kind(std::io::ErrorKind::BrokenPipe);

/// A socket on which every call fails from some point on, with an error that may be the socket's own, is opened
/// again after two seconds, and the connection continues on it.
#[test]
fn broken_socket_is_reopened_and_connections_continue() {
    use std::io::ErrorKind;
    let not_connected = Effect::Kind(ErrorKind::NotConnected);
    for (call, effect) in [
        (Call::Send, BROKEN),
        (Call::Send, Effect::Other),
        (Call::Receive, not_connected),
        (Call::Receive, Effect::Other),
        (Call::Receive, Effect::Kind(ErrorKind::ConnectionRefused)),
        (Call::Receive, Effect::Kind(ErrorKind::InvalidInput)),
        (Call::Receive, Effect::Kind(ErrorKind::PermissionDenied)),
    ] {
        for side in BOTH {
            for count in [0, 3, 6] {
                let rule = Rule::new(call, When::After(count), effect).of_first_socket();
                let what = (side, call, effect, count);
                let outcome = run(side, &[rule]);
                outcome.assert_both_completed(&what);
                assert!(outcome.of(side).has_reopened(), "{what:?}: {outcome:?}");
                let took = outcome.result.expect("the run succeeds");
                assert!(
                    took > Duration::from_secs(2),
                    "{what:?}: the socket is not reopened at once"
                );
            }
        }
    }
}

/// A socket whose descriptor is gone is opened at once.
#[test]
fn lost_socket_is_reopened_at_once() {
    for call in [Call::Send, Call::Receive] {
        for side in BOTH {
            for count in [0, 3, 6] {
                let rule = Rule::new(call, When::After(count), CLOSED).of_first_socket();
                let outcome = run(side, &[rule]);
                let what = (side, call, count);
                outcome.assert_both_completed(&what);
                assert!(outcome.of(side).has_reopened(), "{what:?}: {outcome:?}");
                let took = outcome.result.expect("the run succeeds");
                assert!(took < Duration::from_secs(2), "{what:?}: {took:?}");
            }
        }
    }
}

fn is_timeout(result: &Result<Duration, ConnectionError>) -> bool {
    result.as_ref().is_err_and(ConnectionError::is_timeout)
}

/// A network that stays down ends the connections with their idle timeouts. The socket is not replaced, and
/// the endpoint does not run in a busy loop.
#[test]
fn network_that_stays_down_ends_connections_with_their_timeouts() {
    for kind in [
        std::io::ErrorKind::NetworkUnreachable,
        std::io::ErrorKind::PermissionDenied,
        std::io::ErrorKind::AddrNotAvailable,
        std::io::ErrorKind::OutOfMemory,
    ] {
        for side in BOTH {
            let rule = Rule::new(Call::Send, When::After(4), Effect::Kind(kind));
            let outcome = run(side, &[rule]);
            for result in [&outcome.result, &outcome.again] {
                assert!(is_timeout(result), "{side:?} {kind:?}: {result:?}");
            }
            let end = outcome.of(side);
            assert!(!end.has_reopened(), "{side:?} {kind:?}: {end:?}");
            assert!(outcome.polls < 5000, "{side:?} {kind:?}: {}", outcome.polls);
        }
    }
}

/// If no socket of the system works, the endpoint opens another one ever less often.
#[test]
fn failing_sockets_are_replaced_ever_less_often() {
    for effect in [BROKEN, Effect::Other] {
        for call in [Call::Send, Call::Receive] {
            let outcome = run(Side::Client, &[Rule::new(call, When::Always, effect)]);
            for result in [&outcome.result, &outcome.again] {
                assert!(is_timeout(result), "{call:?} {effect:?}: {result:?}");
            }
            assert!(outcome.client.has_reopened(), "{call:?} {effect:?}");
            assert!(
                outcome.polls < 5000,
                "{call:?} {effect:?}: {}",
                outcome.polls
            );
        }
    }
}

/// A lost socket that the system does not open again ends its endpoint with an error that names both causes.
#[test]
fn lost_socket_that_cannot_be_reopened_ends_the_endpoint() {
    let bind = Rule::new(
        Call::Bind,
        When::After(1),
        Effect::Kind(std::io::ErrorKind::PermissionDenied),
    );
    let lost = Rule::new(Call::Send, When::After(3), CLOSED);
    let mut world = World::new(3);
    let near = world.machine("client", CLIENT);
    let far = world.machine("server", SERVER);
    near.set_socket_script([bind, lost]);
    world.join_machines(
        &near,
        &far,
        &LINK.parse().expect("the link specification is valid"),
    );
    let _serving = far.spawn(serve());
    let done = near.spawn(async {
        let endpoint = Endpoint::client((CLIENT, 0).into()).expect("the first socket opens");
        let error = ask(&endpoint).await.expect_err("the socket is lost");
        let next = endpoint.accept().await.is_none();
        let mut events = Vec::new();
        while let Some(event) = endpoint.socket_event().await {
            events.push(event.to_string());
        }
        (error.to_string(), next, events)
    });
    let (error, is_over, events) = match world.run_until_done(done) {
        Ok(done) => done,
        Err(error) => panic!("{error}"),
    };
    assert!(
        error.contains("the endpoint has stopped: the socket failed"),
        "{error}"
    );
    assert!(error.contains("permission denied"), "{error}");
    assert!(is_over);
    let (last, others) = events
        .split_last()
        .expect("the endpoint reports several events");
    assert!(last.contains("has stopped"), "{events:?}");
    let tries = others.iter().filter(|text| text.contains("cannot open"));
    assert_eq!(
        tries.count(),
        1,
        "only the last attempt is reported: {events:?}"
    );
}

/// ECN marks that the local system refuses cost no time, and are not set again.
#[test]
fn refused_marks_cost_neither_time_nor_datagrams() {
    let took = |outcome: &Outcome| *outcome.result.as_ref().expect("the run succeeds");
    let usual = run(Side::Client, &[]);
    for side in BOTH {
        let rule = Rule::new(Call::SendMarked, When::Always, Effect::RefuseMarks);
        let outcome = run(side, &[rule]);
        // Acknowledgements without counts of marks are shorter.
        let difference = took(&outcome).abs_diff(took(&usual));
        assert!(
            difference < Duration::from_millis(1),
            "{side:?}: {outcome:?}"
        );
        // One for each packet number space of each connection.
        assert!(
            (1..=6).contains(&outcome.changed),
            "{side:?}: {}",
            outcome.changed
        );
        assert_eq!(outcome.of(side).counters.send_errors.total(), 0);
    }
}

/// Unusual behaviour without errors: datagrams that vanish, arrive late or reordered, batches that are cut to the
/// size of one packet, receive calls that return nothing, and sends that accept a part of a batch.
#[test]
fn unusual_kernel_behaviour_costs_only_datagrams() {
    let rules = [
        Rule::new(Call::SendBatch, When::First(2), Effect::Lose),
        Rule::new(Call::Send, When::Every(5), Effect::Lose),
        Rule::new(Call::Send, When::Every(3), Effect::Hold(2)),
        Rule::new(Call::Send, When::Always, Effect::Take(1)),
        Rule::new(Call::Receive, When::Every(5), Effect::Lose),
        Rule::new(Call::Receive, When::Every(3), Effect::Hold(2)),
        Rule::new(Call::Receive, When::Always, Effect::Cut(1500)),
        Rule::new(Call::Receive, When::Every(3), Effect::Truncate(1500)),
        Rule::new(Call::Receive, When::Every(2), Effect::Empty),
        Rule::new(
            Call::Send,
            When::Every(2),
            Effect::Kind(std::io::ErrorKind::WouldBlock),
        ),
        Rule::new(
            Call::Receive,
            When::Every(2),
            Effect::Kind(std::io::ErrorKind::WouldBlock),
        ),
    ];
    for rule in rules {
        for side in BOTH {
            let outcome = run(side, std::slice::from_ref(&rule));
            outcome.assert_both_completed(&(side, &rule));
            assert!(outcome.changed > 0, "{side:?}, {rule:?}");
            let end = outcome.of(side);
            assert!(!end.has_reopened(), "{side:?}, {rule:?}: {end:?}");
        }
    }
}

/// The kernel counts what it drops, and the endpoint reports the number.
#[test]
fn drops_of_the_kernel_are_reported() {
    let rule = Rule::new(Call::Receive, When::Window(3, 4), Effect::Lose);
    for side in BOTH {
        let outcome = run(side, std::slice::from_ref(&rule));
        outcome.assert_both_completed(&side);
        assert!(
            (1..=4).contains(&outcome.of(side).overflow),
            "{side:?}: {outcome:?}"
        );
    }
}

/// A full socket whose notifications fail, for example because the system lacks descriptors, is retried ten times
/// a second. Neither the batch nor the endpoint is lost.
#[test]
fn socket_without_notifications_is_retried() {
    let full = Effect::Kind(std::io::ErrorKind::WouldBlock);
    for effect in [Effect::Code(24), Effect::Other, BROKEN] {
        for side in BOTH {
            let rules = [
                Rule::new(Call::Send, When::Window(1, 4), full),
                Rule::new(Call::Writable, When::Always, effect),
            ];
            let outcome = run(side, &rules);
            outcome.assert_both_completed(&(side, effect));
            assert_eq!(
                outcome.of(side).counters.send_errors.total(),
                0,
                "nothing is lost"
            );
        }
    }
}

/// A hello of two datagrams of which the kernel loses the second, and all probes for two seconds. What is left in
/// flight then are acknowledgements with padding, which the peer does not acknowledge: they must not hold the rest back.
#[test]
fn handshake_continues_after_seconds_of_lost_probes() {
    for lost in 1..8 {
        let rules = [
            Rule::new(Call::Send, When::First(1), Effect::Take(1)),
            Rule::new(Call::Send, When::Window(0, lost), Effect::Lose),
        ];
        run(Side::Client, &rules).assert_both_completed(&lost);
    }
}
