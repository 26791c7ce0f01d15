use super::super::Scenario;

const FAMILY: &str = r#"name = "bulk-{controller}-{rate}"
duration = "30s"
link = "{rate},rtt={rtt},queue=1bdp"

[[matrix]]
rate = ["10mbit", "100mbit"]
rtt = "50ms"
controller = ["cubic", "bbr"]

[[matrix]]
rate = "1gbit"
rtt = "10ms"
controller = "cubic"

[[flow]]
controller = "{controller}"
"#;

fn mistake(from: &str, to: &str) -> String {
    assert!(FAMILY.contains(from), "{from}");
    let text = FAMILY.replacen(from, to, 1);
    Scenario::parse_all(&text).expect_err(to).to_string()
}

#[test]
fn matrix_keeps_file_order_and_varies_the_last_variable_fastest() {
    let all = Scenario::parse_all(FAMILY).expect("the scenario is valid");
    let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
    let expected = [
        "bulk-cubic-10mbit",
        "bulk-bbr-10mbit",
        "bulk-cubic-100mbit",
        "bulk-bbr-100mbit",
        "bulk-cubic-1gbit",
    ];
    assert_eq!(names, expected);
    assert_eq!(all[4].base_rtt().as_millis(), 10);
    assert_eq!(all[3].flows[0].controller.to_string(), "bbr");
}

#[test]
fn parsing_one_scenario_refuses_a_family() {
    let error = Scenario::parse(FAMILY)
        .expect_err("the family has five scenarios")
        .to_string();
    assert!(error.contains("5 scenarios"), "{error}");
}

#[test]
fn variable_without_values_is_reported_with_its_place() {
    let error = mistake("{rtt}", "{delay}");
    assert!(error.starts_with("line 7, column 1"), "{error}");
    assert!(error.contains("rtt is not used"), "{error}");
    let error = mistake(",queue=1bdp", ",{loss}");
    assert!(error.starts_with("line 3, column 26"), "{error}");
    assert!(
        error.contains("no loss, it has controller, rate, rtt"),
        "{error}"
    );
    let error = mistake(r#"["cubic", "bbr"]"#, "[]");
    assert!(error.contains("controller has no value"), "{error}");
    let error = mistake(r#"["cubic", "bbr"]"#, "7");
    assert!(error.contains("a text or a list of texts"), "{error}");
}

#[test]
fn wrong_value_is_reported_with_the_variant() {
    let error = mistake(r#""100mbit""#, r#""fast""#);
    assert!(error.starts_with("line 3"), "{error}");
    assert!(error.contains("rate = fast, rtt = 50ms"), "{error}");
}

#[test]
fn variants_need_distinct_names() {
    let error = mistake("bulk-{controller}-{rate}", "bulk-{rate}");
    assert!(error.contains("'bulk-10mbit'"), "{error}");
    assert!(error.contains("{controller}"), "{error}");
}

#[test]
fn too_many_members_are_refused() {
    let many = format!("[{}]", r#""10mbit","#.repeat(1001));
    let error = mistake(r#"["10mbit", "100mbit"]"#, &many);
    assert!(error.contains("more than 1000"), "{error}");
}
