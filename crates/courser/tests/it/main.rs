//! Tests of the facade over real sockets on loopback. They are one binary, because each binary
//! would link the whole stack.

mod common;

mod cancel;
#[cfg(feature = "client")]
mod client;
mod close;
mod congestion;
mod connection_ids;
mod custom_transport;
mod datagrams;
#[cfg(target_os = "linux")]
mod direct_paths;
mod driver_gone;
mod early_data;
mod echo;
mod flooded;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "http3")]
mod h3;
mod handles;
mod incoming;
mod io;
#[cfg(target_os = "linux")]
mod kernel;
mod migration;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod observed;
mod offload;
mod panics;
mod ping;
mod progress;
mod qlog;
mod quinn;
mod scale;
mod segmentation_offload;
#[cfg(feature = "server")]
mod server;
#[cfg(target_os = "linux")]
mod several_paths;
mod shards;
mod silent_path;
mod slow_disk;
#[cfg(feature = "server")]
mod small_buffers;
mod smol_runtime;
mod telemetry;
mod tls_choices;
mod turns;
mod wakes;
mod wakeups;
#[cfg(target_os = "linux")]
mod zones;
