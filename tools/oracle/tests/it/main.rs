//! The tables of cases against a gateway and a server of files in this process, and rules of single layers below them.

mod agent;
mod client_hello;
mod files;
mod frames;
mod gateway;
mod hpack;
mod http2;
mod responses;
mod serving;
mod tls;
