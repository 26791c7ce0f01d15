//! A network with one to five faults, and the same one without them.

use std::time::Duration;

use courser_sim::link::DuplexSpec;

use crate::common::random::SeededRandom;

/// The network between the two hosts.
#[derive(Debug)]
pub struct Network {
    /// The link with its faults, in the grammar of the command line.
    pub faulty: String,
    /// The link without them, except for a NAT.
    pub calm: String,
    /// True if some datagrams of ordinary size never pass.
    pub has_mtu: bool,
    pub has_nat: bool,
    /// Bits per second.
    pub rate: u64,
    pub delay: Duration,
}

impl Network {
    /// Draws a network whose faults start within `chaos`.
    pub fn new(random: &mut SeededRandom, chaos: Duration) -> Self {
        let rate = random.pick(&[1_000, 5_000, 20_000, 100_000, 1_000_000]) * 1000;
        let delay = Duration::from_micros(random.magnitude(50, 150_000));
        let base = format!("rate={rate}bit,delay={}us", delay.as_micros());
        let mut network = Self {
            faulty: String::new(),
            calm: format!("{base},queue=200ms"),
            has_mtu: false,
            has_nat: false,
            rate,
            delay,
        };
        let (mut forward, mut back, mut nat) = (Fields::default(), Fields::default(), None);
        for _ in 0..random.between(1, 5) {
            let kind = random.below(KINDS);
            if kind == NAT {
                nat = Some(rebinding(random));
                continue;
            }
            // A fault in one direction, in the other, or in both.
            let directions = random.below(3);
            let (field, value) = fault(random, kind, rate, chaos);
            network.has_mtu |= field.starts_with("mtu");
            if directions != 1 {
                forward.put(field.clone(), value.clone());
            }
            if directions != 0 {
                back.put(field, value);
            }
        }
        network.has_nat = nat.is_some();
        let nat = nat.map_or_else(String::new, |nat| format!(",rebind={nat}"));
        network.faulty = format!("{base}{}{nat};{base}{}", forward.text(), back.text());
        network
    }

    pub fn faulty(&self) -> DuplexSpec {
        read(&self.faulty)
    }

    pub fn calm(&self) -> DuplexSpec {
        read(&self.calm)
    }
}

fn read(text: &str) -> DuplexSpec {
    match text.parse() {
        Ok(spec) => spec,
        Err(error) => panic!("link '{text}': {error}"),
    }
}

/// Sets each field at most once: the last one counts.
#[derive(Default)]
struct Fields(std::collections::BTreeMap<String, String>);

impl Fields {
    fn put(&mut self, field: String, value: String) {
        self.0.insert(field, value);
    }

    fn text(&self) -> String {
        let fields = self.0.iter();
        fields
            .map(|(field, value)| format!(",{field}={value}"))
            .collect()
    }
}

const KINDS: u64 = 22;
const NAT: u64 = 0;

/// Draws NAT rebinding, of the port or of the address too (F20, F21), or mappings that expire
/// (F22).
fn rebinding(random: &mut SeededRandom) -> String {
    let addr = random.pick(&["", "addr:"]);
    let first = random.between(1, 4000);
    if random.percent(25) {
        // F22: shorter and longer than the pauses of applications and keep-alives.
        return format!("{addr}idle:{}ms", random.magnitude(20, 20_000));
    }
    match random.percent(50) {
        true => format!("{addr}{first}ms:never"),
        false => format!("{addr}{first}ms:{}ms", random.magnitude(1000, 20_000)),
    }
}

/// Draws another fault: a field and its value.
fn fault(random: &mut SeededRandom, kind: u64, rate: u64, chaos: Duration) -> (String, String) {
    let chaos = u64::try_from(chaos.as_millis()).expect("the time fits into u64");
    let at = random.below(chaos);
    let (field, value) = match kind {
        // F01, F02.
        1 | 2 => ("loss", format!("{}%", random.between(1, 40))),
        3 => {
            let (bad, good) = (random.between(1, 5), random.between(2, 60));
            ("gilbert", format!("{bad}%:{good}%:100%:0%"))
        }
        // F03.
        4 => ("mask", format!("{:#x}", random.below(1 << 16) | 1)),
        5 => ("every", random.between(2, 20).to_string()),
        // F04, F05: shorter and longer than idle timeouts, once or repeatedly.
        6 => {
            let lasts = random.magnitude(100, 20_000);
            ("blackhole", format!("{at}ms:{lasts}ms"))
        }
        7 => {
            let lasts = random.between(50, 800);
            let every = lasts + random.between(50, 2000);
            ("blackhole", format!("{at}ms:{lasts}ms:{every}ms"))
        }
        // F06 to F09.
        8 | 9 => {
            let (chance, by) = (random.between(1, 50), random.magnitude(1, 300));
            ("reorder", format!("{chance}%:{by}ms"))
        }
        10 => ("duplicate", format!("{}%", random.between(1, 100))),
        11 => ("corrupt", format!("{}%", random.between(1, 30))),
        12 => ("truncate", format!("{}%", random.between(1, 30))),
        13 => ("extend", format!("{}%", random.between(1, 30))),
        // F11 to F13.
        14 => {
            return (
                format!("delay@{at}ms"),
                format!("{}ms", random.magnitude(10, 2000)),
            );
        }
        15 => ("jitter", format!("{}ms", random.between(1, 200))),
        16 => {
            return (
                format!("rate@{at}ms"),
                format!("{}bit", (rate / 100 / 8).max(2000) * 8),
            );
        }
        // F14, F15.
        17 => ("queue", random.pick(&["2p", "5p", "10000p"]).to_owned()),
        18 => {
            let (rate, burst) = (rate / 8000 * random.between(1, 4), random.between(3, 60));
            ("policer", format!("{rate}kbit:{burst}k"))
        }
        // F16.
        19 => {
            let to = random.pick(&["bleach", "ce", "ect0", "ect1", "swap", "ce:20%"]);
            ("ecn", format!("{to}@{at}ms"))
        }
        // F17, F18.
        20 => ("mtu", random.between(1228, 1600).to_string()),
        _ => {
            return (
                format!("mtu@{at}ms"),
                random.pick(&["1400", "1280", "1228", "1100"]).to_owned(),
            );
        }
    };
    (field.to_owned(), value)
}
