//! `--proxy` in the process of the tests: the same services as in the binary, without its log.

use std::time::Duration;

use courser_oracle::{Findings, Gateway, Lab, cases};
use courser_services::{Backend, Proxy, ProxyTimes, Site};

use crate::serving;

/// Starts a server that forwards to `url`.
async fn start(url: &str) -> Gateway {
    let times = ProxyTimes {
        connect: Duration::from_secs(5),
        response: Duration::from_millis(500),
        body: Duration::from_secs(5),
    };
    let backend = Backend::parse(url).expect("a URL");
    let site = Site::Proxy(Box::new(Proxy::new(backend, times)));
    serving::start(site)
}

/// Runs a table.
fn run(table: impl AsyncFnOnce(&mut Lab) -> Findings) {
    let findings = serving::block_on(async {
        let mut lab = Lab::start(start).await;
        table(&mut lab).await
    });
    findings.finish();
}

#[test]
fn content_arrives_whatever_the_method_and_the_framing() {
    run(cases::content);
}

#[test]
fn one_authority_arrives_or_none() {
    run(cases::authorities);
}

#[test]
fn targets_arrive_byte_for_byte_or_not_at_all() {
    run(cases::targets);
}

#[test]
fn request_fields_pass_or_are_removed() {
    run(cases::request_fields);
}

#[test]
fn response_fields_pass_or_are_removed() {
    run(cases::response_fields);
}

#[test]
fn fields_that_connection_lists_are_removed() {
    run(cases::listed_in_connection);
}

#[test]
fn trailers_carry_nothing_that_frames_routes_or_authenticates() {
    run(cases::trailers);
}

#[test]
fn one_request_is_the_same_over_all_versions() {
    run(cases::same_over_all_versions);
}

#[test]
fn statuses_pass_unless_they_do_not_exist() {
    run(cases::statuses);
}

#[test]
fn the_gateway_names_the_client_and_itself() {
    run(cases::own_fields);
}

#[test]
fn hops_are_counted() {
    run(cases::max_forwards);
}

#[test]
fn interim_responses_pass_over_all_versions() {
    run(cases::interim_responses);
}

#[test]
fn each_byte_passes_unchanged_or_is_refused_alike() {
    run(cases::bytes);
}

#[test]
fn malformed_requests_are_answered_and_harm_nobody_beside_them() {
    run(cases::malformed);
}

#[test]
fn requests_that_are_cut_never_arrive_complete() {
    run(cases::requests_that_are_cut);
}

#[test]
fn responses_that_are_cut_never_arrive_complete() {
    run(cases::responses_that_are_cut);
}

#[test]
fn answers_before_the_end_of_the_content_arrive() {
    run(cases::answers_before_the_end);
}

#[test]
fn second_responses_reach_no_request() {
    run(cases::answers_twice);
}

#[test]
fn invalid_responses_become_errors() {
    run(cases::answers_that_never_come);
}
