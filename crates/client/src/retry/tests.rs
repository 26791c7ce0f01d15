use http::HeaderValue;

use super::super::timing::Timing;
use super::*;

fn response(status: u16, retry_after: Option<&'static str>) -> Result<Response<Body>, Error> {
    let mut response = Response::new(Body::nothing(Timing::new()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    if let Some(value) = retry_after {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    Ok(response)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn statuses_and_methods_decide_about_a_retry() {
    let policy = RetryPolicy::new();
    for (status, method, is_repeated) in [
        (503, Method::GET, true),
        (429, Method::PUT, true),
        (503, Method::POST, false),
        (500, Method::GET, false),
        (404, Method::GET, false),
        (200, Method::GET, false),
    ] {
        let wait = policy.wait_after(&response(status, None), &method, 0);
        assert_eq!(wait.is_some(), is_repeated, "{status} {method}");
    }
    let all = policy.clone().all_methods(true);
    assert!(
        all.wait_after(&response(503, None), &Method::POST, 0)
            .is_some()
    );
    let last = policy.wait_after(&response(503, None), &Method::GET, 3);
    assert_eq!(last, None, "three retries");
    let own = policy.statuses([StatusCode::IM_A_TEAPOT]);
    assert!(
        own.wait_after(&response(418, None), &Method::GET, 0)
            .is_some()
    );
    assert_eq!(own.wait_after(&response(503, None), &Method::GET, 0), None);
}

#[test]
fn retry_after_is_honoured_up_to_its_limit() {
    let policy = RetryPolicy::new().longest_retry_after(5 * SECOND);
    let wait = |value| policy.wait_after(&response(503, Some(value)), &Method::GET, 0);
    assert_eq!(wait("5"), Some(5 * SECOND));
    assert_eq!(wait("6"), None);
    assert_eq!(wait("99999999999999999999999"), None);
    // Before its own delay.
    assert!(wait("0").is_some_and(|wait| wait >= Duration::from_millis(50)));
    assert!(wait("soon").is_some_and(|wait| wait < SECOND), "malformed");
    assert!(wait("Sun, 06 Nov 1994 08:49:37 GMT").is_some_and(|wait| wait < SECOND));
    assert_eq!(wait("Fri, 31 Dec 9999 23:59:59 GMT"), None);
}

#[test]
fn delays_double_up_to_the_longest_and_are_shortened_by_at_most_half() {
    let policy = RetryPolicy::new().delays(SECOND, 10 * SECOND);
    for (repeats, most) in [(0, 1), (1, 2), (2, 4), (3, 8), (4, 10), (100, 10)] {
        let most = most * SECOND;
        for random in [0, 1, 500, 1000, 1001, u64::MAX] {
            let delay = policy.delay(repeats, random);
            assert!(
                delay >= most / 2 && delay <= most,
                "{repeats} {random}: {delay:?}"
            );
        }
        assert_eq!(policy.delay(repeats, 0), most / 2);
        assert_eq!(policy.delay(repeats, 1000), most);
    }
}

#[test]
fn retries_of_a_failing_server_are_a_fixed_share_of_its_requests() {
    let budgets = Budgets::default();
    let origin = Origin::https("a.test", 443);
    let mut retries = 0;
    for _ in 0..1000 {
        budgets.add(&origin, 20);
        while budgets.take(&origin) {
            retries += 1;
        }
    }
    assert!((200..=210).contains(&retries), "{retries}");
    let other = Origin::https("b.test", 443);
    assert!(!budgets.take(&other), "no request was sent there");
    budgets.add(&other, 20);
    assert!(budgets.take(&other), "origins have budgets of their own");
}

#[test]
fn a_policy_without_a_budget_takes_none() {
    let (budgets, origin) = (Budgets::default(), Origin::https("a.test", 443));
    let unlimited = RetryPolicy::new().no_budget();
    budgets.on_request(&origin, &unlimited);
    assert!((0..1000).all(|_| budgets.permit(&origin, &unlimited)));
    let limited = RetryPolicy::new().budget(100);
    budgets.on_request(&origin, &limited);
    let permitted = (0..1000).filter(|_| budgets.permit(&origin, &limited));
    assert_eq!(permitted.count(), MOST as usize);
}

/// Limit K532.
#[test]
fn budgets_of_a_bounded_number_of_origins_are_kept() {
    let budgets = Budgets::default();
    for port in 1..10_000 {
        let origin = Origin::https("a.test", port);
        budgets.add(&origin, 20);
        assert!(budgets.take(&origin), "{port}");
        assert!(budgets.0.lock().len() <= MAX_ORIGINS);
    }
}
