//! Servers that want the memory, the time or the secrets of a client.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_redirects_end_in_an_error() {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = count.clone();
    let server = Server::start(
        Protocols::Both,
        service(move |_| {
            let number = counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            async move { redirect(&format!("/{number}"), "") }
        }),
    )
    .await;
    for version in ALL {
        let all = RedirectPolicy::custom(|attempt| attempt.follow());
        for (policy, requests) in [(RedirectPolicy::default(), 11), (all, 101)] {
            count.store(0, std::sync::atomic::Ordering::SeqCst);
            let client = builder(&server).version(version).redirect_policy(policy);
            let client = client.build().expect("a client");
            let error = within(client.get(server.url("/")))
                .await
                .expect_err("endless");
            assert!(error.is_redirect(), "{version:?}: {error}");
            let sent = count.load(std::sync::atomic::Ordering::SeqCst);
            assert_eq!(sent, requests, "{version:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_to_files_and_data_are_refused() {
    let server = Server::start(
        Protocols::Tcp,
        service(|request| async move {
            let target = request.uri().query().expect("a target").replace("%23", "#");
            redirect(&target, "")
        }),
    )
    .await;
    let client = builder(&server).build().expect("a client");
    for target in [
        "file:///etc/passwd",
        "data:text/plain,x",
        "javascript:alert(1)",
        "ftp://example.test/",
        "unix:///run/docker.sock",
        "https://user:hunter2@:1/",
    ] {
        let url = server.url(&format!("/?{target}"));
        let error = within(client.get(url)).await.expect_err(target);
        assert!(error.is_redirect(), "{target}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

/// A server sets cookies until the client refuses: as many as a response may set, in many responses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_of_a_hostile_server_are_bounded() {
    let number = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let server = Server::start(
        Protocols::Tcp,
        service(move |request| {
            let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            async move {
                let mut response = http::Response::new(full(""));
                if let Some(cookies) = request.headers().get(header::COOKIE) {
                    *response.body_mut() = full(cookies.len().to_string());
                }
                for index in 0..60 {
                    let value = "v".repeat(300);
                    let cookie = format!("c{number}-{index}={value}; Path=/");
                    let cookie = cookie.parse().expect("a value");
                    response.headers_mut().append(header::SET_COOKIE, cookie);
                }
                for wrong in ["x=1; Domain=test", "__Host-x=1", "y=1; Domain=example.test"] {
                    let wrong = HeaderValue::from_static(wrong);
                    response.headers_mut().insert("x-wrong", wrong.clone());
                    response.headers_mut().append(header::SET_COOKIE, wrong);
                }
                response
            }
        }),
    )
    .await;
    let jar = Arc::new(CookieJar::new());
    let client = builder(&server)
        .cookie_store(jar.clone())
        .build()
        .expect("a client");
    for round in 0..6 {
        let response = within(client.get(server.url("/"))).await.expect("answered");
        let sent: usize = described(response).await.parse().unwrap_or(0);
        assert!(sent <= 8190 && (round == 0) == (sent == 0), "{sent}");
    }
    let all = jar.all();
    assert_eq!(all.len(), 180);
    assert!(all.iter().all(|cookie| cookie.name.starts_with(b"c")));
}

/// A few kilobytes become many megabytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_content_is_limited_after_decompression() {
    use tower::Layer as _;
    use tower::Service as _;
    let server = Server::start(
        Protocols::Both,
        service(|request| async move {
            let inner = tower::service_fn(|_: Request<Content>| async {
                let piece = bytes::Bytes::from(vec![0; 1 << 20]);
                let frames = (0..24).map(move |_| Ok(http_body::Frame::data(piece.clone())));
                let body = http_body_util::StreamBody::new(stream::iter(frames));
                let body: Content = body.boxed_unsync();
                Ok::<_, std::convert::Infallible>(http::Response::new(body))
            });
            let layer = tower_http::compression::CompressionLayer::new();
            let Ok(response) = layer.layer(inner).call(request).await;
            response.map(|body| body.map_err(Into::into).boxed_unsync())
        }),
    )
    .await;
    for version in ALL {
        let client = builder(&server).version(version).content_limit(4 << 20);
        let client = client.build().expect("a client");
        let bomb = || async { within(client.get(server.url("/"))).await.expect("answered") };
        for error in [
            within(bomb().await.bytes()).await.expect_err("too large"),
            within(bomb().await.text()).await.expect_err("too large"),
            within(bomb().await.json::<u8>())
                .await
                .expect_err("too large"),
        ] {
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{version:?}: {error}");
        }
        let mut response = bomb().await;
        let piece = within(response.chunk())
            .await
            .expect("a piece")
            .expect("content");
        assert!(piece.len() <= 1 << 20, "pieces are small");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_to_insecure_urls_can_be_refused() {
    let server = Server::start(
        Protocols::Tcp,
        service(|_| async { redirect("http://localhost:1/", "") }),
    )
    .await;
    let client = builder(&server).https_only(true).build().expect("a client");
    for url in [server.url("/"), "http://localhost:1/".to_owned()] {
        let error = within(client.get(&url)).await.expect_err("insecure");
        assert_eq!(error.kind(), ErrorKind::Url, "{error}");
        assert!(error.to_string().contains("https"), "{error}");
    }
}
