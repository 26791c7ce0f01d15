//! The client as a library: requests built step by step, responses with conversions, redirects with their history,
//! cookies, credentials in URLs, and layers.

mod hostile;
mod layers;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::client::multipart::{Form, Part};
use courser::client::{CookieJar, ErrorKind, HttpVersion, RedirectPolicy, Response};
use futures_util::{TryStreamExt as _, stream};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt as _;

use super::server::{Content, Protocols, Server, Service, full, service};
use super::*;

const ALL: [HttpVersion; 3] = [
    HttpVersion::Http3Only,
    HttpVersion::Http2,
    HttpVersion::Http1,
];

/// Returns a redirect that sets a cookie.
fn redirect(target: &str, cookie: &str) -> http::Response<Content> {
    let mut response = http::Response::new(full("moved"));
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, target.parse().expect("a value"));
    if !cookie.is_empty() {
        headers.insert(header::SET_COOKIE, cookie.parse().expect("a value"));
    }
    response
}

/// Returns a service that describes each request: method, target, some fields and content.
fn describing() -> Service {
    service(|request| async move {
        let (parts, body) = request.into_parts();
        let content = body.collect().await.expect("content").to_bytes();
        let field = |name: header::HeaderName| {
            let value = parts.headers.get(name);
            value.map_or("-", |value| value.to_str().expect("text"))
        };
        let text = format!(
            "{} {} type={} auth={} agent={} {}",
            parts.method,
            parts.uri.path_and_query().expect("a path"),
            field(header::CONTENT_TYPE),
            field(header::AUTHORIZATION),
            field(header::USER_AGENT),
            String::from_utf8_lossy(&content),
        );
        http::Response::new(full(text))
    })
}

async fn described(response: Response) -> String {
    within(response.text()).await.expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_built_over_all_protocols() {
    let server = Server::start(Protocols::Both, describing()).await;
    for version in ALL {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/default"),
        );
        let client = builder(&server)
            .version(version)
            .user_agent("library/1")
            .default_headers(headers)
            .build()
            .expect("a client");
        let base = server.url("");
        for (request, expected) in [
            (
                client.get(format!("{base}/a b?x=\u{fc}#part")),
                "GET /a%20b?x=%C3%BC type=text/default auth=- agent=library/1 ",
            ),
            (
                client
                    .post(format!("{base}/p"))
                    .json(&[1])
                    .query(&[("q", "1 2")]),
                "POST /p?q=1+2 type=application/json auth=- agent=library/1 [1]",
            ),
            (
                client.put(format!("{base}/p")).form(&[("a", "b&c")]),
                "PUT /p type=application/x-www-form-urlencoded auth=- agent=library/1 a=b%26c",
            ),
            (
                client
                    .patch(format!("{base}/p"))
                    .basic_auth("user", Some("pw"))
                    .body("x"),
                "PATCH /p type=text/default auth=Basic dXNlcjpwdw== agent=library/1 x",
            ),
            (
                client.delete(format!("{base}/p")).bearer_auth("t"),
                "DELETE /p type=text/default auth=Bearer t agent=library/1 ",
            ),
            (
                client.get(base.replace("https://", "https://user:pw@")),
                "GET / type=text/default auth=Basic dXNlcjpwdw== agent=library/1 ",
            ),
        ] {
            let response = within(request).await.expect("answered");
            assert!(!response.url().to_string().contains('@'));
            assert_eq!(response.remote_addr(), Some(server.address));
            assert_eq!(described(response).await, expected, "{version:?}");
        }
        let head = within(client.head(&base)).await.expect("answered");
        assert_eq!(described(head).await, "", "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_with_files_stream_over_all_protocols() {
    let server = Server::start(Protocols::Both, describing()).await;
    for version in ALL {
        let client = builder(&server).version(version).build().expect("a client");
        let piece = bytes::Bytes::from(vec![b'x'; 50_000]);
        let pieces = (0..20).map(move |_| Ok::<_, std::io::Error>(piece.clone()));
        let pieces = courser::client::Body::from_stream(stream::iter(pieces));
        let form = Form::new()
            .text("title", "a title")
            .part("file", Part::stream(pieces).file_name("x.bin"));
        let boundary = form.boundary().to_owned();
        let request = client.post(server.url("/")).multipart(form);
        let response = within(request).await.expect("answered");
        let text = described(response).await;
        assert!(text.contains(&format!("multipart/form-data; boundary={boundary}")));
        assert!(text.contains("\r\n\r\na title\r\n") && text.contains("filename=\"x.bin\""));
        assert!(text.ends_with(&format!("xxx\r\n--{boundary}--\r\n")));
        assert!(text.len() > 1_000_000, "{version:?}");
    }
}

/// The tasks that return a connection may be too late for the next request, but not each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_over_http1_keep_their_connection() {
    const RUNS: usize = 10;
    for (path, keeps) in [("/login", true), ("/large", false)] {
        let server = Server::start(
            Protocols::Http1,
            service(|request| async move {
                let mut response = redirect("/home", "");
                match request.uri().path() {
                    "/home" => return http::Response::new(full("home")),
                    "/large" => *response.body_mut() = full(vec![7; 1 << 20]),
                    _ => {}
                }
                response
            }),
        )
        .await;
        for _ in 0..RUNS {
            let client = client(&server);
            let response = within(client.get(server.url(path)))
                .await
                .expect("answered");
            assert_eq!(described(response).await, "home");
        }
        let (_, connections) = server.connections.counts();
        assert_eq!(connections < 2 * RUNS, keeps, "{path}: {connections}");
    }
}

/// Returns a service with a login: it redirects twice, and each redirect sets a cookie.
fn login() -> Service {
    service(|request| async move {
        match request.uri().path() {
            "/login" => redirect("/step", "one=1; Path=/"),
            "/step" => redirect("/home", "two=2; Path=/"),
            _ => {
                let cookies = request.headers().get(header::COOKIE);
                let cookies = cookies.map_or("", |value| value.to_str().expect("text"));
                http::Response::new(full(cookies.to_owned()))
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn login_by_redirects_keeps_the_cookies_of_every_hop() {
    let server = Server::start(Protocols::Both, login()).await;
    for version in ALL {
        let jar = Arc::new(CookieJar::new());
        let client = builder(&server)
            .version(version)
            .cookie_store(jar.clone())
            .build()
            .expect("a client");
        let login = client.post(server.url("/login")).body("user=me");
        let response = within(login.header("cookie", "own=0"))
            .await
            .expect("answered");
        assert_eq!(response.url(), server.url("/home").as_str(), "{version:?}");
        let hops: Vec<_> = response.history().iter().collect();
        let paths: Vec<_> = hops.iter().map(|hop| hop.url.path()).collect();
        assert_eq!(paths, ["/login", "/step"]);
        assert_eq!(
            (hops[0].method.as_str(), hops[0].status),
            ("POST", StatusCode::FOUND)
        );
        assert_eq!(hops[1].headers[header::SET_COOKIE], "two=2; Path=/");
        assert_eq!(described(response).await, "own=0; one=1; two=2");
        // Cookies of other hosts are not sent, and those of this one are.
        let other = server.url("/home").replace("localhost", "example.test");
        let response = within(client.get(other)).await.expect("answered");
        assert_eq!(described(response).await, "");
        let response = within(client.get(server.url("/home")))
            .await
            .expect("answered");
        assert_eq!(described(response).await, "one=1; two=2");
        assert_eq!(jar.all().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policy_decides_about_each_redirect() {
    let server = Server::start(Protocols::Tcp, login()).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let policy = RedirectPolicy::custom(move |attempt| {
        let hops = attempt.previous().len();
        let entry = (attempt.url().path().to_owned(), attempt.status(), hops);
        log.lock().expect("no panic").push(entry);
        match attempt.url().path() {
            "/home" => attempt.stop(),
            _ => attempt.follow(),
        }
    });
    let client = builder(&server)
        .redirect_policy(policy)
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/login")))
        .await
        .expect("answered");
    assert_eq!(response.status(), StatusCode::FOUND);
    assert_eq!(response.headers()[header::LOCATION], "/home");
    assert_eq!(
        (response.url().path(), response.history().len()),
        ("/step", 1)
    );
    let cookies: Vec<_> = response.cookies().collect();
    assert_eq!((cookies.len(), &cookies[0].name[..]), (1, &b"two"[..]));
    let expected = [("/step", 1), ("/home", 2)];
    let expected = expected.map(|(path, hops)| (path.to_owned(), StatusCode::FOUND, hops));
    assert_eq!(*seen.lock().expect("no panic"), expected);
    let refusing = RedirectPolicy::custom(|attempt| attempt.error("not today"));
    let client = builder(&server)
        .redirect_policy(refusing)
        .build()
        .expect("a client");
    let error = within(client.get(server.url("/login")))
        .await
        .expect_err("refused");
    assert!(
        error.is_redirect() && error.to_string().contains("not today"),
        "{error}"
    );
    let client = builder(&server)
        .redirect_policy(RedirectPolicy::none())
        .build();
    let response = within(client.expect("a client").get(server.url("/login"))).await;
    assert_eq!(
        response.expect("answered").headers()[header::LOCATION],
        "/step"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_of_a_url_stay_with_its_origin() {
    let server = Server::start(
        Protocols::Tcp,
        service(|request| async move {
            let auth = request.headers().get(header::AUTHORIZATION);
            let auth = auth
                .map_or("-", |value| value.to_str().expect("text"))
                .to_owned();
            let port = request
                .uri()
                .authority()
                .and_then(|it| it.port_u16())
                .unwrap_or(0);
            match request.uri().path() {
                "/here" => redirect("/end", ""),
                "/away" => redirect(&format!("https://example.test:{port}/end"), ""),
                "/with" => redirect(&format!("https://new:pw@example.test:{port}/end"), ""),
                _ => http::Response::new(full(auth)),
            }
        }),
    )
    .await;
    let client = builder(&server)
        .version(HttpVersion::Http2)
        .build()
        .expect("a client");
    for (path, expected) in [
        ("/here", "Basic dXNlcjpwdw=="),
        ("/away", "-"),
        ("/with", "Basic bmV3OnB3"),
    ] {
        let url = server.url(path).replace("https://", "https://user:pw@");
        let response = within(client.get(&url)).await.expect("answered");
        let shown = format!("{response:?} {:?}", response.history());
        assert!(!shown.contains("pw"), "{shown}");
        assert_eq!(described(response).await, expected, "{path}");
        // The same with a request of the http crate.
        let request = Request::get(&url)
            .body(courser::h3::Empty)
            .expect("a request");
        let response = within(client.send(request)).await.expect("answered");
        assert_eq!(described(response.into()).await, expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_limit_of_a_request_includes_its_content() {
    let server = Server::start(
        Protocols::Both,
        service(|request| async move {
            if request.uri().path() == "/never" {
                std::future::pending::<()>().await;
            }
            let endless = stream::unfold((), |()| async {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let frame = http_body::Frame::data(bytes::Bytes::from_static(b"x"));
                Some((Ok::<_, std::io::Error>(frame), ()))
            });
            let body = http_body_util::StreamBody::new(endless);
            http::Response::new(Content::new(http_body_util::BodyExt::map_err(
                body,
                Into::into,
            )))
        }),
    )
    .await;
    for version in ALL {
        let long = Duration::from_secs(60);
        let client = builder(&server)
            .version(version)
            .timeout(long)
            .build()
            .expect("a client");
        let limited = |path: &str| {
            let get = client.get(server.url(path));
            get.timeout(Duration::from_millis(300))
        };
        let error = within(limited("/never")).await.expect_err("no response");
        assert!(error.is_timeout(), "{version:?}: {error}");
        let mut response = within(limited("/endless")).await.expect("a header section");
        assert!(within(response.chunk()).await.expect("a piece").is_some());
        let error = within(response.bytes()).await.expect_err("endless");
        assert!(error.is_timeout(), "{version:?}: {error}");
        // A limit beyond the clock is none.
        let request = client.get(server.url("/endless")).timeout(Duration::MAX);
        let mut response = within(request).await.expect("a header section");
        assert!(within(response.chunk()).await.expect("a piece").is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_are_converted() {
    let server = Server::start(
        Protocols::Both,
        service(|request| async move {
            let mut response = http::Response::new(full("{\"a\": [1, 2]}"));
            if request.uri().path() == "/404" {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            response
        }),
    )
    .await;
    for version in ALL {
        let client = builder(&server).version(version).build().expect("a client");
        let get = || async {
            within(client.get(server.url("/x")))
                .await
                .expect("answered")
        };
        let value: std::collections::HashMap<String, Vec<u8>> =
            within(get().await.json()).await.expect("JSON");
        assert_eq!(value["a"], [1, 2]);
        let error = within(get().await.json::<Vec<u8>>())
            .await
            .expect_err("an object");
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert!(error.to_string().contains("/x"), "{error}");
        let pieces = within(get().await.bytes_stream().try_collect::<Vec<_>>()).await;
        assert_eq!(pieces.expect("content").concat(), b"{\"a\": [1, 2]}");
        let response = within(client.get(server.url("/404")))
            .await
            .expect("answered");
        assert_eq!(response.content_length(), Some(13));
        let error = response.error_for_status().expect_err("404");
        assert_eq!(error.status(), Some(StatusCode::NOT_FOUND));
        assert!(
            error.to_string().contains("/404") && error.timing().is_some(),
            "{error}"
        );
    }
}
