//! Hops of requests (RFC 9110 §7.6.2, §7.6.3, §9.3.8).

use courser_oracle::{Request, Response, Script, Version};

use crate::scene::each_pair;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_without_a_hop_left_ends_at_the_proxy() {
    each_pair(async |scene, version| {
        for (hops, forwarded) in [("0", None), ("1", Some("0")), ("7", Some("6"))] {
            for target in ["*", "/a"] {
                let request = Request::new("OPTIONS", target).with("max-forwards", hops);
                let (answer, seen) = scene.exchange(version, &request).await;
                assert_eq!(answer.status(), 200, "{version} {hops}: {answer}");
                let left = seen.first().map(|seen| seen.get("max-forwards"));
                assert_eq!(left.as_deref(), forwarded, "{version} {hops}");
                assert_eq!(forwarded.is_none(), !answer.get("allow").is_empty());
            }
        }
        // Other methods ignore the field, and forward it.
        let get = Request::new("GET", "/").with("max-forwards", "0");
        assert_eq!(scene.forward(version, &get).await.get("max-forwards"), "0");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trace_is_refused() {
    each_pair(async |scene, version| {
        for hops in [None, Some("0"), Some("5")] {
            let mut request = Request::new("TRACE", "/").with("cookie", "secret=1");
            if let Some(hops) = hops {
                request = request.with("max-forwards", hops);
            }
            let (answer, seen) = scene.exchange(version, &request).await;
            assert_eq!(answer.status(), 405, "{version}: {answer}");
            assert!(
                answer.get("allow").contains("OPTIONS"),
                "{version}: {answer}"
            );
            assert!(seen.is_empty(), "{version}: {seen:?}");
        }
    })
    .await;
}

/// The value of one request is that of the next one if an upstream server leads back to the proxy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_come_back_are_refused() {
    each_pair(async |scene, version| {
        let request = Request::new("GET", "/").with("via", "1.1 other");
        let seen = scene.forward(version, &request).await;
        let via = seen.get("via");
        let own = match version {
            Version::Http1 => "1.1 other|1.1 courser-",
            Version::Http2 => "1.1 other|2.0 courser-",
            Version::Http3 => "1.1 other|3.0 courser-",
        };
        assert!(via.starts_with(own), "{version}: {via}");
        for again in [via.replace('|', ", "), via[10..].to_owned()] {
            let request = Request::new("GET", "/").with("via", again);
            let (answer, seen) = scene.exchange(version, &request).await;
            assert_eq!(answer.status(), 508, "{version}: {answer}");
            assert!(seen.is_empty(), "{version}: {seen:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn via_of_a_response_names_the_version_of_its_hop() {
    each_pair(async |scene, version| {
        let response = Response::ok().with("via", "1.0 other");
        let answer = scene.answer(version, Script::answer(response)).await;
        let own = match scene.upstream.version {
            courser_oracle::UpstreamVersion::Http1 => "1.0 other|1.1 courser-",
            courser_oracle::UpstreamVersion::H2c => "1.0 other|2.0 courser-",
        };
        assert!(answer.get("via").starts_with(own), "{version}: {answer}");
    })
    .await;
}
