//! Attacks on the HTTP/3 layer of a server.

use std::time::Duration;

use crate::harness::{attack, attack_on_extension};

const SECOND: Duration = Duration::from_secs(1);

/// H3_EXCESSIVE_LOAD (RFC 9114 §8.1).
const EXCESSIVE_LOAD: &str = "H3 0x107";

/// The transport slows the attack down before the connection ends (K15, K270).
#[test]
fn rapid_resets_are_excessive_load() {
    attack("rapid-reset", 8 * SECOND)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(2 * 1024);
}

/// Each of fifty clients gets a hundred large responses and grants no credit. A hundred requests in
/// progress take 320 KiB on both ends together. 256 KiB of content for each client would exceed the bound.
#[test]
fn responses_without_credit_are_bounded() {
    attack("no-credit", 3 * SECOND)
        .assert_ran(50, 500)
        .assert_peak_below(50 * 420);
}

/// As above, with enough credit for the header sections.
#[test]
fn responses_with_drips_of_credit_are_bounded() {
    attack("drip-credit", 5 * SECOND)
        .assert_ran(50, 500)
        .assert_peak_below(50 * 470);
}

/// Each header bomb ends only its own request, with 431, and no part of the section is stored.
#[test]
fn header_bombs_are_tolerated() {
    attack("header-bomb", SECOND / 4)
        .assert_tolerated()
        .assert_peak_below(4 * 1024);
}

/// Each reference has one byte and decodes to four kilobytes.
#[test]
fn references_of_a_qpack_bomb_are_not_stored() {
    attack("qpack-bomb", SECOND / 4)
        .assert_tolerated()
        .assert_peak_below(4 * 1024);
}

#[test]
fn endless_encoder_instructions_are_excessive_load() {
    attack("encoder-flood", SECOND).assert_closed_with(EXCESSIVE_LOAD);
}

#[test]
fn encoder_instructions_cost_no_memory() {
    attack("encoder-flood", SECOND / 4)
        .assert_ran(2, 500)
        .assert_peak_below(1024);
}

/// Five thousand requests are never completed.
#[test]
fn slow_headers_are_bounded() {
    attack("slow-headers", 20 * SECOND)
        .assert_ran(50, 500)
        .assert_peak_below(24 * 1024);
}

#[test]
fn slow_bodies_are_bounded() {
    attack("slow-body", 20 * SECOND)
        .assert_ran(50, 500)
        .assert_peak_below(24 * 1024);
}

#[test]
fn content_in_tiny_frames_is_excessive_load() {
    attack("tiny-data", SECOND / 2).assert_closed_with(EXCESSIVE_LOAD);
}

#[test]
fn content_in_tiny_frames_takes_no_memory() {
    attack("tiny-data", SECOND / 8)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(2 * 1024);
}

#[test]
fn endless_settings_are_excessive_load() {
    attack("settings-flood", SECOND / 2)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(2 * 1024);
}

#[test]
fn endless_goaways_are_excessive_load() {
    attack("goaway-flood", SECOND / 2)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(2 * 1024);
}

#[test]
fn priorities_of_missing_requests_are_excessive_load() {
    attack("priority-flood", SECOND / 2)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(2 * 1024);
}

#[test]
fn endless_unknown_frames_are_excessive_load() {
    attack("unknown-frames", SECOND / 2)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(2 * 1024);
}

/// The application accepts none of the streams. 64 wait, and the refusal of the others uses up the budget of the
/// connection for frames without progress.
#[test]
fn claimed_streams_that_are_not_accepted_are_excessive_load() {
    attack_on_extension("claimed-streams", 3 * SECOND)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(4 * 1024);
}

/// The same streams at a server without the extension. Those in both directions are malformed requests,
/// which end the connection with H3_FRAME_ERROR.
#[test]
fn streams_of_unknown_types_cost_no_memory() {
    attack("claimed-streams", SECOND / 2)
        .assert_ran(2, 1000)
        .assert_closed_with("H3 0x106")
        .assert_peak_below(2 * 1024);
}

#[test]
fn claimed_frames_that_are_not_taken_are_excessive_load() {
    attack_on_extension("claimed-frames", SECOND)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(4 * 1024);
}

/// Flow control and the number of requests bound the bytes of frames whose last byte never arrives.
#[test]
fn oversize_frames_are_excessive_load_and_unfinished_ones_are_bounded() {
    attack_on_extension("oversize-frames", SECOND / 2)
        .assert_closed_with(EXCESSIVE_LOAD)
        .assert_peak_below(8 * 1024);
}

/// Half of the streams wait for bytes that never arrive. They use up the stream limit of their connection (K14) and
/// nothing else.
#[test]
fn resets_that_announce_more_bytes_take_streams_and_no_memory() {
    let outcome = attack("reset-at", 2 * SECOND);
    assert!(outcome.sent > 50, "{outcome:?}");
    outcome.assert_tolerated().assert_peak_below(2 * 1024);
}
