//! Checks the version of the kernel and its random number generator.

use crate::doctor::machine::Machine;
use crate::finding::Finding;

/// Compares the version with those that introduced UDP offloads.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let release = match machine.read(OSRELEASE) {
        Ok(text) => text.trim().to_owned(),
        Err(reason) => return vec![reason.finding(VERSION)],
    };
    let Some(version) = parse(&release) else {
        let why = "the version determines which offloads exist, but it cannot be parsed";
        return vec![Finding::fact(VERSION, format!("Linux {release}")).because(why)];
    };
    let finding = if version < GSO {
        let why = "UDP segmentation offload (GSO) needs Linux 4.18: without it, each datagram costs a system call";
        Finding::weak(VERSION, format!("Linux {release}"), why)
            .fix("install a kernel of 6.2 or later")
    } else if version < GRO {
        let why = "UDP receive offload (GRO) needs Linux 5.0: without it, each received datagram costs a system call";
        Finding::weak(VERSION, format!("Linux {release}"), why)
            .fix("install a kernel of 6.2 or later")
    } else if version < CACHED_ROUTE {
        let why = "since Linux 6.9, sending on connected sockets needs no route lookup, which is a tenth of the cost of a call";
        Finding::fact(
            VERSION,
            format!("Linux {release}, with GSO and GRO for UDP"),
        )
        .because(why)
    } else {
        Finding::good(
            VERSION,
            format!("Linux {release}, with GSO and GRO for UDP"),
        )
    };
    vec![finding, entropy(machine, version)]
}

/// Checks the entropy. Since Linux 5.18, the pool is full once it has been seeded.
fn entropy(machine: &Machine, version: (u32, u32)) -> Finding {
    let name = "entropy";
    match machine.number("/proc/sys/kernel/random/entropy_avail") {
        Err(reason) => reason.finding(name),
        Ok(bits) if bits >= MIN_ENTROPY => Finding::good(name, format!("{bits} bits")),
        Ok(bits) if version >= SEEDED_ONCE => {
            let why = "the kernel has not been seeded yet: programs wait for their first key";
            Finding::bad(name, format!("{bits} bits"), why).fix(
                "give the machine a source of random numbers (virtio-rng, or the CPU's RDRAND)",
            )
        }
        Ok(bits) => {
            let why = "programs may wait for their first key after a boot";
            Finding::weak(name, format!("{bits} bits"), why).fix("apt install rng-tools5")
        }
    }
}

/// Returns the first two numbers of a release such as `6.18.44-generic`.
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
/// The pool of Linux 5.18 and later has 256 bits. That of older versions counts up to 4096.
const MIN_ENTROPY: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{self, Bad, Fact, Good, Unknown, Weak};

    fn verdicts(release: &str, entropy: &str) -> Vec<Verdict> {
        let tree = Tree::new();
        tree.write(OSRELEASE, release);
        tree.write("/proc/sys/kernel/random/entropy_avail", entropy);
        let found = check(&tree.machine());
        found.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn old_kernels_lack_offload() {
        for (release, expected) in [
            ("3.10.0-1160.el7.x86_64\n", Weak),
            ("4.17.9\n", Weak),
            ("4.18.0-553.el8\n", Weak),
            ("5.15.0-91-generic\n", Fact),
            ("6.8.0\n", Fact),
            ("6.9\n", Good),
            ("6.18.44-fc\n", Good),
            ("unknown\n", Fact),
        ] {
            assert_eq!(verdicts(release, "256\n")[0], expected, "{release}");
        }
    }

    #[test]
    fn unseeded_kernel_is_an_error() {
        assert_eq!(verdicts("6.1.0", "256")[1], Good);
        assert_eq!(verdicts("6.1.0", "0")[1], Bad);
        assert_eq!(verdicts("4.19.0", "50")[1], Weak);
        assert_eq!(verdicts("4.19.0", "many")[1], Unknown);
    }

    #[test]
    fn kernel_without_proc_is_unknown() {
        let found = check(&Tree::new().machine());
        assert_eq!(found[0].verdict, Unknown, "{found:?}");
    }
}
