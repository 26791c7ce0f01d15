//! Runs all seeds and failures found earlier, and inputs that a generator derives from them. The
//! inputs are the same on every machine and with every compiler.

use std::path::{Path, PathBuf};

use courser_fuzzing::TARGETS;

#[test]
fn header_seeds_hold() {
    run("header");
}

#[test]
fn frames_seeds_hold() {
    run("frames");
}

#[test]
fn transport_parameters_seeds_hold() {
    run("transport_parameters");
}

#[test]
fn qpack_decoder_seeds_hold() {
    run("qpack_decoder");
}

#[test]
fn qpack_instructions_seeds_hold() {
    run("qpack_instructions");
}

#[test]
fn http3_frames_seeds_hold() {
    run("http3_frames");
}

#[test]
fn http3_message_seeds_hold() {
    run("http3_message");
}

#[test]
fn capsules_seeds_hold() {
    run("capsules");
}

#[test]
fn http3_connection_seeds_hold() {
    run("http3_connection");
}

#[test]
fn session_seeds_hold() {
    run("session");
}

#[test]
fn masque_seeds_hold() {
    run("masque");
}

#[test]
fn masque_capsules_seeds_hold() {
    run("masque_capsules");
}

#[test]
fn ip_packet_seeds_hold() {
    run("ip_packet");
}

#[test]
fn tun_seeds_hold() {
    run("tun");
}

#[test]
fn endpoint_seeds_hold() {
    run("endpoint");
}

#[test]
fn pair_seeds_hold() {
    run("pair");
}

#[test]
fn proxy_request_seeds_hold() {
    run("proxy_request");
}

#[test]
fn cli_files_seeds_hold() {
    run("cli_files");
}

#[test]
fn template_seeds_hold() {
    run("template");
}

#[test]
fn every_target_has_a_test() {
    let tests = include_str!("seeds.rs");
    for target in TARGETS {
        let test = format!("fn {}_seeds_hold()", target.name);
        assert!(tests.contains(&test), "{} has no test", target.name);
    }
}

/// Runs the seeds of a target and the inputs derived from them. With `COURSER_FUZZ_INPUT=FILE`, runs
/// only that input.
fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.expect("a target of this name");
    if let Some(file) = std::env::var_os("COURSER_FUZZ_INPUT") {
        return (target.run)(&std::fs::read(file).expect("readable"));
    }
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    for (file, seed) in &seeds {
        run_or_save(&file.display(), seed, target.run);
    }
    let seeds: Vec<_> = seeds.into_iter().map(|(_, seed)| seed).collect();
    let start = name.bytes().fold(1, |start: u64, byte| {
        start.wrapping_mul(31).wrapping_add(byte.into())
    });
    let mut random = Random(start);
    for number in 0..target.derived {
        let input = random.input(&seeds);
        run_or_save(&format_args!("derived input {number}"), &input, target.run);
    }
}

/// Runs one input. If it panics, saves the input to a file before resuming the panic.
fn run_or_save(name: &dyn std::fmt::Display, input: &[u8], run: fn(&[u8])) {
    if let Err(payload) = std::panic::catch_unwind(|| run(input)) {
        let file = std::env::temp_dir().join("courser-fuzz-input");
        let is_saved = std::fs::write(&file, input).is_ok();
        eprintln!("{name} failed, saved: {is_saved}, {}", file.display());
        std::panic::resume_unwind(payload);
    }
}

/// Returns the seed files of a target in the order of their names, with their contents.
fn seeds(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    let read = |file: PathBuf| {
        let bytes = std::fs::read(&file).expect("readable");
        (file, bytes)
    };
    files.into_iter().map(read).collect()
}

/// A pseudo-random number generator (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % limit
    }

    /// Returns a seed with some bytes modified, removed, truncated, inserted or appended.
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
