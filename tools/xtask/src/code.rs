//! Reads Rust sources with `syn`.

use proc_macro2::{Delimiter, Group, Spacing, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ForeignItem, Ident, ImplItem, Item, Meta, Stmt, TraitItem, Type};

/// Returns the syntax of a source without the items that only tests compile.
pub(crate) fn without_tests(file: &syn::File) -> syn::File {
    let mut file = file.clone();
    WithoutTests.visit_file_mut(&mut file);
    file
}

/// Returns each `name` of `#[cfg(test)] mod name;`.
pub(crate) fn test_modules(file: &syn::File) -> Vec<String> {
    let modules = file.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() && is_for_tests(&module.attrs) => {
            Some(module.ident.to_string())
        }
        _ => None,
    });
    modules.collect()
}

/// Returns true if the attributes limit an item to tests.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
    })
}

/// A token of a source: an identifier, a literal, `::`, or one character of punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// The number of its line, counted from 1.
    pub(crate) line: usize,
}

/// Returns the tokens in their order, with brackets. Doc comments are left out.
pub(crate) fn words(tokens: impl IntoIterator<Item = TokenTree>) -> Vec<Word> {
    let mut found = Vec::new();
    add_words(tokens, &mut found);
    found
}

fn add_words(tokens: impl IntoIterator<Item = TokenTree>, found: &mut Vec<Word>) {
    let mut is_joint = false;
    for token in tokens {
        let line = token.span().start().line;
        let mut push = |text: String| found.push(Word { text, line });
        let was_joint = std::mem::take(&mut is_joint);
        match token {
            TokenTree::Group(group) if is_doc(&group) => {
                // The `#` before it, and the `!` of an inner one.
                while found
                    .pop_if(|word| word.text == "#" || word.text == "!")
                    .is_some()
                {}
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.to_owned());
                add_words(group.stream(), found);
                let line = group.span_close().end().line;
                found.push(Word {
                    text: close.to_owned(),
                    line,
                });
            }
            TokenTree::Punct(punct) if was_joint && punct.as_char() == ':' => {
                if let Some(last) = found.last_mut() {
                    last.text.push(':');
                }
            }
            TokenTree::Punct(punct) => {
                is_joint = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
                push(punct.to_string());
            }
            TokenTree::Ident(ident) => push(ident.to_string()),
            TokenTree::Literal(literal) => push(literal.to_string()),
        }
    }
}

/// Returns true for the brackets of a doc comment.
fn is_doc(group: &Group) -> bool {
    let mut inner = group.stream().into_iter();
    let first = inner.next().map(|token| token.to_string());
    let second = inner.next().map(|token| token.to_string());
    group.delimiter() == Delimiter::Bracket
        && first.as_deref() == Some("doc")
        && second.as_deref() == Some("=")
}

/// Returns the lines on which `sequence` begins among `words`, each once.
pub(crate) fn lines_with(words: &[Word], sequence: &[&str]) -> Vec<usize> {
    let found = words.windows(sequence.len());
    let found = found.filter(|found| found.iter().map(|word| &word.text).eq(sequence));
    let mut lines: Vec<usize> = found.map(|found| found[0].line).collect();
    lines.dedup();
    lines
}

/// Returns the last name of a type's path, without references and parameters.
pub(crate) fn type_name(of: &Type) -> Option<&Ident> {
    match of {
        Type::Path(path) => path.path.segments.last().map(|part| &part.ident),
        Type::Reference(reference) => type_name(&reference.elem),
        Type::Paren(inner) => type_name(&inner.elem),
        Type::Group(inner) => type_name(&inner.elem),
        _ => None,
    }
}

/// Removes what only tests compile.
struct WithoutTests;

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !is_for_tests(attributes(item)));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_for_tests(attributes(item)));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| match item {
            ImplItem::Const(item) => !is_for_tests(&item.attrs),
            ImplItem::Fn(item) => !is_for_tests(&item.attrs),
            ImplItem::Type(item) => !is_for_tests(&item.attrs),
            ImplItem::Macro(item) => !is_for_tests(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, block);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        item.items.retain(|item| match item {
            TraitItem::Fn(item) => !is_for_tests(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_trait_mut(self, item);
    }

    fn visit_item_foreign_mod_mut(&mut self, block: &mut syn::ItemForeignMod) {
        block.items.retain(|item| match item {
            ForeignItem::Fn(item) => !is_for_tests(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_foreign_mod_mut(self, block);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| match statement {
            Stmt::Local(local) => !is_for_tests(&local.attrs),
            Stmt::Item(item) => !is_for_tests(attributes(item)),
            Stmt::Expr(syn::Expr::Block(block), _) => !is_for_tests(&block.attrs),
            Stmt::Expr(syn::Expr::Call(call), _) => !is_for_tests(&call.attrs),
            Stmt::Expr(syn::Expr::MethodCall(call), _) => !is_for_tests(&call.attrs),
            Stmt::Expr(syn::Expr::If(branch), _) => !is_for_tests(&branch.attrs),
            Stmt::Expr(..) => true,
            Stmt::Macro(call) => !is_for_tests(&call.attrs),
        });
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_fields_named_mut(&mut self, fields: &mut syn::FieldsNamed) {
        retain(&mut fields.named, |field| &field.attrs);
        visit_mut::visit_fields_named_mut(self, fields);
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        retain(&mut item.variants, |variant| &variant.attrs);
        visit_mut::visit_item_enum_mut(self, item);
    }

    fn visit_expr_match_mut(&mut self, expression: &mut syn::ExprMatch) {
        expression.arms.retain(|arm| !is_for_tests(&arm.attrs));
        visit_mut::visit_expr_match_mut(self, expression);
    }

    fn visit_expr_struct_mut(&mut self, expression: &mut syn::ExprStruct) {
        retain(&mut expression.fields, |field| &field.attrs);
        visit_mut::visit_expr_struct_mut(self, expression);
    }
}

/// Removes the elements whose attributes limit them to tests.
fn retain<T, P: Default>(list: &mut Punctuated<T, P>, attributes: fn(&T) -> &Vec<Attribute>) {
    let elements = std::mem::take(list).into_pairs();
    *list = elements
        .filter(|element| !is_for_tests(attributes(element.value())))
        .collect();
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(syn::ItemConst { attrs, .. })
        | Item::Enum(syn::ItemEnum { attrs, .. })
        | Item::ExternCrate(syn::ItemExternCrate { attrs, .. })
        | Item::Fn(syn::ItemFn { attrs, .. })
        | Item::ForeignMod(syn::ItemForeignMod { attrs, .. })
        | Item::Impl(syn::ItemImpl { attrs, .. })
        | Item::Macro(syn::ItemMacro { attrs, .. })
        | Item::Mod(syn::ItemMod { attrs, .. })
        | Item::Static(syn::ItemStatic { attrs, .. })
        | Item::Struct(syn::ItemStruct { attrs, .. })
        | Item::Trait(syn::ItemTrait { attrs, .. })
        | Item::Type(syn::ItemType { attrs, .. })
        | Item::Union(syn::ItemUnion { attrs, .. })
        | Item::Use(syn::ItemUse { attrs, .. }) => attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests;
