//! Checks the connection tracking table of the firewall (conntrack).

use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Checks the usage of the table, and compares its timeouts for UDP with those of QUIC.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let limit = match machine.number(&setting("nf_conntrack_max")) {
        Ok(limit) => limit,
        Err(Unseen::Absent(_)) => {
            return vec![Finding::good(
                TABLE,
                "not loaded: this kernel does not track connections",
            )];
        }
        Err(reason) => return vec![reason.finding(TABLE)],
    };
    vec![table(machine, limit), timeouts(machine)]
}

fn table(machine: &Machine, limit: u64) -> Finding {
    let count = match machine.number(&setting("nf_conntrack_count")) {
        Ok(count) => count,
        Err(reason) => return reason.finding(TABLE),
    };
    let saw = format!("{count} of {limit} entries in use");
    if limit == 0 {
        return Finding::good(TABLE, format!("{count} entries in use, without a limit"));
    }
    let larger = limit.max(MIN_TABLE / 4).saturating_mul(4);
    let fix = format!("sysctl -w net.netfilter.nf_conntrack_max={larger}");
    let full =
        "each client takes an entry, and packets of new clients are dropped when the table is full";
    // An error from nine tenths, and a warning from one half.
    if count >= limit.saturating_mul(9) / 10 {
        return Finding::bad(TABLE, saw, full).fix(fix);
    }
    if count >= limit / 2 || limit < MIN_TABLE {
        return Finding::weak(TABLE, saw, full).fix(fix);
    }
    Finding::good(TABLE, saw)
}

/// Checks the timeouts, after which a NAT or firewall removes an idle client and drops packets to it.
fn timeouts(machine: &Machine) -> Finding {
    let first = machine.number(&setting("nf_conntrack_udp_timeout"));
    let (first, answered) = match (
        first,
        machine.number(&setting("nf_conntrack_udp_timeout_stream")),
    ) {
        (Ok(first), Ok(answered)) => (first, answered),
        (Err(reason), _) | (_, Err(reason)) => return reason.finding(TIMEOUTS),
    };
    let saw = format!("{first} s, and {answered} s for flows in both directions");
    match answered < MIN_TIMEOUT {
        true => {
            let why = "clients that are idle for longer lose their connection, before the usual idle timeout of 30 s";
            let fix = format!(
                "sysctl -w net.netfilter.nf_conntrack_udp_timeout_stream={}",
                2 * USUAL_TIMEOUT
            );
            Finding::weak(TIMEOUTS, saw, why).fix(fix)
        }
        false => Finding::good(TIMEOUTS, saw),
    }
}

fn setting(name: &str) -> String {
    format!("/proc/sys/net/netfilter/{name}")
}

const TABLE: &str = "conntrack";
const TIMEOUTS: &str = "conntrack timeouts";
/// The idle timeout of courser and of most other implementations in seconds.
const MIN_TIMEOUT: u64 = 30;
const USUAL_TIMEOUT: u64 = 60;
const MIN_TABLE: u64 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Bad, Good, Unknown, Weak};

    fn tree(count: &str, limit: &str, stream: &str) -> Tree {
        let tree = Tree::new();
        tree.write(&setting("nf_conntrack_count"), count);
        tree.write(&setting("nf_conntrack_max"), limit);
        tree.write(&setting("nf_conntrack_udp_timeout"), "30\n");
        tree.write(&setting("nf_conntrack_udp_timeout_stream"), stream);
        tree
    }

    #[test]
    fn table_is_reported_before_it_is_full() {
        for (count, limit, verdict) in [
            ("0", "262144", Good),
            ("131071", "262144", Good),
            ("131072", "262144", Weak),
            ("235930", "262144", Bad),
            ("262144", "262144", Bad),
            ("0", "8192", Weak),
            // No limit.
            ("0", "0", Good),
            ("70000", "0", Good),
        ] {
            let found = check(&tree(count, limit, "120").machine());
            assert_eq!(found[0].verdict, verdict, "{count} of {limit}");
        }
    }

    #[test]
    fn command_enlarges_the_table() {
        let found = check(&tree("262144", "262144", "120").machine());
        let fix = found[0].fix.as_deref().expect("a command");
        assert_eq!(fix, "sysctl -w net.netfilter.nf_conntrack_max=1048576");
        let found = check(&tree("0", "8", "120").machine());
        let fix = found[0].fix.as_deref().expect("a command");
        assert!(fix.contains("nf_conntrack_max=16384"), "{fix}");
    }

    #[test]
    fn short_timeouts_are_reported() {
        assert_eq!(
            check(&tree("0", "262144", "120").machine())[1].verdict,
            Good
        );
        assert_eq!(check(&tree("0", "262144", "20").machine())[1].verdict, Weak);
    }

    #[test]
    fn kernel_without_the_table_is_good() {
        let found = check(&Tree::new().machine());
        assert_eq!((found.len(), found[0].verdict), (1, Good));
    }

    #[test]
    fn table_without_a_readable_count_is_unknown() {
        let tree = Tree::new();
        tree.write(&setting("nf_conntrack_max"), "262144");
        assert!(
            check(&tree.machine())
                .iter()
                .all(|it| it.verdict == Unknown)
        );
    }
}
