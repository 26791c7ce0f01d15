//! Tests that unpredictable values come from the endpoint's generator, which its seed determines.
//! RFC 9000 §5.1, §7.2, §8.1.4, §8.2.1, §10.3, RFC 9001 §9.7.

use std::collections::HashSet;
use std::sync::Mutex;

use courser_wire::frame::{Frame, PathChallenge};

use super::*;
use crate::config::{RetryPolicy, TokenStore};
use crate::testing::eye::{Eye, Seen};
use crate::testing::{Setup, server_address};

/// Keeps the tokens of NEW_TOKEN frames.
#[derive(Default)]
struct Kept(Mutex<Vec<Bytes>>);

impl TokenStore for Kept {
    fn put(&self, _: &str, token: Bytes) {
        self.0.lock().expect("not poisoned").push(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        None
    }
}

/// Returns every value that an observer or the peer must not be able to guess, with its kind. All
/// connections do the same; they differ in the seeds of the two endpoints.
fn secrets_of(seed: u8) -> Vec<(&'static str, Vec<u8>)> {
    let mut setup = Setup {
        seed,
        ..Setup::default()
    };
    setup.server.retry = RetryPolicy::Always;
    let (setup, eye): (Setup, Eye) = setup.with_eye();
    let mut pair = Pair::with(setup);
    let tokens = Arc::new(Kept::default());
    pair.client_config.tokens = Some(Arc::clone(&tokens) as Arc<dyn TokenStore>);
    pair.connect();
    // The server asks at a new address, and nothing answers.
    pair.client.address.set_port(50_001);
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.run_for(Duration::from_secs(1));
    let client = eye.client_sent(&pair);
    let server = eye.server_sent(&pair);
    let mut found = vec![
        ("first destination ID", client[0].destination.to_vec()),
        ("client's ID", client[0].source.to_vec()),
        ("server's ID", server[0].source.to_vec()),
    ];
    let with_token = |seen: &&Seen| !seen.token.is_empty();
    let retried = client.iter().find(with_token).expect("after the Retry");
    found.push(("token of the Retry", retried.token.clone()));
    found.push(("ID of the Retry", retried.destination.to_vec()));
    let tokens = tokens.0.lock().expect("not poisoned");
    assert!(!tokens.is_empty() && tokens.iter().all(|token| !token.is_empty()));
    found.extend(tokens.iter().map(|token| ("NEW_TOKEN", token.to_vec())));
    for frame in client.iter().chain(&server).flat_map(Seen::frames) {
        match frame {
            Frame::NewConnectionId(given) => {
                found.push(("given ID", given.id.to_vec()));
                found.push(("reset token", given.reset_token.to_vec()));
            }
            Frame::PathChallenge(PathChallenge { data }) => {
                found.push(("challenge", data.to_vec()))
            }
            _ => {}
        }
    }
    found
}

#[test]
fn ids_tokens_and_challenges_depend_on_the_seed_alone() {
    let mut all = HashSet::new();
    for seed in 0..12 {
        let found = secrets_of(seed);
        let kinds: HashSet<_> = found.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds.len(), 9, "{kinds:?}");
        for (kind, value) in found.into_iter().collect::<HashSet<_>>() {
            assert!(value.len() >= 8, "{kind}: {value:x?}");
            assert!(all.insert(value), "{kind} of seed {seed} was seen before");
        }
    }
}
