//! Warnings in the crate `log`, for programs without a subscriber of `tracing`. A test binary of its own, because the
//! logger belongs to the process.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Mutex;

use quinn::ValidationTokenConfig;
use quinn::congestion::NewRenoConfig;

/// Keeps the records of warnings.
struct Records(Mutex<Vec<String>>);

static RECORDS: Records = Records(Mutex::new(Vec::new()));

impl log::Log for Records {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() == log::Level::Warn && metadata.target() == "quinn"
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

#[test]
fn settings_without_effect_are_logged_once_each() {
    log::set_logger(&RECORDS).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    for _ in 0..3 {
        NewRenoConfig::default().loss_reduction_factor(0.7);
        ValidationTokenConfig::default().sent(2).sent(5);
    }
    let records = RECORDS.0.lock().unwrap();
    let [factor, tokens] = &records[..] else {
        panic!("two records: {records:?}");
    };
    for (record, setting) in [
        (factor, "NewRenoConfig::loss_reduction_factor"),
        (tokens, "ValidationTokenConfig::sent (more than 4)"),
    ] {
        assert!(record.contains(setting), "{record}");
        assert!(record.contains("has no effect"), "{record}");
    }
}
