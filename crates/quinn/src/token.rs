//! Tokens with which a client validates its address. RFC 9000 §8.1.3.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use courser_quic as quic;

use crate::TimeSource;

/// A store for the tokens of a client.
///
/// The names of servers have the port if it is not 443, as in `localhost:4433`: unlike quinn's they distinguish the
/// servers of one host (RFC 9000 §8.1.3).
pub trait TokenStore: Send + Sync {
    /// Stores a token that the server of this name has sent.
    fn insert(&self, server_name: &str, token: Bytes);

    /// Takes a token out of the store. None must be used twice.
    fn take(&self, server_name: &str) -> Option<Bytes>;
}

/// A store that keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoneTokenStore;

impl TokenStore for NoneTokenStore {
    fn insert(&self, _: &str, _: Bytes) {}

    fn take(&self, _: &str) -> Option<Bytes> {
        None
    }
}

/// A store in memory, for the most recent servers.
#[derive(Debug)]
pub struct TokenMemoryCache {
    max_names: usize,
    max_tokens: usize,
    state: Mutex<Tokens>,
}

#[derive(Debug, Default)]
struct Tokens {
    by_name: HashMap<String, VecDeque<Bytes>>,
    /// The names, the one that was stored for last at the end.
    recent: VecDeque<String>,
}

impl Default for TokenMemoryCache {
    /// Creates a store for 256 servers with 2 tokens each.
    fn default() -> Self {
        Self::new(256, 2)
    }
}

impl TokenMemoryCache {
    /// Creates a store for so many servers with so many tokens each.
    pub fn new(max_server_names: u32, max_tokens_per_server: usize) -> Self {
        Self {
            max_names: max_server_names as usize,
            max_tokens: max_tokens_per_server,
            state: Mutex::default(),
        }
    }
}

impl TokenStore for TokenMemoryCache {
    fn insert(&self, server_name: &str, token: Bytes) {
        if self.max_names == 0 || self.max_tokens == 0 {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.recent.retain(|name| name != server_name);
        state.recent.push_back(server_name.to_owned());
        if state.recent.len() > self.max_names
            && let Some(oldest) = state.recent.pop_front()
        {
            state.by_name.remove(&oldest);
        }
        let tokens = state.by_name.entry(server_name.to_owned()).or_default();
        if tokens.len() >= self.max_tokens {
            tokens.pop_front();
        }
        tokens.push_back(token);
    }

    fn take(&self, server_name: &str) -> Option<Bytes> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = state.by_name.get_mut(server_name)?;
        let token = tokens.pop_back();
        if tokens.is_empty() {
            state.by_name.remove(server_name);
            state.recent.retain(|name| name != server_name);
        }
        token
    }
}

/// Returns a store for courser.
pub(crate) fn adapted(store: Arc<dyn TokenStore>) -> Arc<dyn quic::TokenStore> {
    Arc::new(Adapted(store))
}

struct Adapted(Arc<dyn TokenStore>);

impl quic::TokenStore for Adapted {
    fn put(&self, server_name: &str, token: Bytes) {
        self.0.insert(server_name, token);
    }

    fn take(&self, server_name: &str) -> Option<Bytes> {
        self.0.take(server_name)
    }
}

/// A log of the tokens that clients have used.
pub trait TokenLog: Send + Sync {
    /// Records a token.
    ///
    /// # Errors
    /// Returns an error if it may have been used before.
    fn check_and_insert(
        &self,
        nonce: u128,
        issued: SystemTime,
        lifetime: Duration,
    ) -> Result<(), TokenReuseError>;
}

/// Returns a log for courser.
pub(crate) fn adapted_log(log: Arc<dyn TokenLog>) -> Arc<dyn quic::TokenLog> {
    Arc::new(AdaptedLog(log))
}

struct AdaptedLog(Arc<dyn TokenLog>);

impl quic::TokenLog for AdaptedLog {
    fn use_once(&self, nonce: u128, issued: Duration, lifetime: Duration) -> bool {
        let issued = SystemTime::UNIX_EPOCH + issued;
        self.0.check_and_insert(nonce, issued, lifetime).is_ok()
    }
}

/// Returns a clock for courser.
pub(crate) fn adapted_clock(clock: Arc<dyn TimeSource>) -> Arc<dyn quic::TimeOfDay> {
    Arc::new(AdaptedClock(clock))
}

struct AdaptedClock(Arc<dyn TimeSource>);

impl quic::TimeOfDay for AdaptedClock {
    fn since_1970(&self) -> Duration {
        let time = self.0.now().duration_since(SystemTime::UNIX_EPOCH);
        // Times before 1970 count as its start.
        time.unwrap_or_default()
    }
}

/// An error for a token that may have been used before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenReuseError;

impl fmt::Display for TokenReuseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token may have been used before")
    }
}

impl std::error::Error for TokenReuseError {}

/// A log that accepts no token.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoneTokenLog;

impl TokenLog for NoneTokenLog {
    fn check_and_insert(&self, _: u128, _: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        Err(TokenReuseError)
    }
}
