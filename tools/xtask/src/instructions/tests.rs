use super::*;

const COUNTED: &str = "\
# callgrind format
positions: line
events: Ir
summary: 1160

ob=(1) /lib/ld.so
fn=(0) 0x1ab70
cob=(2) /target/courser-bench
cfn=(7) courser_bench::meter::counted
calls=1 0
0 1160

ob=(2)
fn=(7)
0 100
+3 20
cob=(3) /lib/libc.so.6
cfi=(9) memmove.S
cfn=(8) memcpy
calls=4 264
0 40
cfn=(10) aws_lc_0_47_0_aesni_gcm_encrypt
calls=4 0
* 1000

fn=(10)
0 1000

ob=(3)
fl=(9)
fn=(8)
264 30
-1 10
";

#[test]
fn instructions_are_counted_once_and_by_their_origin() {
    let counts = callgrind::parse(COUNTED, "/target/courser-bench");
    let expected = Counts {
        own: 120,
        foreign: 1000,
        libraries: 40,
    };
    assert_eq!(counts, expected);
    let each = counts.divided_by(100);
    assert_eq!((each.own, each.foreign, each.libraries), (1, 10, 0));
}

fn measured(name: &str, own: u64) -> Measured {
    let line = format!("{name}\tpacket\ta packet is built");
    Measured {
        path: PathInfo::parse(&line).unwrap(),
        each: Counts {
            own,
            ..Counts::default()
        },
    }
}

fn budgets() -> BTreeMap<String, u64> {
    let counts = [measured("send", 1000), measured("receive", 2000)];
    parse(&render("rustc 1.2.3", &counts)).unwrap()
}

#[test]
fn budgets_are_written_and_read() {
    let expected = [("receive".to_owned(), 2000), ("send".to_owned(), 1000)];
    assert_eq!(budgets(), BTreeMap::from(expected));
}

#[test]
fn rows_without_a_count_are_refused() {
    for row in ["send\tpacket\tmany\tx", "send\tpacket\t0\tx", "send\t1"] {
        let found = parse(&format!("# head\n{row}\n")).unwrap_err();
        assert!(
            found[0].starts_with("docs/instructions.tsv:2: "),
            "{found:?}"
        );
    }
}

#[test]
fn three_percent_more_are_allowed_and_the_message_reports_the_excess() {
    let fine = [measured("send", 1030), measured("receive", 100)];
    assert_eq!(compare(&fine, &budgets()), Problems::new());
    let above = [measured("send", 1031), measured("receive", 2000)];
    assert_eq!(
        compare(&above, &budgets()),
        [
            "send: 1031 instructions per packet were counted (a packet is built), 3.1 % above the budget of \
             1000 in docs/instructions.tsv; if the change is worth it, accept it with `cargo xtask \
             instructions --write`"
        ]
    );
}

#[test]
fn paths_without_a_budget_and_budgets_without_a_path_are_problems() {
    let found = compare(&[measured("send", 1000), measured("ack", 1)], &budgets());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("no budget for ack"), "{found:?}");
    assert!(found[1].contains("receive is no path"), "{found:?}");
}
