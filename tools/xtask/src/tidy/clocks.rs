//! Restricts clocks and sleeps: banned in crates without I/O, and limited to the runtime, the server and
//! the client above them.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::ToTokens;
use toml::{Table, Value};

use crate::code::{self, Word};
use crate::layers;
use crate::report::Problems;
use crate::tree::File;

/// Checks Clippy's configuration of every crate in `folders`, and the sources of the crates that ask
/// their runtime for the time.
///
/// Clippy reads the nearest `clippy.toml` only, so those of the crates repeat the root's settings.
pub(super) fn check<'a>(files: &[File], folders: impl Iterator<Item = &'a str>) -> Problems {
    let mut problems = Problems::new();
    let root = files.iter().find(|file| file.path == CONFIGURATION);
    let root = root.map_or_else(Table::new, |file| file.text.parse().unwrap_or_default());
    for folder in folders.filter(|folder| is_without_clock(folder)) {
        let path = format!("{folder}/{CONFIGURATION}");
        let file = files
            .iter()
            .find(|file| file.path_in_workspace() == Some(&path));
        let Some(file) = file else {
            problems.push(format!(
                "{path}: does not exist; copy crates/base/{CONFIGURATION}"
            ));
            continue;
        };
        match file.text.parse::<Table>() {
            Ok(own) => problems.extend(check_configuration(&path, &own, &root)),
            Err(error) => problems.push(format!("{path}: {error}")),
        }
    }
    for file in files.iter().filter(|file| asks_its_runtime(file)) {
        problems.extend(check_source(file));
    }
    problems
}

/// Returns true for the layers without I/O, and for the simulator, whose clock is its own.
fn is_without_clock(folder: &str) -> bool {
    let is_low = layers::layer_of(folder).is_some_and(|layer| layer < layers::SYSTEM_CALLS);
    is_low || folder == "sim"
}

fn check_configuration(path: &str, own: &Table, root: &Table) -> Problems {
    let mut problems = Problems::new();
    for (key, value) in root {
        let is_repeated = match (value, own.get(key)) {
            // The crate disallows more.
            (Value::Array(all), Some(Value::Array(own))) => all.iter().all(|it| own.contains(it)),
            (value, own) => own == Some(value),
        };
        if !is_repeated {
            problems.push(format!(
                "{path}: does not repeat `{key} = {value}` of {CONFIGURATION}"
            ));
        }
    }
    let disallowed = own.get("disallowed-methods").and_then(Value::as_array);
    let methods = disallowed.into_iter().flatten();
    let methods: BTreeSet<&str> = methods.filter_map(method_path).collect();
    for method in METHODS.iter().filter(|method| !methods.contains(*method)) {
        problems.push(format!("{path}: does not disallow the method {method}"));
    }
    problems
}

/// Returns the path of an entry, which is a string or a table.
fn method_path(entry: &Value) -> Option<&str> {
    let path = entry.get("path").unwrap_or(entry);
    path.as_str()
}

/// Returns true for production code that may not use a clock of its own.
fn asks_its_runtime(file: &File) -> bool {
    let inner = file.path.split('/').nth(3).unwrap_or_default();
    let module = inner.strip_suffix(".rs").unwrap_or(inner);
    RUNTIME_USERS
        .iter()
        .any(|(folder, exceptions)| file.is_production_of(folder) && !exceptions.contains(&module))
}

fn check_source(file: &File) -> Problems {
    let words = code::words(file.production().to_token_stream());
    let mut problems = Problems::new();
    for name in NAMES {
        let sequence: Vec<Word> = code::words(name.parse::<TokenStream>().into_iter().flatten());
        let sequence: Vec<&str> = sequence.iter().map(|word| word.text.as_str()).collect();
        for line in code::lines_with(&words, &sequence) {
            problems.push(format!(
                "{}:{line}: `{name}` reads a clock or waits; only the runtime, the server and the client \
                 may, since programs in the simulator have another clock",
                file.path
            ));
        }
    }
    problems
}

/// The crates whose code runs in the simulator, with their modules that may use the system's clock.
const RUNTIME_USERS: &[(&str, &[&str])] = &[
    ("quic", &["runtime"]),
    ("http3-tokio", &[]),
    ("masque-tokio", &[]),
    ("webtransport-tokio", &[]),
    ("courser", &[]),
];

const CONFIGURATION: &str = "clippy.toml";

/// The methods that Clippy refuses in crates without a clock. Those of tokio are missing because
/// none of these crates depends on it.
const METHODS: &[&str] = &[
    "std::thread::sleep",
    "std::time::Instant::elapsed",
    "std::time::Instant::now",
    "std::time::SystemTime::elapsed",
    "std::time::SystemTime::now",
];

/// The same methods and the timers of tokio, as the other crates would write them.
const NAMES: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    ".elapsed()",
    "thread::sleep",
    "tokio::time",
];

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "too-many-lines-threshold = 70\nallow-unwrap-in-tests = true\n";

    fn file(path: &str, text: &str) -> File {
        File::new(path.to_owned(), text.to_owned())
    }

    fn configuration() -> String {
        let methods: Vec<String> = METHODS
            .iter()
            .map(|method| format!("{{ path = \"{method}\", reason = \"r\" }}"))
            .collect();
        format!("{ROOT}disallowed-methods = [{}]\n", methods.join(", "))
    }

    /// Checks the crate `wire` with this configuration.
    fn problems(own: &str) -> Problems {
        let files = [
            file("clippy.toml", ROOT),
            file("crates/wire/clippy.toml", own),
        ];
        check(&files, ["wire", "udp"].into_iter())
    }

    #[test]
    fn crates_without_clock_need_a_configuration() {
        let files = [file("clippy.toml", ROOT)];
        let found = check(&files, ["wire", "sim", "udp", "courser"].into_iter());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("wire/clippy.toml: does not exist"));
        assert!(found[1].starts_with("sim/clippy.toml: does not exist"));
    }

    #[test]
    fn every_method_must_be_disallowed() {
        assert_eq!(problems(&configuration()), Problems::new());
        for method in METHODS {
            let without = configuration().replace(method, "std::env::var");
            assert_eq!(
                problems(&without),
                [format!(
                    "wire/clippy.toml: does not disallow the method {method}"
                )]
            );
        }
    }

    #[test]
    fn methods_of_the_root_must_be_among_those_of_the_crate() {
        let root = format!("{ROOT}disallowed-methods = [{{ path = \"a::b\", reason = \"r\" }}]\n");
        let check = |own: &str| {
            let files = [
                file("clippy.toml", &root),
                file("crates/wire/clippy.toml", own),
            ];
            check(&files, ["wire"].into_iter())
        };
        let found = check(&configuration());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("does not repeat `disallowed-methods"),
            "{found:?}"
        );
        let own = configuration().replace("= [", "= [{ path = \"a::b\", reason = \"r\" }, ");
        assert_eq!(check(&own), Problems::new());
    }

    #[test]
    fn settings_of_the_root_must_be_repeated() {
        let found = problems(&configuration().replace("= 70", "= 700"));
        assert_eq!(
            found,
            [
                "wire/clippy.toml: does not repeat `too-many-lines-threshold = 70` of \
                 clippy.toml"
            ]
        );
    }

    #[test]
    fn a_configuration_that_cannot_be_read_is_refused() {
        assert_eq!(problems("disallowed-methods = [").len(), 1);
    }

    #[test]
    fn code_of_the_simulator_asks_its_runtime_for_the_time() {
        let source = "use tokio::time::Sleep;\nfn f() { Instant::now(); }\n// Instant::now\n\
                      #[cfg(test)]\nmod tests { fn g() { Instant::now(); } }";
        let found = |path: &str| check(&[file(path, source)], std::iter::empty());
        let problems = found("crates/quic/src/shard/driver.rs");
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("crates/quic/src/shard/driver.rs:2: `Instant::now`"));
        assert!(problems[1].starts_with("crates/quic/src/shard/driver.rs:1: `tokio::time`"));
        assert_eq!(found("crates/http3-tokio/src/serve.rs").len(), 2);
        for path in [
            "crates/quic/src/runtime/sleep.rs",
            "crates/server/src/tcp.rs",
            "crates/client/src/lib.rs",
            "crates/quic/src/shard/driver/tests.rs",
            "crates/udp/src/lib.rs",
        ] {
            assert_eq!(found(path), Problems::new(), "{path}");
        }
    }
}
