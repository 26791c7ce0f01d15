use super::*;

#[test]
fn each_unit_is_parsed() {
    let cases: [(&str, Duration); 9] = [
        ("1H", Duration::from_secs(3600)),
        ("2M", Duration::from_secs(120)),
        ("3S", Duration::from_secs(3)),
        ("4m", Duration::from_millis(4)),
        ("5u", Duration::from_micros(5)),
        ("6n", Duration::from_nanos(6)),
        ("0S", Duration::ZERO),
        ("00000001S", Duration::from_secs(1)),
        ("99999999H", Duration::from_secs(99_999_999 * 3600)),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text.as_bytes()), Some(expected), "{text}");
    }
}

#[test]
fn malformed_values_are_none() {
    let cases = [
        "",
        "S",
        "1",
        "1s",
        "1h",
        "-1S",
        "+1S",
        " 1S",
        "1S ",
        "1.5S",
        "1 S",
        "123456789S",
        "S1",
        "1SS",
        "\u{e9}S",
    ];
    for text in cases {
        assert_eq!(parse(text.as_bytes()), None, "{text:?}");
    }
}

#[tokio::test]
async fn deadline_is_passed_on_unless_the_request_has_a_shorter_one() {
    let deadline = Deadline::after(Duration::from_secs(50)).expect("in range");
    let mut request = Request::new(());
    deadline.apply_to(&mut request);
    let passed = timeout_of(&request.metadata().clone().into_headers()).expect("set");
    assert!(
        passed <= Duration::from_secs(50) && passed > Duration::from_secs(40),
        "{passed:?}"
    );
    let mut request = Request::new(());
    request.set_timeout(Duration::from_secs(1));
    deadline.apply_to(&mut request);
    let kept = timeout_of(&request.metadata().clone().into_headers());
    assert_eq!(kept, Some(Duration::from_secs(1)));
}
