//! The tables of cases: for a gateway, through every pair of client and upstream version, and for a server of files, over every
//! version. A square that stays empty is an error.

mod content;
mod control;
mod cut;
mod fields;
mod malformed;
pub mod origin;
mod own;
mod same;
mod status;
mod sweep;
mod timing;

pub use content::content;
pub use control::{authorities, targets};
pub use cut::{requests_that_are_cut, responses_that_are_cut};
pub use fields::{listed_in_connection, request_fields, response_fields, trailers};
pub use malformed::malformed;
pub use own::{max_forwards, own_fields};
pub use same::same_over_all_versions;
pub use status::{interim_responses, statuses};
pub use sweep::bytes;
pub use timing::{answers_before_the_end, answers_that_never_come, answers_twice};
