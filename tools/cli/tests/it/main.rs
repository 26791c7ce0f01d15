//! Tests of the `courser` binary.

mod common;

mod doctor;
mod forward;
mod get;
mod interop;
mod load;
mod manual;
mod mistakes;
#[cfg(target_os = "linux")]
#[path = "../../../../crates/courser/tests/it/namespace.rs"]
mod namespace;
#[cfg(target_os = "linux")]
mod namespaces;
mod oracle;
mod perf;
mod probe;
#[cfg(unix)]
mod proxy;
mod qlog;
mod quinn;
mod serve;
mod sim_figures;
mod sim_run;
mod tunnel;
mod webtransport;
mod wire;
#[cfg(target_os = "linux")]
mod zones;
