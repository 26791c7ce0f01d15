//! Checks the clock of the machine.

use std::time::{Duration, UNIX_EPOCH};

use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Checks the time of day, its synchronization, and the cost of reading the clock.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let mut found = vec![time_of_day(machine)];
    found.extend(source(machine));
    found
}

fn time_of_day(machine: &Machine) -> Finding {
    let since_1970 = machine.now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if since_1970 < EARLIEST {
        let why = "certificates are valid only between two dates, and the clock shows a time before this program was built";
        return Finding::bad(CLOCK, "the clock is before 2026", why)
            .fix("timedatectl set-ntp true");
    }
    let Some(state) = machine.clock() else {
        let reason = Unseen::Failed(
            "this system does not report whether its clock is synchronized".to_owned(),
        );
        return reason.finding(CLOCK);
    };
    if !state.is_synchronized {
        let why = "tickets, tokens and certificates are checked against the clock, and traces of two machines are compared by it";
        return Finding::fact(CLOCK, "not synchronized, according to the kernel")
            .because(why)
            .fix("timedatectl set-ntp true   # or install chrony");
    }
    let error = state.max_error;
    let saw = format!("synchronized, at most {} ms off", error.as_millis());
    match error > MAX_ERROR {
        true => {
            let why = "early data is refused when the ticket's age on both clocks differs (RFC 8446 §8.3)";
            Finding::fact(CLOCK, saw)
                .because(why)
                .fix("chronyc makestep")
        }
        false => Finding::good(CLOCK, saw),
    }
}

/// Checks the clock source. Reading some takes microseconds instead of 20 ns, and QUIC reads the clock for
/// each batch.
fn source(machine: &Machine) -> Option<Finding> {
    let name = "clock source";
    let text = machine.read(SOURCE).ok()?;
    let source = text.trim();
    Some(match SLOW.contains(&source) {
        true => {
            let why = "reading this clock is a system call of a microsecond or more, for each batch of packets";
            Finding::weak(name, source, why).fix(format!("echo tsc > {SOURCE}"))
        }
        false => Finding::good(name, source),
    })
}

const CLOCK: &str = "clock";
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const SLOW: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "pit"];
/// The time before which a clock is certainly wrong: 2026-01-01.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);
const MAX_ERROR: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use courser_udp::ClockState;

    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Bad, Fact, Good, Unknown, Weak};

    fn state(is_synchronized: bool, millis: u64) -> Option<ClockState> {
        let max_error = Duration::from_millis(millis);
        Some(ClockState {
            is_synchronized,
            max_error,
        })
    }

    #[test]
    fn unsynchronized_clocks_are_reported() {
        let tree = Tree::new();
        for (state, verdict) in [
            (state(true, 20), Good),
            (state(true, 6000), Fact),
            (state(false, 16_000), Fact),
            (None, Unknown),
        ] {
            let found = check(&tree.machine().with_clock(state));
            assert_eq!(found[0].verdict, verdict, "{state:?}");
        }
    }

    #[test]
    fn clock_before_the_build_of_this_program_is_an_error() {
        let tree = Tree::new();
        for time in [UNIX_EPOCH, UNIX_EPOCH + EARLIEST - Duration::from_secs(1)] {
            let machine = Machine::recorded(tree.place("/"), time).with_clock(state(true, 1));
            assert_eq!(check(&machine)[0].verdict, Bad);
        }
        assert!(SystemTime::now() > UNIX_EPOCH + EARLIEST);
    }

    #[test]
    fn slow_clock_sources_are_reported() {
        for (source, verdict) in [("tsc\n", Good), ("kvm-clock\n", Good), ("hpet\n", Weak)] {
            let tree = Tree::new();
            tree.write(SOURCE, source);
            assert_eq!(check(&tree.machine())[1].verdict, verdict, "{source}");
        }
        assert_eq!(check(&Tree::new().machine()).len(), 1);
    }
}
