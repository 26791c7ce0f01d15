//! The table of fields, on the wire (RFC 9110 §5.1, §6.5.1, §7.6.1).

use courser_oracle::{
    Client, Content, Ending, Request, Response, Script, Seen, UpstreamVersion, Version, When, h3,
};
use courser_services::{FIELD_RULES, FieldAction, FieldRule};

use crate::scene::{Scene, each_pair};

/// Fields that a message with this framing cannot have, because its sender's protocol forbids them.
fn is_forbidden(name: &str, is_http1: bool) -> bool {
    // Their values have meanings of their own, which other tests cover.
    let is_special = [
        "connection",
        "transfer-encoding",
        "content-length",
        "host",
        "te",
        "trailer",
        "upgrade",
    ];
    let is_hop = ["keep-alive", "proxy-connection"];
    is_special.contains(&name) || !is_http1 && is_hop.contains(&name)
}

fn names(is_http1: bool) -> impl Iterator<Item = (&'static FieldRule, String)> {
    FIELD_RULES.iter().filter_map(move |rule| {
        let name = rule.name.replace('*', "anything");
        (!is_forbidden(&name, is_http1)).then_some((rule, name))
    })
}

fn check(rule: &FieldRule, action: FieldAction, value: &str, case: &str) {
    let name = rule.name;
    match action {
        FieldAction::Forward => assert_eq!(value, "evil-7", "{case}: {name}"),
        FieldAction::Remove => assert_eq!(value, "", "{case}: {name}"),
        FieldAction::Replace => assert!(!value.contains("evil-7"), "{case}: {name}: {value}"),
        FieldAction::Adjust => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_follow_the_table() {
    each_pair(async |scene, version| {
        let mut request = Request::new("GET", "/").with("x-kept", "evil-7");
        for (_, name) in names(version == Version::Http1) {
            let name = match version {
                Version::Http1 => name.to_ascii_uppercase(),
                _ => name,
            };
            request = request.with(name, "evil-7");
        }
        let seen = scene.forward(version, &request).await;
        let case = format!("{version} {}", scene.upstream.version);
        assert_eq!(seen.get("x-kept"), "evil-7", "{case}");
        for (rule, name) in names(version == Version::Http1) {
            check(rule, rule.request, &seen.get(&name), &case);
        }
    })
    .await;
}

/// Names that CGI and its successors read as the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_with_other_punctuation_follow_the_table() {
    for keeps_underscores in [false, true] {
        for upstream in UpstreamVersion::ALL {
            let settings =
                |proxy: courser_services::Proxy| proxy.with_underscores(keeps_underscores);
            let scene = Scene::start_with(upstream, settings, false).await;
            for version in Version::ALL {
                // Not more at once than all versions accept.
                for names in names_like_those_of_the_table().chunks(40) {
                    let mut request = Request::new("GET", "/")
                        .with("user_id", "7")
                        .with("a.b", "7");
                    for name in names {
                        request = request.with(name, "evil-7");
                    }
                    let seen = scene.forward(version, &request).await;
                    for name in names {
                        assert!(!seen.get(name).contains("evil-7"), "{version}: {name}");
                    }
                    let kept = if keeps_underscores { "7" } else { "" };
                    assert_eq!(seen.get("user_id"), kept, "{version}: {seen}");
                    assert_eq!(seen.get("a.b"), "7", "{version}: {seen}");
                }
            }
        }
    }
}

fn names_like_those_of_the_table() -> Vec<String> {
    let rules = FIELD_RULES.iter();
    let rules =
        rules.filter(|rule| rule.request != FieldAction::Forward && rule.name.contains('-'));
    let names = rules.map(|rule| rule.name.replace('*', "anything"));
    let spelled = names.flat_map(|name| {
        [
            name.replace('-', "_"),
            name.replacen('-', "_", 1),
            name.replace('-', "."),
        ]
    });
    spelled.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_follow_the_table() {
    each_pair(async |scene, version| {
        let is_http1 = scene.upstream.version == UpstreamVersion::Http1;
        let mut response = Response::ok()
            .with("x-kept", "evil-7")
            .with("server", "upstream");
        for (_, name) in names(is_http1) {
            response = response.with(name, "evil-7");
        }
        let seen = scene.answer(version, Script::answer(response)).await;
        let case = format!("{version} {}", scene.upstream.version);
        assert_eq!(
            (seen.status(), &*seen.content),
            (200, &b"ok"[..]),
            "{case}: {seen}"
        );
        assert_eq!(seen.get("x-kept"), "evil-7", "{case}");
        assert_eq!(seen.get("server"), "upstream", "{case}");
        for (rule, name) in names(is_http1) {
            // The server has an Alt-Svc of its own.
            let is_own = name == "alt-svc" && !seen.get(&name).contains("evil-7");
            if !is_own {
                check(rule, rule.response, &seen.get(&name), &case);
            }
        }
    })
    .await;
}

fn check_trailers(seen: &Seen, is_http1: bool, case: &str) {
    assert!(seen.is_complete(), "{case}: {seen}");
    let has = |name: &str| seen.trailers.iter().any(|it| it.0 == name.as_bytes());
    assert!(has("x-sum"), "{case}: {seen}");
    for (rule, name) in names(is_http1) {
        let is_forwarded = rule.trailer == FieldAction::Forward;
        assert_eq!(has(&name), is_forwarded, "{case}: {name}");
        // Never merged into the header section.
        let value = seen.get(&name);
        assert!(!value.contains("evil-7"), "{case}: {name}: {value}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_follow_the_table_in_both_directions() {
    each_pair(async |scene, version| {
        let case = format!("{version} {}", scene.upstream.version);
        let is_http1 = version == Version::Http1;
        let announced = |is_http1| {
            let names: Vec<_> = names(is_http1).map(|(_, name)| name).collect();
            format!("x-sum, {}", names.join(", "))
        };
        let mut request = Request::new("POST", "/")
            .with("te", "trailers")
            .with("trailer", announced(is_http1))
            .content(Content::unknown("abc"))
            .trailer("x-sum", "42")
            .trailer("x_forwarded_for", "evil-7");
        for (_, name) in names(is_http1) {
            request = request.trailer(name, "evil-7");
        }
        let is_http1_upstream = scene.upstream.version == UpstreamVersion::Http1;
        let mut response = Response::ok()
            .with("trailer", announced(is_http1_upstream))
            .trailer("x-sum", "42");
        response.content = Content::unknown("ok");
        for (_, name) in names(is_http1_upstream) {
            response = response.trailer(name, "evil-7");
        }
        scene.upstream.script(Script::Answer(When::AtEnd, response));
        let (answer, seen) = scene.exchange(version, &request).await;
        check_trailers(&seen[0], is_http1, &case);
        assert!(
            !seen[0].trailers.iter().any(|it| it.0 == b"x_forwarded_for"),
            "{case}"
        );
        assert_eq!(seen[0].get("trailer"), "x-sum", "{case}");
        check_trailers(&answer, is_http1_upstream, &case);
        assert_eq!(answer.get("trailer"), "x-sum", "{case}");
    })
    .await;
}

/// RFC 9110 §7.6.1. Fields that the proxy writes itself stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listed_fields_are_removed_unless_the_proxy_writes_them() {
    let listed = "close, X-Mine, host, via, te, forwarded, x-forwarded-for, x-forwarded-host, \
        x-forwarded-proto, content-length, keep-alive";
    for upstream in UpstreamVersion::ALL {
        let scene = Scene::start(upstream).await;
        let request = Request::new("POST", "/")
            .with("connection", listed)
            .with("x-mine", "1")
            .with("te", "trailers")
            .with("x-kept", "1")
            .content(Content::length("abc"));
        let seen = scene.forward(Version::Http1, &request).await;
        assert_eq!(seen.get("x-mine"), "", "{upstream}");
        assert_eq!(seen.get("x-kept"), "1", "{upstream}");
        assert_eq!(seen.get("host"), "localhost", "{upstream}");
        assert_eq!(seen.get("x-forwarded-for"), "127.0.0.1", "{upstream}");
        assert_eq!(seen.get("te"), "trailers", "{upstream}");
        // Of its own fields the proxy lists only those of the connection.
        let is_http1 = upstream == UpstreamVersion::Http1;
        let listed = if is_http1 { "te" } else { "" };
        assert_eq!(seen.get("connection"), listed, "{upstream}");
        assert_eq!(seen.content, b"abc", "{upstream}");
        for name in ["via", "forwarded", "x-forwarded-host", "x-forwarded-proto"] {
            assert_ne!(seen.get(name), "", "{upstream}: {name}");
        }
    }
}

/// RFC 9110 §10.1.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_is_listed_in_connection_towards_http1_only() {
    each_pair(async |scene, version| {
        let request = Request::new("GET", "/").with("te", "trailers");
        let seen = scene.forward(version, &request).await;
        assert_eq!(seen.get("te"), "trailers", "{version}");
        let connection = match scene.upstream.version {
            UpstreamVersion::Http1 => "te",
            UpstreamVersion::H2c => "",
        };
        assert_eq!(seen.get("connection"), connection, "{version}");
    })
    .await;
}

/// RFC 9112 §11.1: no field of HTTP/2 or HTTP/3 becomes a second line, or a second request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_ends_never_reach_the_upstream_server() {
    each_pair(async |scene, version| {
        if version == Version::Http1 {
            return;
        }
        let evil = "a\r\nx-evil: 1\r\n\r\nGET /evil HTTP/1.1\r\nhost: x\r\n\r\n";
        let get = || Request::new("GET", "/");
        for request in [
            get().with("x-a", evil),
            get().with(evil, "1"),
            get().with("x-a", "a\nx-evil: 1"),
            get().with("x-a", "a\0"),
            Request::new("GET", format!("/{evil}")),
            Request::new(evil, "/"),
            get().with("host", evil),
            get()
                .content(Content::unknown("abc"))
                .trailer("x-sum", evil),
        ] {
            let mut client = scene.client(version).await;
            client.exchange(&request).await;
            drop(client);
            let (answer, seen) = scene.exchange(version, &get()).await;
            assert_eq!(answer.status(), 200, "{version}: {answer}");
            let complete = seen.iter().filter(|seen| seen.is_complete());
            assert_eq!(complete.count(), 1, "{version}: {seen:?}");
            for seen in seen {
                assert_eq!(seen.start, "GET /", "{version}: {seen}");
                assert_eq!(seen.get("x-evil"), "", "{version}: {seen}");
            }
        }
    })
    .await;
}

/// RFC 9110 §5.3, RFC 9111 §5.2: lines and their values stay as they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_fields_pass_unchanged_in_both_directions() {
    let fields = [
        ("cache-control", "no-cache, X-Odd=\"a,b\" , max-age=0"),
        ("cache-control", "private=\"x\""),
        ("pragma", "no-cache"),
        ("warning", "199 - \"w\""),
        ("age", "7"),
        ("expires", "0"),
        ("authorization", "Basic  eDp5"),
        ("if-none-match", "W/\"a\", \"b\""),
        ("range", "items=1-2"),
        ("early-data", "1"),
        ("x-order", "1"),
        ("x-other", "-"),
        ("x-order", "2"),
        ("x-order", "1"),
        ("strict-transport-security", "max-age=1"),
        ("www-authenticate", "Basic realm=\"a\", Digest realm=\"b\""),
        ("set-cookie", "a=1; Path=/"),
        ("set-cookie", "b=2"),
        ("last-modified", "yesterday"),
        ("etag", "\"x\""),
        ("vary", "accept, X-A"),
        ("content-type", "text/plain;Charset=x"),
        ("content-encoding", "x-own"),
        ("content-range", "items 1-2/3"),
        ("accept-ranges", "items"),
    ];
    each_pair(async |scene, version| {
        let mut request = Request::new("GET", "/");
        let mut response = Response::new(206).content(Content::length("ok"));
        for (name, value) in fields {
            request = request.with(name, value);
            response = response.with(name, value);
        }
        scene.upstream.script(Script::answer(response));
        let (answer, seen) = scene.exchange(version, &request).await;
        assert_eq!(answer.status(), 206, "{version}: {answer}");
        for (name, _) in fields {
            let values = fields.iter().filter(|field| field.0 == name);
            let values: Vec<_> = values.map(|field| field.1).collect();
            for seen in [&seen[0], &answer] {
                assert_eq!(seen.get(name), values.join("|"), "{version}: {name}");
            }
        }
    })
    .await;
}

/// RFC 9204 §4.5.4: a field that is never indexed over HTTP/3 is never indexed over HTTP/2 either. h2 does not report such fields
/// of HTTP/2 (see docs/conformance.tsv).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_that_are_never_indexed_over_http3_stay_so_over_http2() {
    let scene = Scene::start(UpstreamVersion::H2c).await;
    let Client::Http3(mut connection) = scene.client(Version::Http3).await else {
        unreachable!("the version is HTTP/3");
    };
    // GET, https and `/` of the static table, `:authority` with its name, and the literal.
    let section = [
        &[0, 0, 0xc0 | 17, 0xc0 | 23, 0xc0 | 1, 0x50, 9][..],
        b"localhost",
        &[0x20 | 0x10 | 5],
        b"x-pin",
        &[4],
        b"1234",
    ];
    let bytes = h3::frame(h3::HEADERS, &section.concat());
    let answer = connection.raw(&bytes, Ending::Complete).await;
    assert_eq!(answer.status(), 200, "{answer}");
    let seen = scene.upstream.take().await.remove(0);
    assert_eq!(seen.get("x-pin"), "1234", "{seen}");
    assert_eq!(seen.never_indexed, [b"x-pin"], "{seen}");
}
