//! Finds constants, settings and tests in the sources.

use std::collections::BTreeMap;

use super::number::{self, Value};
use crate::tree::File;

/// The Rust sources by path, as the catalogues write it.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    files: BTreeMap<&'a str, &'a File>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(files: &'a [File]) -> Self {
        let rust = files.iter().filter(|file| file.is_rust());
        let files = rust.map(|file| {
            let path = file.path_in_workspace().unwrap_or(&file.path);
            (path, file)
        });
        Self {
            files: files.collect(),
        }
    }

    /// Looks for the test function `name` in the file at `path`.
    ///
    /// # Errors
    ///
    /// Returns a text that names the missing part: the file, the function or its test attribute. A test with
    /// the attribute `ignore` proves nothing, because `cargo test` skips it.
    pub(super) fn find_test(&self, path: &str, name: &str) -> Result<(), String> {
        let code = self.file(path)?.code();
        let mut functions = functions(code, name).peekable();
        if functions.peek().is_none() {
            return Err("does not exist in this file".to_owned());
        }
        let mut tests = functions.filter(|&at| is_test(&code[..at])).peekable();
        if tests.peek().is_none() {
            return Err("is not a test".to_owned());
        }
        if tests.all(|at| is_ignored(&code[..at])) {
            return Err("is ignored".to_owned());
        }
        Ok(())
    }

    /// Evaluates a constant `NAME`, its part `NAME.field`, the first value that is given to `field`,
    /// or the last arm of `function`.
    ///
    /// # Errors
    ///
    /// Returns a text if the file or the name is missing, or if its value cannot be read.
    pub(super) fn find_value(&self, path: &str, name: &str) -> Result<Value, String> {
        let code = self.file(path)?.production_code();
        if let Some((constant, field)) = name.split_once('.') {
            let body = constant_body(code, constant).ok_or("has no such constant")?;
            return field_value(body, field, code).ok_or_else(|| NO_VALUE.to_owned());
        }
        if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            let arm = || last_arm(&code[functions(code, name).next()?..], code);
            let value = field_value(code, name, code).or_else(arm);
            return value.ok_or_else(|| NO_VALUE.to_owned());
        }
        if constant_body(code, name).is_none() {
            return Err("has no such constant".to_owned());
        }
        constant_value(code, name).ok_or_else(|| NO_VALUE.to_owned())
    }

    fn file(&self, path: &str) -> Result<&'a File, String> {
        let file = self.files.get(path).copied();
        file.ok_or_else(|| "is in a file that is missing".to_owned())
    }
}

/// Returns the positions of the functions `name` in `code`.
fn functions<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    words(code, "fn").filter(move |&at| {
        let rest = code[at + 2..].trim_start();
        rest.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['(', '<']))
    })
}

/// Returns true if the attributes at the end of `before` mark a test.
fn is_test(before: &str) -> bool {
    attributes(before).any(|name| name == "test" || name.ends_with("::test"))
}

/// Returns true if the attributes at the end of `before` exclude a test from `cargo test`.
fn is_ignored(before: &str) -> bool {
    attributes(before).any(|name| name == "ignore")
}

/// Returns the names of the attributes at the end of `before`.
fn attributes(before: &str) -> impl Iterator<Item = &str> {
    let start = before.rfind(['{', '}', ';']).map_or(0, |at| at + 1);
    let attributes = before[start..].split("#[").skip(1);
    attributes.map(|attribute| {
        let name = attribute.split(['(', '=', ']']).next();
        name.unwrap_or_default().trim()
    })
}

/// Returns the expression after `const name: Type =`.
fn constant_body<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    let mut declarations = words(code, "const").map(|at| code[at + "const".len()..].trim_start());
    let declared = declarations.find_map(|rest| rest.strip_prefix(name)?.strip_prefix(':'))?;
    let (_, expression) = declared.split_once('=')?;
    Some(up_to_end(expression))
}

fn constant_value(code: &str, name: &str) -> Option<Value> {
    number::evaluate(constant_body(code, name)?, &|other| {
        let other = other.rsplit("::").next().unwrap_or(other);
        (other != name).then(|| constant_value(code, other))?
    })
}

/// Returns the first value that is given to `field` in `body`. Declarations have no value.
fn field_value(body: &str, field: &str, code: &str) -> Option<Value> {
    let resolve = |name: &str| constant_value(code, name);
    words(body, field)
        .filter_map(|at| body[at + field.len()..].strip_prefix(':'))
        .filter(|rest| !rest.starts_with(':'))
        .find_map(|rest| number::evaluate(up_to_end(rest), &resolve))
}

/// Returns the value of the arm `_ =>` in the function at the start of `function`.
fn last_arm(function: &str, code: &str) -> Option<Value> {
    let body = &function[function.find('{')? + 1..];
    let (_, arm) = up_to_end(body).split_once("_ =>")?;
    number::evaluate(up_to_end(arm), &|name| constant_value(code, name))
}

/// Returns the expression at the start of `code`, up to a comma, a semicolon or a closing bracket.
fn up_to_end(code: &str) -> &str {
    let mut depth = 0_u32;
    for (at, character) in code.char_indices() {
        match character {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' | ',' | ';' if depth == 0 => return &code[..at],
            ')' | '}' | ']' => depth -= 1,
            _ => {}
        }
    }
    code
}

/// Returns the positions of `word` as a whole identifier.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = code[..at].chars().next_back();
            let after = code[at + word.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

const NO_VALUE: &str = "has no value that can be read";

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        /// const OLD: u64 = 1;
        pub const MOST: usize = 2 * SETS;
        const SETS: usize = 4;
        const WAIT: Duration = Duration::from_secs(3);
        const TABLE: [u16; 2] = [1, 2];
        struct Limits { size: u64 }
        impl Limits {
            const REQUEST: Self = Self { size: 16 << 10, lines: 128 };
            const RESPONSE: Self = Self { size: 64 << 10, lines: 128 };
        }
        struct Config { most: usize, grace: Duration }
        impl Default for Config {
            fn default() -> Self { Self { most: MOST, grace: Duration::from_millis(5) } }
        }
        fn helper() {}
        const fn limit(side: Side) -> u64 { match side { Side::Client => 64, _ => 4 * 4 } }
        #[cfg(test)]
        mod tests {
            const HIDDEN: usize = 1;
            #[test]
            fn holds() {}
            #[tokio::test(flavor = \"multi_thread\")]
            async fn holds_too() {}
            #[test]
            #[ignore = \"takes an hour; never runs\"]
            fn holds_by_hand() {}
            #[ignore]
            #[test]
            fn holds_never() {}
            proptest! {
                #[test]
                fn holds_always(a in 0..1) {}
            }
        }
    ";

    fn sources() -> Vec<File> {
        vec![File::new("crates/a/src/b.rs".to_owned(), SOURCE.to_owned())]
    }

    #[test]
    fn constants_and_settings_are_evaluated() {
        let files = sources();
        let sources = Sources::new(&files);
        let value = |name| sources.find_value("a/src/b.rs", name);
        assert_eq!(value("MOST"), Ok(Value::Count(8)));
        assert_eq!(value("WAIT"), Ok(Value::Nanos(3_000_000_000)));
        assert_eq!(value("RESPONSE.size"), Ok(Value::Count(64 << 10)));
        assert_eq!(value("most"), Ok(Value::Count(8)));
        assert_eq!(value("limit"), Ok(Value::Count(16)));
        assert_eq!(value("grace"), Ok(Value::Nanos(5_000_000)));
    }

    #[test]
    fn missing_and_hidden_values_are_reported() {
        let files = sources();
        let sources = Sources::new(&files);
        for name in ["OLD", "HIDDEN", "NONE", "NONE.size"] {
            let error = sources.find_value("a/src/b.rs", name);
            assert_eq!(error, Err("has no such constant".to_owned()), "{name}");
        }
        for name in ["TABLE", "REQUEST.name", "nothing"] {
            let error = sources.find_value("a/src/b.rs", name);
            assert_eq!(error, Err(NO_VALUE.to_owned()), "{name}");
        }
        let error = sources.find_value("a/src/c.rs", "MOST");
        assert_eq!(error, Err("is in a file that is missing".to_owned()));
    }

    #[test]
    fn tests_need_their_attribute() {
        let files = sources();
        let sources = Sources::new(&files);
        for name in ["holds", "holds_too", "holds_always"] {
            assert_eq!(sources.find_test("a/src/b.rs", name), Ok(()), "{name}");
        }
        for name in ["holds_by_hand", "holds_never"] {
            let error = sources.find_test("a/src/b.rs", name);
            assert_eq!(error, Err("is ignored".to_owned()), "{name}");
        }
        let error = sources.find_test("a/src/b.rs", "helper");
        assert_eq!(error, Err("is not a test".to_owned()));
        let error = sources.find_test("a/src/b.rs", "hold");
        assert_eq!(error, Err("does not exist in this file".to_owned()));
    }
}
