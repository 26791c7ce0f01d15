//! The players of the game, and where they are.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

/// Coordinates of a player: two numbers of 16 bits.
type Place = [u8; 4];

#[derive(Debug)]
pub struct World {
    /// By number, with the time of the latest datagram.
    players: Mutex<BTreeMap<u16, (Place, Instant)>>,
    pub said: broadcast::Sender<String>,
}

impl World {
    pub fn new() -> Self {
        Self {
            players: Mutex::default(),
            said: broadcast::channel(1000).0,
        }
    }

    /// Returns the number of a new player, or `None` if the field is full.
    pub fn enter(&self) -> Option<u16> {
        let mut players = self.players();
        let free = (0..u16::MAX).find(|number| !players.contains_key(number))?;
        players.insert(free, ([0; 4], Instant::now()));
        Some(free)
    }

    pub fn leave(&self, player: u16) {
        self.players().remove(&player);
    }

    pub fn place(&self, player: u16, place: Place) {
        self.players().insert(player, (place, Instant::now()));
    }

    /// Returns false for players who have left without a word: a page that crashed, a phone in a tunnel.
    pub fn is_present(&self, player: u16) -> bool {
        let players = self.players();
        players
            .get(&player)
            .is_some_and(|(_, seen)| seen.elapsed() < SILENCE)
    }

    /// Returns the number and place of each player, [`ENTRY`] bytes each.
    pub fn state(&self) -> Vec<u8> {
        let players = self.players();
        let entry = |(number, (place, _)): (&u16, &(Place, Instant))| {
            number.to_be_bytes().into_iter().chain(*place)
        };
        players.iter().flat_map(entry).collect()
    }

    fn players(&self) -> MutexGuard<'_, BTreeMap<u16, (Place, Instant)>> {
        self.players.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub const ENTRY: usize = 6;
const SILENCE: Duration = Duration::from_secs(5);
