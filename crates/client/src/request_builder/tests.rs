use http_body_util::BodyExt as _;

use super::*;

fn client() -> Client {
    let builder = Client::builder().dangerous_insecure();
    builder.build().expect("a client")
}

fn post() -> RequestBuilder {
    client().post("https://h.test/p")
}

#[tokio::test]
async fn steps_build_a_request() {
    let mut more = HeaderMap::new();
    more.append("x-a", HeaderValue::from_static("3"));
    more.append("x-a", HeaderValue::from_static("4"));
    let request = post()
        .header("x-a", "1")
        .header("x-b", 2)
        .headers(more)
        .header("x-b", "5")
        .body("content")
        .timeout(Duration::from_secs(1))
        .build()
        .expect("a request");
    let values = |name: &str| -> Vec<&str> {
        let values = request.headers().get_all(name).into_iter();
        values.map(|value| value.to_str().expect("text")).collect()
    };
    assert_eq!(
        (values("x-a"), values("x-b")),
        (vec!["3", "4"], vec!["2", "5"])
    );
    assert_eq!(request.method(), Method::POST);
    let timeout = request.extensions().get::<RequestTimeout>();
    assert_eq!(timeout, Some(&RequestTimeout(Duration::from_secs(1))));
    let body = request.into_body().collect().await.expect("content");
    assert_eq!(body.to_bytes(), "content");
}

#[test]
fn first_error_is_returned() {
    for (builder, kind, hint) in [
        (client().get("h.test"), ErrorKind::Url, "https://"),
        (post().header("a b", "x"), ErrorKind::Send, "name"),
        (post().header("x-a", "a\nb"), ErrorKind::Send, "'x-a'"),
        (post().bearer_auth("a\nb"), ErrorKind::Send, "token"),
        (
            post().basic_auth("a:b", Some("c")),
            ErrorKind::Send,
            "colon",
        ),
    ] {
        let error = builder.header("x-after", "y").build().expect_err(hint);
        assert_eq!(error.kind(), kind, "{hint}");
        assert!(error.to_string().contains(hint), "{error}");
    }
}

#[test]
fn credentials_are_not_shown() {
    for builder in [
        client().get("https://user:hunter2@h.test/"),
        post().basic_auth("user", Some("hunter2")),
        post().bearer_auth("hunter2"),
    ] {
        let shown = format!("{builder:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("dXNlcjpodW50ZXIy"),
            "{shown}"
        );
        let request = builder.build().expect("a request");
        assert!(request.headers().contains_key(header::AUTHORIZATION));
        assert!(!request.uri().to_string().contains('@'));
    }
    let both = client().get("https://user:pw@h.test/");
    let request = both
        .header("authorization", "own")
        .build()
        .expect("a request");
    let values: Vec<_> = request
        .headers()
        .get_all(header::AUTHORIZATION)
        .iter()
        .collect();
    assert_eq!(values, ["own"]);
    let none: Option<&str> = None;
    let request = post().basic_auth("user", none).build().expect("a request");
    assert_eq!(request.headers()[header::AUTHORIZATION], "Basic dXNlcjo=");
}

#[test]
fn only_content_in_memory_is_cloned() {
    let copy = post()
        .header("x-a", "1")
        .body("x")
        .try_clone()
        .expect("a copy");
    let request = copy.build().expect("a request");
    assert_eq!(
        (request.uri().path(), &request.headers()["x-a"]),
        ("/p", &HeaderValue::from_static("1"))
    );
    let body = Body::wrap(http_body_util::StreamBody::new(
        futures_util::stream::pending::<Result<http_body::Frame<bytes::Bytes>, Error>>(),
    ));
    assert!(post().body(body).try_clone().is_none());
    assert!(client().get("nonsense").try_clone().is_none());
}

#[cfg(feature = "form")]
#[tokio::test]
async fn parameters_are_added_to_the_query_or_are_the_form() {
    #[derive(serde::Serialize)]
    struct Search {
        q: &'static str,
        page: Option<u32>,
        tag: Vec<&'static str>,
    }
    let search = Search {
        q: "a&b=\u{fc}",
        page: None,
        tag: vec!["x", "y"],
    };
    for (url, expected) in [
        ("https://h.test", "/?q=a%26b%3D%C3%BC&tag=x&tag=y"),
        (
            "https://h.test/p?a=1",
            "/p?a=1&q=a%26b%3D%C3%BC&tag=x&tag=y",
        ),
        ("https://h.test/p?", "/p?q=a%26b%3D%C3%BC&tag=x&tag=y"),
    ] {
        let request = client().get(url).query(&search).build().expect("a request");
        let target = request.uri().path_and_query().expect("a path");
        assert_eq!(target.as_str(), expected, "{url}");
    }
    let none: [(&str, &str); 0] = [];
    let request = client().get("https://h.test/p").query(&none).build();
    assert_eq!(request.expect("a request").uri().query(), None);
    let request = post().form(&[("a", "b c")]).build().expect("a request");
    let kind = &request.headers()[header::CONTENT_TYPE];
    assert_eq!(kind, "application/x-www-form-urlencoded");
    let body = request.into_body().collect().await.expect("content");
    assert_eq!(body.to_bytes(), "a=b+c");
    let error = post().query("text").build().expect_err("no pairs");
    assert_eq!(error.kind(), ErrorKind::Url);
}

#[cfg(feature = "json")]
#[tokio::test]
async fn json_is_content_with_its_type() {
    let request = post().json(&[1, 2]).build().expect("a request");
    assert_eq!(request.headers()[header::CONTENT_TYPE], "application/json");
    let body = request.into_body().collect().await.expect("content");
    assert_eq!(body.to_bytes(), "[1,2]");
    let own = post()
        .header("content-type", "application/ld+json")
        .json(&1);
    let request = own.build().expect("a request");
    assert_eq!(
        request.headers()[header::CONTENT_TYPE],
        "application/ld+json"
    );
    let keys = std::collections::HashMap::from([(vec![1], 2)]);
    let error = post().json(&keys).build().expect_err("keys are text");
    assert_eq!(error.kind(), ErrorKind::RequestBody);
}
