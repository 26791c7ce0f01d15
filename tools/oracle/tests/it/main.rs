//! The tables of cases against a gateway in this process.

mod gateway;
