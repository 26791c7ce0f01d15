//! tquic: an endpoint with its socket, and the data of its streams, for the peer program and for the end in
//! `courser interop matrix`.

pub mod end;
pub mod exchange;
pub mod setup;
pub mod socket;
