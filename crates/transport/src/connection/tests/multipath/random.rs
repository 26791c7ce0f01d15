//! Paths that are opened, closed, cut and mended at random, during transfers both ways.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;
use crate::rng::Rng;

const SOCKETS: u32 = 3;

fn address(socket: u32) -> SocketAddr {
    match socket {
        0 => client_address(),
        _ => SocketAddr::from(([10, 0, 1, socket as u8], 50_777)),
    }
}

struct Run {
    pair: Pair,
    rng: Rng,
    dead: Arc<Mutex<BTreeSet<SocketAddr>>>,
}

impl Run {
    fn new(seed: u8) -> Self {
        let config = TransportConfig {
            max_paths: 4,
            ..steady()
        };
        let mut server = ServerConfig::new(server_tls(&[b"test"]));
        server.transport = Arc::new(config.clone());
        let mut pair = Pair::with(Setup {
            seed,
            client: config,
            server,
            ..Setup::default()
        });
        pair.client.sockets = (1..=SOCKETS).map(address).collect();
        pair.connect();
        pair.link.rate = Some(1_000_000);
        pair.link.queue = Some(60_000);
        pair.link.loss = u32::from(seed % 3) * 10;
        let dead = Arc::new(Mutex::new(BTreeSet::new()));
        let cut = Arc::clone(&dead);
        pair.link.filter = Some(Box::new(move |_, datagram| {
            let dead = cut.lock().expect("one thread");
            !dead.contains(&datagram.from) && !dead.contains(&datagram.to)
        }));
        Self {
            pair,
            rng: Rng::new([seed; 32]),
            dead,
        }
    }

    fn pick(&mut self, below: u64) -> u32 {
        u32::try_from(self.rng.below(below)).expect("small")
    }

    fn step(&mut self) {
        let now = self.pair.now;
        let operation = self.pick(8);
        let is_client = self.pick(2) == 0;
        let path = PathId::new(self.pick(8));
        let socket = self.pick(u64::from(SOCKETS) + 1);
        let new = NewPath {
            socket: SocketId(socket),
            ..second()
        };
        let end = if is_client {
            &mut self.pair.client
        } else {
            &mut self.pair.server
        };
        let mut paths = end.connection().several_paths();
        match operation {
            0 | 1 => {
                let _ = paths.open(now, &new);
            }
            2 => {
                paths.close(now, path, TransportErrorCode::APPLICATION_ABANDON_PATH);
            }
            3 => {
                paths.set_status(path, PathPreference::Backup);
            }
            4 => {
                paths.set_status(path, PathPreference::Available);
            }
            5 => {
                let mut dead = self.dead.lock().expect("one thread");
                // One link always works.
                if dead.len() < SOCKETS as usize {
                    dead.insert(address(socket));
                }
            }
            6 => {
                self.dead
                    .lock()
                    .expect("one thread")
                    .remove(&address(socket));
            }
            _ => {
                let _ = end.connection().initiate_key_update(now);
            }
        }
        end.touch();
    }
}

#[test]
fn transfers_survive_whatever_happens_to_paths() {
    for seed in 0..24 {
        let mut run = Run::new(seed);
        let mut up = Transfer::up(&mut run.pair, 2_000_000);
        let mut down = Transfer::down(&mut run.pair, 2_000_000);
        for _ in 0..80 {
            run.step();
            let pause = Duration::from_millis(u64::from(run.pick(300)));
            let end = run.pair.now + pause;
            while run.pair.now < end {
                up.step(&mut run.pair);
                down.step(&mut run.pair);
                run.pair
                    .run_for(Duration::from_millis(5).min(end - run.pair.now));
            }
            for end in [&mut run.pair.client, &mut run.pair.server] {
                let list = end.connection().several_paths().list();
                assert!(list.len() <= 8, "seed {seed}: {list:?}");
                let lost = end
                    .events
                    .iter()
                    .find(|event| matches!(event, Event::Lost(_)));
                assert_eq!(lost, None, "seed {seed}");
            }
        }
        run.dead.lock().expect("one thread").clear();
        let limit = Duration::from_secs(60);
        assert!(up.finish(&mut run.pair, limit).is_some(), "seed {seed}, up");
        assert!(
            down.finish(&mut run.pair, limit).is_some(),
            "seed {seed}, down"
        );
    }
}
