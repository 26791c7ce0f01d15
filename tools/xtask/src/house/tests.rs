use super::*;

const OWNER: &str = "
    use crate::view::View;
    pub struct Owner { pub a: A, b: u8, c: u8 }
    pub struct A { x: u8 }
    #[derive(Clone, Copy)]
    pub struct Value(u8);
    impl Value { fn a() {} fn b() {} fn c() {} fn d() {} fn e() {} fn f() {} }
    impl Owner {
        fn view(&mut self) -> View<'_> { View { a: &mut self.a, c: &mut self.c } }
        fn split(&mut self) -> View<'_> { let Self { a, c, .. } = self; View { a, c } }
        #[cfg(test)]
        fn hidden(&self) {}
    }
    impl std::fmt::Debug for Owner { fn fmt(&self) { assert!(self.b > 0); } }
";

const VIEW: &str = "
    use crate::owner::A;
    pub struct View<'v> { pub a: &'v mut A, pub c: &'v mut u8 }
    impl View<'_> { fn read(&self) -> u8 { self.a.x } }
";

const USER: &str = "
    use crate::{owner::Owner, view::View};
    struct User { owner: Box<Owner> }
    impl User { fn reach(&self) { let owner = &self.owner; owner.b; } }
    fn take(owner: &mut Owner) { owner.a.x; }
    fn look(mut view: View<'_>, _: Option<&Owner>) { view.c; }
";

fn files() -> Vec<File> {
    let sources = [
        ("lib.rs", "mod owner;\nmod view;\nmod user;"),
        ("owner.rs", OWNER),
        ("view.rs", VIEW),
        ("user.rs", USER),
    ];
    let sources = sources.into_iter();
    sources
        .map(|(path, text)| File::new(format!("crates/x/src/{path}"), text.to_owned()))
        .collect()
}

fn described(name: &str) -> String {
    let options = Options {
        name: Some(name.to_owned()),
        ..Options::default()
    };
    report(&files(), &["x"], &options).replace("crates/x/src/", "")
}

#[test]
fn functions_of_a_view_count_for_the_owner_of_its_fields() {
    assert_eq!(
        described("Owner"),
        "x::Owner (owner.rs:3)\n\
         3 methods\n  owner.rs:9 view\n  owner.rs:10 split\n  view.rs:4 read\n\
         2 functions\n  user.rs:5 take\n  user.rs:6 look\n\
         3 fields\n  a: owner.rs, user.rs, view.rs\n  b: owner.rs, user.rs\n  c: owner.rs, user.rs\n\
         1 views\n  View\n"
    );
}

#[test]
fn fields_are_followed_through_other_types() {
    assert_eq!(
        described("A"),
        "x::A (owner.rs:4)\n0 methods\n0 functions\n1 fields\n  x: user.rs, view.rs\n0 views\n"
    );
}

#[test]
fn types_are_ordered_by_what_works_on_them_and_values_are_left_out() {
    let text = report(&files(), &["x"], &Options::default());
    let rows: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(
        rows,
        [
            "methods functions fields files  type",
            "      3         2      3     3  x::Owner, seen through View",
            "      1         1      2     2  x::View",
        ]
    );
    assert!(text.ends_with("     22        2  x\n"), "{text}");
}

#[test]
fn the_report_is_json_on_request() {
    let options = Options {
        json: true,
        ..Options::default()
    };
    let all: Value = serde_json::from_str(&report(&files(), &["x"], &options)).unwrap();
    assert_eq!(all["types"][1]["type"], "Owner");
    assert_eq!(all["types"][1]["views"], json!(["View"]));
    assert_eq!(all["crates"][0]["crate"], "x");
}

#[test]
fn the_workspace_can_be_surveyed() {
    let files = tree::files(&tree::root().unwrap()).unwrap();
    let text = report(&files, &["transport"], &Options::default());
    assert!(text.contains("  transport::Connection"), "{text}");
    assert_eq!(text.lines().count(), 1 + LARGEST + 3, "{text}");
}
