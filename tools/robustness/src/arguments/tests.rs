use super::*;

fn read(words: &str) -> Result<Command, String> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    parse(&words)
}

#[test]
fn attack_and_options_are_accepted_in_any_order() {
    let expected = Arguments {
        name: "ack-storm".to_owned(),
        time: Duration::from_secs(9),
        json: Some(PathBuf::from("report.json")),
        courser: sibling("courser"),
    };
    for words in [
        "ack-storm --seconds 9 --json report.json",
        "--json report.json --seconds 9 ack-storm",
    ] {
        assert_eq!(read(words), Ok(Command::Run(expected.clone())), "{words}");
    }
    assert_eq!(read("--list"), Ok(Command::List));
}

#[test]
fn refused_values_are_reported_with_allowed_ones() {
    for (words, message) in [
        ("all --seconds 2", "--seconds is `2`; allowed are 3 to 3600"),
        ("all --seconds", "--seconds needs a value"),
        ("all other", "unexpected argument `other`"),
        ("", "missing the name of an attack"),
    ] {
        let error = read(words).expect_err(words);
        assert!(error.starts_with(message), "{words}: {error}");
    }
}
