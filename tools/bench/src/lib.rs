//! Two ends of the transport in one thread and in virtual time, and the paths of the core whose instructions are
//! counted with them. The benches of this crate measure times.

mod get;
mod handshakes;
mod meter;
mod null_tls;
mod pair;
mod path;
mod requests;
mod transfer;

pub use meter::Meter;
pub use pair::{Batch, End, Pair, Paths};
pub use path::Path;

/// Runs a path, and returns the number of its units.
pub fn run(path: Path) -> u64 {
    let meter = Meter::new(path);
    match path {
        Path::Send | Path::Receive | Path::AckSend | Path::AckReceive => transfer::run(&meter),
        Path::RequestClient | Path::RequestServer => requests::run(&meter),
        Path::GetClient | Path::GetServer => get::run(&meter),
        Path::HandshakeClient | Path::HandshakeServer => handshakes::run(&meter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths check their own results: what arrives, and where it ends.
    #[test]
    fn each_path_runs_and_has_its_own_name() {
        let mut names = std::collections::BTreeSet::new();
        for path in Path::ALL {
            assert!(run(path) > 0, "{path:?}");
            assert!(names.insert(path.name()), "{path:?}");
        }
    }

    #[test]
    fn acknowledgment_covers_the_packets_of_its_description() {
        let (packets, acknowledgments) = (run(Path::Send), run(Path::AckSend));
        let each = (packets as f64 / acknowledgments as f64).round();
        let expected = format!("an acknowledgment of {each} such packets");
        assert!(
            Path::AckSend.description().starts_with(&expected),
            "{expected}"
        );
    }
}
