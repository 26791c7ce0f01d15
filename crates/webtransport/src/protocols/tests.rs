use super::*;

fn offered(lines: &[&[u8]]) -> Vec<String> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(AVAILABLE, HeaderValue::from_bytes(line).expect("a value"));
    }
    Protocols::offered(&headers).0
}

fn chosen(lines: &[&[u8]]) -> Option<String> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(CHOSEN, HeaderValue::from_bytes(line).expect("a value"));
    }
    Protocols::chosen(&headers)
}

/// draft-ietf-webtrans-http3-16 §3.3; RFC 9651 §3.1; WT-h3-040, MT-001.
#[test]
fn list_of_strings_is_read_from_one_line_or_several() {
    let expected = ["moqt-19", "moq-lite-05"];
    // As Chromium sends it.
    assert_eq!(offered(&[b"\"moqt-19\", \"moq-lite-05\""]), expected);
    assert_eq!(offered(&[b"\"moqt-19\"", b"\"moq-lite-05\""]), expected);
    assert_eq!(
        offered(&[b"  \"moqt-19\"\t ,\t\"moq-lite-05\"  "]),
        expected
    );
    assert_eq!(offered(&[br#""a\"b\\c""#]), [r#"a"b\c"#]);
    assert!(offered(&[]).is_empty() && offered(&[b""]).is_empty());
}

/// draft-ietf-webtrans-http3-16 §3.3; WT-h3-040.
#[test]
fn members_of_another_type_make_the_field_absent() {
    for line in [
        &b"\"a\", b"[..],
        b"\"a\", 1",
        b"\"a\", ?1",
        b"\"a\", :YQ==:",
        b"(\"a\")",
        b"\"a\", (\"b\")",
        b"\"a\",",
        b",\"a\"",
        b"\"a\" \"b\"",
        b"\"a",
        b"\"a\\b\"",
        b"\"a\\",
        b"\"\xc3\xa4\"",
        b"\"a\"b",
        b"\"a\", %\"b\"",
        b"\"a\tb\"",
        b"\"a\", @1",
    ] {
        assert!(
            offered(&[line]).is_empty(),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
    assert!(offered(&[b"\"a\"", b"b"]).is_empty());
}

/// draft-ietf-webtrans-http3-16 §3.3; RFC 9651 §3.1.2; WT-h3-041.
#[test]
fn parameters_have_no_effect() {
    for parameters in [
        ";a",
        ";a=1",
        "; a=-1.5;b",
        ";*x-1.y_=\"s;\"",
        ";a=tok/en:",
        ";a=:YWI=:",
        ";a=:YWI:",
        ";a=::",
        ";a=:YW=:",
        ";a=:YWJj:",
        ";a=?0",
        ";a=@-5",
        ";a=%\"f%c3%bc\"",
        ";a=999999999999999",
        ";a=*",
    ] {
        let line = format!("\"x\"{parameters}, \"y\"");
        assert_eq!(offered(&[line.as_bytes()]), ["x", "y"], "{parameters}");
        let line = format!("\"x\"{parameters}");
        assert_eq!(
            chosen(&[line.as_bytes()]).as_deref(),
            Some("x"),
            "{parameters}"
        );
    }
    for parameters in [
        ";",
        ";A",
        ";a=",
        ";a=1.",
        ";a=1.2345",
        ";a=1234567890123456",
        ";a=-",
        ";a=?2",
        ";a=:a",
        ";a=:a:",
        ";a=:YWI=a:",
        ";a=:YWI==:",
        ";a=:Y===:",
        ";a=:YWJj=:",
        ";a=@1.5",
        ";a=%\"%C3\"",
        ";a=%\"%c3\"",
        ";a=%x",
        ";a=(1)",
        " ;a",
        ";a=1234567890123.1",
        ";a=\"",
        ";a=%\"",
        ";a=%\"%c",
    ] {
        let line = format!("\"x\"{parameters}");
        assert!(offered(&[line.as_bytes()]).is_empty(), "{parameters}");
        assert_eq!(chosen(&[line.as_bytes()]), None, "{parameters}");
    }
}

/// draft-ietf-webtrans-http3-16 §3.3.
#[test]
fn chosen_protocol_is_one_string() {
    assert_eq!(chosen(&[b" \"chat\" "]).as_deref(), Some("chat"));
    for lines in [
        &[&b"chat"[..]][..],
        &[b"\"a\", \"b\""],
        &[b"\"a\"", b"\"a\""],
        &[b""],
        &[],
    ] {
        assert_eq!(chosen(lines), None, "{lines:?}");
    }
}

#[test]
fn names_and_their_number_are_bounded() {
    let names: Vec<String> = (0..40).map(|n| format!("\"p{n}\"")).collect();
    let read = offered(&[names.join(",").as_bytes()]);
    assert_eq!((read.len(), read[31].as_str()), (32, "p31"));
    let long = format!(
        "\"{}\", \"{}\", \"\", \"b\"",
        "a".repeat(257),
        "a".repeat(256)
    );
    assert_eq!(
        offered(&[long.as_bytes()]),
        ["a".repeat(256), "b".to_owned()]
    );
    let many = Protocols::new((0..33).map(|n| n.to_string()));
    assert_eq!(many, Err(InvalidProtocol::TooMany(33)));
    for name in ["", "ä", "a\n", &"a".repeat(257)] {
        let error = Protocols::new([name]).expect_err("invalid");
        assert_eq!(error, InvalidProtocol::Name(name.to_owned()));
    }
}

#[test]
fn fields_are_read_as_they_were_written() {
    let names = ["chat.2", r#"a"b\c"#, " ", "~"];
    let protocols = Protocols::new(names).expect("valid");
    let field = protocols.to_field().expect("a field");
    assert_eq!(offered(&[field.as_bytes()]), names);
    for name in names {
        let field = chosen_field(name).expect("a field");
        assert_eq!(chosen(&[field.as_bytes()]).as_deref(), Some(name));
    }
    assert_eq!(Protocols::default().to_field(), None);
}

/// draft-ietf-webtrans-http3-16 §3.3; MT-001.
#[test]
fn first_protocol_of_the_client_that_is_known_is_selected() {
    let offered = Protocols::new(["moqt-19", "moqt-18"]).expect("valid");
    assert_eq!(offered.select(["moqt-18", "moqt-19"]), Some("moqt-19"));
    assert_eq!(offered.select(["moqt-18"]), Some("moqt-18"));
    assert_eq!(offered.select(["x"]), None);
    assert_eq!((offered.iter().len(), offered.is_empty()), (2, false));
}
