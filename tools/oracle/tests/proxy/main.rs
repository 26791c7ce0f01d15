//! The reverse proxy between scripted clients and upstream servers, for each pair of versions.

mod authority;
mod compression;
mod content;
mod fields;
mod hops;
mod responses;
mod scene;
mod upgrades;
