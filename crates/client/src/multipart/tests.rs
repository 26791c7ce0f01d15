use futures_util::stream;
use http_body_util::BodyExt as _;

use super::*;

/// Returns the bytes of a form as text, with a short boundary.
async fn text_of(form: Form) -> String {
    let boundary = form.boundary().to_owned();
    let body = form.into_body();
    let hint = body.size_hint().exact();
    let bytes = body.collect().await.expect("a form").to_bytes();
    assert!(hint.is_none_or(|hint| hint == bytes.len() as u64));
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    text.replace(&boundary, "B")
}

#[tokio::test]
async fn parts_are_separated_by_the_boundary() {
    let form = Form::new()
        .text("a", "1")
        .part("f", Part::bytes("x").file_name("n.txt"))
        .part(
            "g",
            Part::bytes("{}").mime("application/json").expect("a type"),
        );
    let expected = "--B\r\n\
                    Content-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\n\
                    Content-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\n\
                    Content-Type: application/octet-stream\r\n\r\nx\r\n--B\r\n\
                    Content-Disposition: form-data; name=\"g\"\r\n\
                    content-type: application/json\r\n\r\n{}\r\n--B--\r\n";
    assert_eq!(text_of(form).await, expected);
    assert_eq!(text_of(Form::new()).await, "--B--\r\n");
}

/// A name that ends its quotes or its line would add fields or parts.
#[tokio::test]
async fn names_cannot_add_fields() {
    let evil = "a\"\r\nX-Evil: 1\r\n\r\n--";
    let form = Form::new().part(evil, Part::text("v").file_name(evil));
    let text = text_of(form).await;
    assert!(
        text.contains("name=\"a%22%0D%0AX-Evil: 1%0D%0A%0D%0A--\"; filename=\"a%22%0D%0AX-Evil"),
        "{text}"
    );
    let mut headers = HeaderMap::new();
    let other = HeaderValue::from_static("form-data; name=\"other\"");
    headers.insert(header::CONTENT_DISPOSITION, other);
    let text = text_of(Form::new().part("a", Part::text("v").headers(headers))).await;
    assert!(!text.contains("other"), "{text}");
    let text = text_of(Form::new().text("a\rb\nc\r\nd", "line\nline")).await;
    assert!(text.contains("\"a%0D%0Ab%0D%0Ac%0D%0Ad\""), "{text}");
    assert!(
        text.contains("\r\n\r\nline\nline\r\n"),
        "values are kept: {text}"
    );
    let text = text_of(Form::new().text("\u{fc}\\", "v")).await;
    assert!(text.contains("name=\"\u{fc}\\\""), "{text}");
}

#[tokio::test]
async fn length_is_known_if_those_of_all_parts_are() {
    let pieces = || stream::iter(["one", "two"].map(Ok::<_, io::Error>));
    let known = Part::stream_with_length(Body::from_stream(pieces()), 6);
    let form = Form::new().text("a", "b").part("f", known);
    assert!(text_of(form).await.contains("onetwo\r\n"));
    let form = Form::new().part("f", Part::stream(Body::from_stream(pieces())));
    assert_eq!(form.into_body().size_hint().exact(), None);
    for (length, text) in [(7, "1 bytes before"), (5, "longer")] {
        let part = Part::stream_with_length(Body::from_stream(pieces()), length);
        let body = Form::new().part("f", part).into_body();
        let error = body.collect().await.expect_err("another length");
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[tokio::test]
async fn files_are_read_with_their_names() {
    let path = std::env::temp_dir().join(format!("courser-form-{}.bin", std::process::id()));
    let content = vec![7; 200_000];
    std::fs::write(&path, &content).expect("written");
    let form = Form::new().file("f", &path).await.expect("opened");
    let body = form.into_body();
    let hint = body.size_hint().exact().expect("a length");
    let bytes = body.collect().await.expect("read").to_bytes();
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(bytes.len() as u64, hint);
    let name = path.file_name().expect("a name").to_string_lossy();
    let head = format!("filename=\"{name}\"");
    let found = bytes
        .windows(head.len())
        .any(|part| part == head.as_bytes());
    assert!(found && bytes.windows(1000).any(|part| part == &content[..1000]));
    assert!(Form::new().file("f", "/no/such/file").await.is_err());
}

#[tokio::test]
async fn files_have_the_media_types_of_their_names() {
    let folder = std::env::temp_dir().join(format!("courser-types-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("created");
    let type_line = |name: &'static str| {
        let path = folder.join(name);
        async move {
            std::fs::write(&path, "x").expect("written");
            let text = text_of(Form::new().file("f", path).await.expect("opened")).await;
            let lines = text.lines().map(str::to_ascii_lowercase);
            let kinds: Vec<_> = lines
                .filter(|line| line.starts_with("content-type"))
                .collect();
            kinds.join("|")
        }
    };
    assert_eq!(type_line("a.PNG").await, "content-type: image/png");
    assert_eq!(type_line("b.pdf").await, "content-type: application/pdf");
    for unknown in ["c", "d.unknown-kind"] {
        let expected = "content-type: application/octet-stream";
        assert_eq!(type_line(unknown).await, expected);
    }
    let part = Part::file(folder.join("a.PNG")).await.expect("opened");
    let own = Form::new().part("f", part.mime("image/webp").expect("a type"));
    let text = text_of(own).await;
    assert!(
        text.contains("image/webp") && !text.contains("image/png"),
        "{text}"
    );
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn boundaries_are_random_and_types_are_checked() {
    let (one, other) = (Form::new(), Form::new());
    assert_ne!(one.boundary(), other.boundary());
    assert_eq!(one.boundary().len(), "courser-boundary-".len() + 32);
    for wrong in [
        "",
        "text",
        "text/",
        "/x",
        "a b/c",
        "text/plain\r\nx: y",
        "a/b/c",
    ] {
        assert!(Part::text("x").mime(wrong).is_err(), "{wrong}");
    }
    for right in ["text/plain", "text/plain; charset=utf-8", "image/svg+xml"] {
        assert!(Part::text("x").mime(right).is_ok(), "{right}");
    }
}
