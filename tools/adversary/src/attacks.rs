//! All attacks, one file each.

mod ack_storm;
mod big_tickets;
mod big_tokens;
mod claimed_frames;
mod claimed_streams;
mod crowd;
mod drip_credit;
mod duplicate_stream;
mod early_flood;
mod early_limits;
mod early_replay;
mod encoder_flood;
mod forged_preferred;
mod gap_bomb;
mod garbage;
mod goaway_flood;
mod half_open;
mod handshake_flood;
mod header_bomb;
mod idle_storm;
mod initial_flood;
mod key_update_flood;
mod late_acks;
mod max_data_flood;
mod migration_flood;
mod mute;
mod new_connection_id_flood;
mod no_acks;
mod no_credit;
mod optimistic_acks;
mod oversize_frames;
mod path_challenge_flood;
mod ping_flood;
mod priority_flood;
mod qpack_bomb;
mod rapid_reset;
mod replay;
mod reset_at;
mod retire_flood;
mod settings_flood;
mod slow_body;
mod slow_headers;
mod tiny_data;
mod unknown_frames;
mod version_downgrade;

use crate::attack::Plan;

pub use crate::attack::LARGE;
pub use crowd::{Crowd, Progress};

/// All attacks in the order in which they run.
pub const ALL: &[Plan] = &[
    garbage::PLAN,
    initial_flood::PLAN,
    half_open::PLAN,
    handshake_flood::PLAN,
    idle_storm::PLAN,
    version_downgrade::PLAN,
    no_acks::PLAN,
    mute::PLAN,
    late_acks::PLAN,
    optimistic_acks::PLAN,
    ack_storm::PLAN,
    duplicate_stream::PLAN,
    gap_bomb::PLAN,
    ping_flood::PLAN,
    max_data_flood::PLAN,
    new_connection_id_flood::PLAN,
    retire_flood::PLAN,
    path_challenge_flood::PLAN,
    migration_flood::PLAN,
    forged_preferred::PLAN,
    key_update_flood::PLAN,
    replay::PLAN,
    early_replay::PLAN,
    early_flood::PLAN,
    rapid_reset::PLAN,
    reset_at::PLAN,
    no_credit::PLAN,
    drip_credit::PLAN,
    header_bomb::PLAN,
    qpack_bomb::PLAN,
    encoder_flood::PLAN,
    slow_headers::PLAN,
    slow_body::PLAN,
    tiny_data::PLAN,
    settings_flood::PLAN,
    goaway_flood::PLAN,
    priority_flood::PLAN,
    unknown_frames::PLAN,
    claimed_streams::PLAN,
    claimed_frames::PLAN,
    oversize_frames::PLAN,
    big_tickets::PLAN,
    big_tokens::PLAN,
    early_limits::PLAN,
];

/// Returns the attack with this name.
pub fn find(name: &str) -> Option<&'static Plan> {
    ALL.iter().find(|plan| plan.name == name)
}

#[cfg(test)]
mod tests;
