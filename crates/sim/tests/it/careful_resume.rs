//! Careful Resume: a connection starts with the window that an earlier one to the same address had
//! (RFC 9959).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use courser_base::Time;
use courser_recovery::{Algorithm, SavedPath};
use courser_transport::PathMemory;

use crate::common::lab::*;
use crate::common::{CLIENT, SERVER, Scene, Setup};

/// The path of these tests: 50 Mbit/s over 200 ms hold 1.25 MB.
const LINK: &str = "50mbit,rtt=200ms,queue=1bdp";
const LEN: u64 = 2_000_000;
const LIMIT: Duration = Duration::from_secs(60);

/// Returns settings whose ends share a path memory.
fn with_memory(link: &str, algorithm: Algorithm, memory: &Arc<PathMemory>) -> Setup {
    controlled(link, algorithm).both(|config| config.path_memory = Some(Arc::clone(memory)))
}

/// Returns a memory with an entry for the client and for the server.
fn memory_with_client(window: u64, min_rtt: Duration) -> Arc<PathMemory> {
    let memory = Arc::new(PathMemory::new());
    let path = SavedPath { window, min_rtt };
    memory.put(Time::ZERO, CLIENT.ip(), path);
    memory
}

fn download(link: &str, algorithm: Algorithm, memory: &Arc<PathMemory>) -> (Scene, Duration) {
    transfer_down(1, with_memory(link, algorithm, memory), LEN, LIMIT)
}

/// Downloads without a memory of earlier connections.
fn plain(link: &str, algorithm: Algorithm) -> (Scene, Duration) {
    download(link, algorithm, &Arc::new(PathMemory::new()))
}

/// Runs until the connections have ended and saved their path.
fn end(scene: &mut Scene) {
    scene.run_for(Duration::from_secs(3));
}

#[test]
fn second_download_over_the_same_path_is_faster() {
    for &algorithm in Algorithm::ALL {
        let memory = Arc::new(PathMemory::new());
        let long = with_memory(LINK, algorithm, &memory);
        let (mut scene, _) = transfer_down(1, long, 20_000_000, LIMIT);
        end(&mut scene);
        let saved = memory
            .take(Time::ZERO, CLIENT.ip())
            .expect("the path is saved");
        assert!((900_000..1_500_000).contains(&saved.window), "{saved:?}");
        memory.put(Time::ZERO, CLIENT.ip(), saved);

        let (_, cold) = plain(LINK, algorithm);
        let (scene, warm) = download(LINK, algorithm, &memory);
        // Slow start takes seven round trips, and the jump saves two to three of them.
        assert!(
            warm < cold.mul_f64(0.8),
            "{algorithm:?}: {warm:?}, {cold:?}"
        );
        assert_eq!(back(&scene).dropped.total(), 0, "{algorithm:?}");
    }
}

#[test]
fn path_that_has_become_narrower_loses_less_than_the_jump() {
    let narrow = "5mbit,rtt=200ms,queue=1bdp";
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr] {
        let (_, cold) = plain(narrow, algorithm);
        let (scene, warm) = download(narrow, algorithm, &memory_with_client(1_200_000, RTT));
        let lost = back(&scene).dropped.total() * 1500;
        assert!(lost > 0, "{algorithm:?}: the jump was too far");
        assert!(lost < 600_000, "{algorithm:?}: {lost} bytes lost");
        assert!(
            warm < cold.mul_f64(1.5),
            "{algorithm:?}: {warm:?}, {cold:?}"
        );
    }
}

#[test]
fn saved_path_with_another_round_trip_time_is_not_used() {
    for saved_rtt in [Duration::from_millis(15), Duration::from_millis(450)] {
        let (cold_scene, cold) = plain(LINK, Algorithm::Cubic);
        let (scene, time) = download(
            LINK,
            Algorithm::Cubic,
            &memory_with_client(1_200_000, saved_rtt),
        );
        assert_eq!(time, cold, "{saved_rtt:?}");
        assert_eq!(back(&scene).dropped, back(&cold_scene).dropped);
    }
}

#[test]
fn short_connection_saves_no_path() {
    let memory = Arc::new(PathMemory::new());
    let short = with_memory(LINK, Algorithm::Cubic, &memory);
    let (mut scene, _) = transfer_down(1, short, 20_000, LIMIT);
    end(&mut scene);
    let peers: [IpAddr; 2] = [CLIENT.ip(), SERVER.ip()];
    assert_eq!(
        peers.map(|peer| memory.take(Time::ZERO, peer)),
        [None, None]
    );
}

const RTT: Duration = Duration::from_millis(200);
