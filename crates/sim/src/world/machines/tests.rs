use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use courser::runtime::{now, sleep, spawn};
use courser::{ClientConfig, Endpoint, ServerConfig};

use super::*;
use crate::identity::identity;
use crate::world::LinkId;

fn pair(seed: u64, spec: &str) -> (World, Machine, Machine) {
    let mut world = World::new(seed);
    let client = world.machine("client", [10, 0, 0, 1]);
    let server = world.machine("server", [10, 0, 0, 2]);
    let spec: DuplexSpec = spec.parse().expect("the link specification is valid");
    world.join_machines(&client, &server, &spec);
    (world, client, server)
}

/// Echoes everything on the streams of one connection.
async fn serve() {
    let config = ServerConfig::with_identity(&identity()).expect("the configuration is valid");
    let address = "10.0.0.2:4433".parse().expect("the address is valid");
    let endpoint = Endpoint::server(config.alpn(["test"]), address).expect("the port is free");
    let connection = endpoint.accept().await.expect("the endpoint is open").await;
    let connection = connection.expect("the handshake completes");
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        spawn(async move {
            let all = receive
                .read_to_end(100_000)
                .await
                .expect("the request is received");
            send.write_all(&all)
                .await
                .expect("the peer reads the stream");
            send.finish().expect("the stream is not finished");
        });
    }
}

async fn ask() -> Duration {
    let (time, _) = ask_and_return_mtu().await;
    time
}

/// The duration, and the size of datagrams at the end.
async fn ask_and_return_mtu() -> (Duration, u16) {
    let begin = now();
    let address = "10.0.0.1:0".parse().expect("the address is valid");
    let endpoint = Endpoint::client(address).expect("the port is free");
    let config =
        ClientConfig::with_roots([identity().certificate()]).expect("the configuration is valid");
    let server = "10.0.0.2:4433".parse().expect("the address is valid");
    let connecting = endpoint.connect_with(config.alpn(["test"]), server, "localhost");
    let connection = connecting
        .expect("the endpoint has a configuration")
        .await
        .expect("the handshake completes");
    let (mut send, mut receive) = connection.open_bi().await.expect("the endpoint is open");
    let question = vec![7; 50_000];
    send.write_all(&question)
        .await
        .expect("the peer reads the stream");
    send.finish().expect("the stream is not finished");
    let answer = receive
        .read_to_end(100_000)
        .await
        .expect("the answer is received");
    assert_eq!(answer, question);
    (now() - begin, connection.stats().path.mtu)
}

/// Sockets of the async API receive ICMP reports too.
#[test]
fn connection_adopts_the_mtu_of_a_packet_too_big_report() {
    let link = "20ms | 5ms,mtu=1400/icmp;20ms";
    let (mut world, client, server) = pair(1, link);
    server.spawn(serve());
    let task = client.spawn(ask_and_return_mtu());
    let (_, mtu) = world.run_until_done(task).expect("the task ends");
    assert_eq!(mtu, 1372);
    assert_eq!(world.link(LinkId(0)).stats().answered, 1);
}

#[test]
fn equal_seeds_give_equal_traces_and_others_differ() {
    let run = |seed| {
        let (mut world, client, server) = pair(seed, "20ms,3%");
        server.spawn(serve());
        let time = world
            .run_until_done(client.spawn(ask()))
            .expect("the task ends");
        world
            .run_for(Duration::from_secs(60))
            .expect("the world does not stall");
        let prints = (client.fingerprint(), server.fingerprint());
        (time, world.digest(), prints)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn answer_without_loss_takes_the_expected_round_trips() {
    let (mut world, client, server) = pair(1, "20ms");
    server.spawn(serve());
    let time = world
        .run_until_done(client.spawn(ask()))
        .expect("the task ends");
    // One for the handshake, and three windows in slow start each way for 50 000 bytes.
    let rtt = Duration::from_millis(40);
    assert!(time >= 6 * rtt && time <= 7 * rtt, "{time:?}");
}

#[test]
fn deadlock_report_names_tasks_and_seed() {
    let (mut world, client, server) = pair(0x77, "20ms");
    server.spawn(async {
        sleep(Duration::from_secs(2)).await;
        pending::<()>().await;
    });
    let error = world
        .run_until_done(client.spawn(pending::<()>()))
        .expect_err("the task cannot end");
    assert!(error.is_deadlock());
    assert_eq!(error.last_event(), Time::ZERO + Duration::from_secs(2));
    assert_eq!(error.pending().len(), 2);
    let text = error.to_string();
    for part in [
        "no event is left after 2s",
        "World::new(0x77)",
        "client: task 1 (",
        "machines/tests.rs:",
        "since 2s",
    ] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn time_limit_is_not_a_deadlock() {
    let (mut world, client, _server) = pair(1, "20ms");
    let busy = client.spawn(async {
        loop {
            sleep(Duration::from_secs(1)).await;
        }
    });
    let limit = Duration::from_secs(10);
    let error = world
        .run_until_done_within::<()>(limit, busy)
        .expect_err("the task never ends");
    assert!(error.is_timeout() && !error.is_deadlock());
    assert_eq!(world.now(), Time::ZERO + limit);
}

#[test]
fn aborted_task_reports_it() {
    let (mut world, client, _server) = pair(1, "20ms");
    let handle = client.spawn(pending::<()>());
    handle.abort();
    let error = world
        .run_until_done(handle)
        .expect_err("the task was aborted");
    assert!(error.to_string().contains("cancelled"), "{error}");
}

#[test]
fn panic_names_machine_and_the_seed_of_the_world() {
    let (mut world, client, server) = pair(0x5eed, "20ms");
    server.spawn(async {
        sleep(Duration::from_millis(3)).await;
        panic!("out of memory");
    });
    let run = || world.run_until_done(client.spawn(pending::<()>()));
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("the task panics");
    let text = payload
        .downcast_ref::<String>()
        .expect("the panic has a message");
    for part in [
        "machine server at 3ms",
        "World::new(0x5eed)",
        "out of memory",
    ] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn tasks_of_two_machines_share_a_channel() {
    let (mut world, client, server) = pair(1, "20ms");
    let (sender, receiver) = tokio::sync::oneshot::channel();
    server.spawn(async move {
        sleep(Duration::from_secs(5)).await;
        sender.send("now").expect("the receiver exists");
    });
    let waiting = client.spawn(async move { (receiver.await, now()) });
    let deadline = server.enter(now) + Duration::from_secs(5);
    let (word, at) = world.run_until_done(waiting).expect("the task ends");
    assert_eq!((word, at), (Ok("now"), deadline));
}

#[test]
fn task_spawned_between_runs_starts_at_the_current_time() {
    let (mut world, client, _server) = pair(1, "20ms");
    world
        .run_for(Duration::from_secs(7))
        .expect("the world does not stall");
    let begin = world
        .run_until_done(client.spawn(async { now() }))
        .expect("the task ends");
    world
        .run_for(Duration::from_secs(1))
        .expect("the world does not stall");
    let later = world
        .run_until_done(client.spawn(async { now() }))
        .expect("the task ends");
    assert_eq!(later - begin, Duration::from_secs(1));
    assert_eq!(client.time(), Time::ZERO + Duration::from_secs(8));
}
