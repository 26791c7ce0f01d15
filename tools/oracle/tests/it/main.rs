//! The tables of cases against a gateway and a server of files in this process.

mod files;
mod gateway;
mod serving;
