//! Runs the target named by `COURSER_FUZZ_TARGET` under libFuzzer.

#![no_main]

use std::sync::OnceLock;

use courser_fuzzing::TARGETS;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target()(bytes));

fn target() -> fn(&[u8]) {
    static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("COURSER_FUZZ_TARGET").unwrap_or_default();
        let target = TARGETS.iter().find(|target| target.name == name);
        target
            .unwrap_or_else(|| panic!("no target has the name '{name}'"))
            .run
    })
}
