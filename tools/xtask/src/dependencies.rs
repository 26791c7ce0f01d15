//! Lists the packages that the crates without I/O may use, each with its reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::layers;
use crate::manifest::{Dependency, Manifest, Purpose};
use crate::report::Problems;

/// Returns every dependency of the lower layers that is not listed, and every unused entry.
pub(crate) fn check(manifests: &BTreeMap<String, Manifest>) -> Problems {
    let own: BTreeSet<&str> = manifests
        .values()
        .map(|manifest| manifest.package.as_str())
        .collect();
    let mut problems = Problems::new();
    for (folder, manifest) in manifests {
        if !is_without_io(folder) {
            continue;
        }
        let foreign = manifest
            .dependencies
            .iter()
            .filter(|dependency| !own.contains(dependency.package.as_str()));
        for dependency in foreign.filter(|dependency| !is_allowed(folder, dependency)) {
            problems.push(format!(
                "{folder}/Cargo.toml: may not depend on {}; tools/xtask/src/dependencies.rs \
                 lists what is allowed",
                dependency.package
            ));
        }
    }
    problems.extend(unused(manifests));
    problems
}

/// Returns true for crates below the layer that makes system calls.
fn is_without_io(folder: &str) -> bool {
    layers::layer_of(folder).is_some_and(|layer| layer < layers::SYSTEM_CALLS)
}

fn is_allowed(folder: &str, dependency: &Dependency) -> bool {
    let package = dependency.package.as_str();
    if dependency.purpose == Purpose::Dev {
        return TESTS.contains(&package);
    }
    ALLOWED
        .iter()
        .any(|allowed| allowed.package == package && allowed.folders.contains(&folder))
}

/// Returns the unused entries. Each of them would hide a later addition.
fn unused(manifests: &BTreeMap<String, Manifest>) -> Problems {
    let mut problems = Problems::new();
    for allowed in ALLOWED {
        for folder in allowed.folders {
            let is_used = manifests.get(*folder).is_none_or(|manifest| {
                manifest
                    .dependencies
                    .iter()
                    .any(|used| used.package == allowed.package && used.purpose != Purpose::Dev)
            });
            if !is_used {
                problems.push(format!(
                    "tools/xtask/src/dependencies.rs: allows {} in {folder}, which does \
                     not use it ({})",
                    allowed.package, allowed.reason
                ));
            }
        }
    }
    problems
}

/// A package, the folders that may depend on it, and the reason.
struct Allowed {
    package: &'static str,
    folders: &'static [&'static str],
    reason: &'static str,
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        package: "aws-lc-rs",
        folders: &["crypto", "tls"],
        reason: "AEAD, header protection, HKDF and HMAC; key exchange and signatures",
    },
    Allowed {
        package: "bytes",
        folders: &[
            "base",
            "http3",
            "link",
            "masque",
            "qpack",
            "transport",
            "webtransport",
        ],
        reason: "the type of owned buffers that Rust network libraries share",
    },
    Allowed {
        package: "foldhash",
        folders: &["http3", "qpack"],
        reason: "a fast keyed hash for short strings",
    },
    Allowed {
        package: "http",
        folders: &["http3", "masque", "webtransport"],
        reason: "the types of requests and responses",
    },
    Allowed {
        package: "percent-encoding",
        folders: &["masque"],
        reason: "values of URI templates",
    },
    Allowed {
        package: "psl",
        folders: &["suffix"],
        reason: "the Public Suffix List",
    },
    Allowed {
        package: "rustls",
        folders: &["tls"],
        reason: "TLS 1.3",
    },
    Allowed {
        package: "rustls-webpki",
        folders: &["tls"],
        reason: "verifies signatures with AWS-LC, for rustls",
    },
    Allowed {
        package: "rustls-platform-verifier",
        folders: &["tls"],
        reason: "the certificates that the system trusts",
    },
    Allowed {
        package: "serde",
        folders: &["link"],
        reason: "statistics as JSON",
    },
    Allowed {
        package: "serde_json",
        folders: &["qlog"],
        reason: "text in JSON",
    },
    Allowed {
        package: "thiserror",
        folders: &["http3", "masque", "qpack", "webtransport"],
        reason: "error types",
    },
    Allowed {
        package: "zeroize",
        folders: &["crypto", "fused", "tls"],
        reason: "erases secrets",
    },
];

/// The packages that tests of these crates may use.
const TESTS: &[&str] = &[
    "aws-lc-rs",
    "etherparse",
    "lzma-rust2",
    "proptest",
    "qlog",
    "rcgen",
    "roxmltree",
    "rustls",
    "serde_json",
    "tar",
    "toml",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(package: &str, dependencies: &[(&str, Purpose)]) -> Manifest {
        let dependencies = dependencies.iter().map(|&(package, purpose)| Dependency {
            package: package.to_owned(),
            purpose,
        });
        Manifest {
            package: package.to_owned(),
            dependencies: dependencies.collect(),
            features: Vec::new(),
            aliases: Vec::new(),
            defaults: Vec::new(),
            is_published: true,
        }
    }

    fn problems(folder: &str, dependencies: &[(&str, Purpose)]) -> Problems {
        let manifests = BTreeMap::from([
            (
                "base".to_owned(),
                manifest("courser-base", &[("bytes", Purpose::Normal)]),
            ),
            (folder.to_owned(), manifest("courser-this", dependencies)),
        ]);
        check(&manifests)
    }

    #[test]
    fn listed_packages_and_crates_of_the_workspace_are_allowed() {
        let used = [
            ("bytes", Purpose::Normal),
            ("courser-base", Purpose::Normal),
            ("proptest", Purpose::Dev),
        ];
        assert_eq!(problems("transport", &used), Problems::new());
    }

    #[test]
    fn packages_listed_for_others_only_are_refused() {
        let used = [
            ("bytes", Purpose::Normal),
            ("rustls", Purpose::Normal),
            ("cc", Purpose::Build),
            ("rand", Purpose::Dev),
        ];
        let found = problems("transport", &used);
        let named = |package: &str| {
            let text = format!("transport/Cargo.toml: may not depend on {package};");
            found.iter().any(|problem| problem.contains(&text))
        };
        assert!(named("rustls") && named("cc") && named("rand"), "{found:?}");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn crates_with_io_may_use_any_package() {
        assert_eq!(
            problems("udp", &[("libc", Purpose::Normal)]),
            Problems::new()
        );
    }

    #[test]
    fn an_unused_entry_is_reported() {
        let found = problems("suffix", &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("allows psl in suffix"), "{found:?}");
    }
}
