//! Diagnoses for QUIC: [`doctor`] checks the machine that it runs on, [`probe`] a server.

pub mod doctor;
pub mod probe;
