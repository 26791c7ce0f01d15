//! Finds constants, settings and tests in the sources.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Expr, Member, Pat};

use super::number::{self, Value};
use crate::tree::File;

/// The Rust sources by path, as the catalogues write it.
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
        let mut functions = Vec::new();
        add_functions(
            self.file(path)?.syntax().to_token_stream(),
            name,
            &mut functions,
        );
        if functions.is_empty() {
            return Err("does not exist in this file".to_owned());
        }
        let is_test = |attribute: &String| attribute == "test" || attribute.ends_with("::test");
        functions.retain(|attributes| attributes.iter().any(is_test));
        if functions.is_empty() {
            return Err("is not a test".to_owned());
        }
        let is_ignored = |attributes: &Vec<String>| attributes.iter().any(|it| it == "ignore");
        if functions.iter().all(is_ignored) {
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
        let mut found = Values::default();
        found.visit_file(self.file(path)?.production());
        let value = if let Some((constant, field)) = name.split_once('.') {
            let constant = found.constants.get(constant);
            let mut inner = Values::default();
            inner.visit_expr(constant.ok_or("has no such constant")?);
            found.first(inner.fields.get(field))
        } else if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            let arm = || found.first(found.last_arms.get(name));
            found.first(found.fields.get(name)).or_else(arm)
        } else {
            let constant = found.constants.get(name);
            found.evaluate(constant.ok_or("has no such constant")?)
        };
        value.ok_or_else(|| NO_VALUE.to_owned())
    }

    fn file(&self, path: &str) -> Result<&'a File, String> {
        let file = self.files.get(path).copied();
        file.ok_or_else(|| "is in a file that is missing".to_owned())
    }
}

/// Adds the attributes of each function `name`, also of those inside macros.
fn add_functions(tokens: TokenStream, name: &str, found: &mut Vec<Vec<String>>) {
    let mut attributes = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                if let Some(TokenTree::Group(group)) = tokens.peek() {
                    attributes.push(attribute_name(group.stream()));
                    tokens.next();
                }
            }
            TokenTree::Ident(keyword) if keyword == "fn" => {
                let is_wanted = tokens.next().is_some_and(|it| it.to_string() == name);
                let attributes = std::mem::take(&mut attributes);
                found.extend(is_wanted.then_some(attributes));
            }
            TokenTree::Ident(word) if FUNCTION_QUALIFIERS.iter().any(|it| word == it) => {}
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                add_functions(group.stream(), name, found);
            }
            TokenTree::Group(group) => {
                attributes.clear();
                add_functions(group.stream(), name, found);
            }
            _ => attributes.clear(),
        }
    }
}

/// Returns the path of an attribute without its arguments.
fn attribute_name(tokens: TokenStream) -> String {
    let path = tokens.into_iter().take_while(|token| match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    });
    path.map(|token| token.to_string()).collect()
}

/// The expressions of a source that have a name.
#[derive(Default)]
struct Values<'a> {
    constants: BTreeMap<String, &'a Expr>,
    /// The values that each field is given, in their order.
    fields: BTreeMap<String, Vec<&'a Expr>>,
    /// The results of the arms `_ =>` by the name of the function around them.
    last_arms: BTreeMap<String, Vec<&'a Expr>>,
    function: String,
}

impl Values<'_> {
    fn evaluate(&self, expression: &Expr) -> Option<Value> {
        number::evaluate(expression, &|name| {
            let constant = self.constants.get(name)?;
            (!std::ptr::eq(*constant, expression)).then(|| self.evaluate(constant))?
        })
    }

    /// Returns the first of these values that can be read.
    fn first(&self, expressions: Option<&Vec<&Expr>>) -> Option<Value> {
        let mut expressions = expressions?.iter();
        expressions.find_map(|expression| self.evaluate(expression))
    }
}

impl<'ast> Visit<'ast> for Values<'ast> {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constants.insert(item.ident.to_string(), &item.expr);
        visit::visit_item_const(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constants.insert(item.ident.to_string(), &item.expr);
        visit::visit_impl_item_const(self, item);
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if let Member::Named(name) = &field.member {
            let values = self.fields.entry(name.to_string()).or_default();
            values.push(&field.expr);
        }
        visit::visit_field_value(self, field);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.function = signature.ident.to_string();
        visit::visit_signature(self, signature);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if matches!(arm.pat, Pat::Wild(_)) {
            let arms = self.last_arms.entry(self.function.clone()).or_default();
            arms.push(&arm.body);
        }
        visit::visit_arm(self, arm);
    }
}

const FUNCTION_QUALIFIERS: &[&str] = &["pub", "const", "async", "unsafe", "extern"];

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
