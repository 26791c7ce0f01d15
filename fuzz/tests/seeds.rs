//! The seeds, what was found once, and what a generator makes of both: with any compiler, and the
//! same on every machine.

use std::path::{Path, PathBuf};

use courser_fuzz::TARGETS;

/// Inputs of each target that no file holds.
const MADE: usize = 20_000;

#[test]
fn seeds_and_what_is_made_of_them() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for seed in &seeds {
            target(seed);
        }
        let mut random = Random(name.bytes().map(u64::from).product::<u64>() | 1);
        for _ in 0..MADE {
            target(&random.input(&seeds));
        }
    }
}

/// Files of a target, in the order of their names.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    let read = |file: &PathBuf| std::fs::read(file).expect("readable");
    files.iter().map(read).collect()
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % limit
    }

    /// A file or the beginning of one, and some of it changed, cut, doubled or added.
    fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(6) {
            let at = self.below(input.len() + 1);
            match self.below(5) {
                0 => input.truncate(at),
                1 => input.insert(at, self.below(256) as u8),
                2 if at < input.len() => input[at] ^= 1 << self.below(8),
                3 if at < input.len() => drop(input.remove(at)),
                _ => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    input.extend_from_slice(&other[from..]);
                }
            }
        }
        input
    }
}
