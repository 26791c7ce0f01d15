//! The version of the kernel, and its random numbers.

use crate::doctor::finding::Finding;
use crate::doctor::machine::Machine;

/// Compares the version with those that brought UDP offload.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let release = match machine.read(OSRELEASE) {
        Ok(text) => text.trim().to_owned(),
        Err(reason) => return vec![Finding::unseen(VERSION, &reason)],
    };
    let Some(version) = parse(&release) else {
        let why = "the version decides which offloads exist, and this one cannot be read";
        return vec![Finding::note(VERSION, format!("Linux {release}"), why)];
    };
    let finding = if version < GSO {
        let why = "UDP segmentation offload (GSO) came with Linux 4.18: each datagram costs a system call";
        Finding::warning(VERSION, format!("Linux {release}"), why)
            .fix("install a kernel of 6.2 or later")
    } else if version < GRO {
        let why = "UDP receive offload (GRO) came with Linux 5.0: each received datagram costs a system call";
        Finding::warning(VERSION, format!("Linux {release}"), why)
            .fix("install a kernel of 6.2 or later")
    } else if version < CACHED_ROUTE {
        let why = "Linux 6.9 sends on connected sockets without a look-up of the route, a tenth of the call";
        Finding::note(
            VERSION,
            format!("Linux {release}, with GSO and GRO for UDP"),
            why,
        )
    } else {
        Finding::ok(
            VERSION,
            format!("Linux {release}, with GSO and GRO for UDP"),
        )
    };
    vec![finding, entropy(machine, version)]
}

/// Since Linux 5.18 the pool is full once it has been seeded.
fn entropy(machine: &Machine, version: (u32, u32)) -> Finding {
    let name = "entropy";
    match machine.number("/proc/sys/kernel/random/entropy_avail") {
        Err(reason) => Finding::unseen(name, &reason),
        Ok(bits) if bits >= LEAST_ENTROPY => Finding::ok(name, format!("{bits} bits")),
        Ok(bits) if version >= SEEDED_ONCE => {
            let why = "the kernel has not been seeded yet: programs wait for their first key";
            Finding::error(name, format!("{bits} bits"), why).fix(
                "give the machine a source of random numbers (virtio-rng, or the CPU's RDRAND)",
            )
        }
        Ok(bits) => {
            let why = "programs may wait for their first key after a start of the machine";
            Finding::warning(name, format!("{bits} bits"), why).fix("apt install rng-tools5")
        }
    }
}

/// Reads the first two numbers of `6.18.44-generic`.
fn parse(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|sign: char| !sign.is_ascii_digit());
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    Some((major, minor))
}

pub(crate) const OSRELEASE: &str = "/proc/sys/kernel/osrelease";
const VERSION: &str = "kernel";
const GSO: (u32, u32) = (4, 18);
const GRO: (u32, u32) = (5, 0);
const SEEDED_ONCE: (u32, u32) = (5, 18);
const CACHED_ROUTE: (u32, u32) = (6, 9);
/// The pool of Linux 5.18 and later has 256 bits, and older ones count up to 4096.
const LEAST_ENTROPY: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::doctor::finding::Severity::{self, Error, Note, Ok, Warning};

    fn severities(release: &str, entropy: &str) -> Vec<Severity> {
        let tree = Tree::new();
        tree.write(OSRELEASE, release);
        tree.write("/proc/sys/kernel/random/entropy_avail", entropy);
        let found = check(&tree.machine());
        found.iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn old_kernels_lack_offload() {
        for (release, expected) in [
            ("3.10.0-1160.el7.x86_64\n", Warning),
            ("4.17.9\n", Warning),
            ("4.18.0-553.el8\n", Warning),
            ("5.15.0-91-generic\n", Note),
            ("6.8.0\n", Note),
            ("6.9\n", Ok),
            ("6.18.44-fc\n", Ok),
            ("unknown\n", Note),
        ] {
            assert_eq!(severities(release, "256\n")[0], expected, "{release}");
        }
    }

    #[test]
    fn an_unseeded_kernel_is_an_error() {
        assert_eq!(severities("6.1.0", "256")[1], Ok);
        assert_eq!(severities("6.1.0", "0")[1], Error);
        assert_eq!(severities("4.19.0", "50")[1], Warning);
        assert_eq!(severities("4.19.0", "many")[1], Note);
    }

    #[test]
    fn a_machine_without_proc_is_not_visible() {
        let found = check(&Tree::new().machine());
        assert!(!found[0].visible && found[0].severity == Note, "{found:?}");
    }
}
