//! All attacks. Attacks of one kind share a file.

mod acks;
mod crowd;
mod early_data;
mod frames;
mod garbage;
mod handshakes;
mod http3_frames;
mod ip_proxies;
mod key_update_flood;
mod late_acks;
mod migration_flood;
mod on_clients;
mod on_session_clients;
mod proxies;
mod qpack_bomb;
mod replay;
mod resets;
mod session_capsules;
mod session_datagrams;
mod session_requests;
mod session_streams;
mod slow;

use crate::attack::Plan;

pub use crate::attack::LARGE;
pub use crowd::{Crowd, Progress};

/// All attacks in the order in which they run.
pub const ALL: &[Plan] = &[
    garbage::PLAN,
    handshakes::INITIAL_FLOOD,
    handshakes::HALF_OPEN,
    handshakes::HANDSHAKE_FLOOD,
    slow::IDLE_STORM,
    handshakes::VERSION_DOWNGRADE,
    acks::NO_ACKS,
    acks::MUTE,
    late_acks::PLAN,
    acks::OPTIMISTIC_ACKS,
    acks::ACK_STORM,
    frames::DUPLICATE_STREAM,
    frames::GAP_BOMB,
    frames::PING_FLOOD,
    frames::MAX_DATA_FLOOD,
    frames::NEW_CONNECTION_ID_FLOOD,
    frames::RETIRE_FLOOD,
    frames::PATH_CHALLENGE_FLOOD,
    migration_flood::PLAN,
    on_clients::FORGED_PREFERRED,
    key_update_flood::PLAN,
    replay::PLAN,
    early_data::EARLY_REPLAY,
    early_data::EARLY_FLOOD,
    resets::RAPID_RESET,
    resets::RESET_AT,
    slow::NO_CREDIT,
    slow::DRIP_CREDIT,
    http3_frames::HEADER_BOMB,
    qpack_bomb::PLAN,
    http3_frames::ENCODER_FLOOD,
    slow::SLOW_HEADERS,
    slow::SLOW_BODY,
    http3_frames::TINY_DATA,
    http3_frames::SETTINGS_FLOOD,
    http3_frames::GOAWAY_FLOOD,
    http3_frames::PRIORITY_FLOOD,
    http3_frames::UNKNOWN_FRAMES,
    http3_frames::CLAIMED_STREAMS,
    http3_frames::CLAIMED_FRAMES,
    http3_frames::OVERSIZE_FRAMES,
    on_clients::BIG_TICKETS,
    on_clients::BIG_TOKENS,
    on_clients::EARLY_LIMITS,
    session_streams::EARLY,
    session_streams::LATE,
    session_streams::TINY,
    session_streams::BEYOND,
    session_streams::NUMBERS,
    session_streams::SIGNAL,
    session_streams::RESETS,
    session_requests::MANY,
    session_requests::SHORT,
    session_requests::ORIGINS,
    session_requests::SETTINGS,
    session_requests::NO_SETTINGS,
    session_capsules::NO_CLOSE,
    session_capsules::MESSAGES,
    session_capsules::UNKNOWN,
    session_capsules::LIMITS,
    session_datagrams::PLAN,
    on_session_clients::PLAN,
    proxies::TARGETS,
    proxies::PATHS,
    proxies::TUNNELS,
    proxies::DATAGRAMS,
    proxies::SILENT,
    ip_proxies::PACKETS,
    ip_proxies::CAPSULES,
];

/// Returns the attack with this name.
pub fn find(name: &str) -> Option<&'static Plan> {
    ALL.iter().find(|plan| plan.name == name)
}

#[cfg(test)]
mod tests;
