//! noq: the program that measures it, and its program for the interop matrix. Both are quinn's, compiled against noq.

#[path = "../../quinn/src/endpoint.rs"]
pub mod endpoint;
#[path = "../../quinn/src/interop_program.rs"]
pub mod interop_program;
#[path = "../../quinn/src/quic_program.rs"]
pub mod quic_program;
mod stack;

use noq as api;
use peers_common::{interop, interop_tls};
