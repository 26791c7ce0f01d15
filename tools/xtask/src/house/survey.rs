//! Reads the types of a crate, and the code that works on them.
//!
//! It follows `self`, parameters, their fields, and locals that borrow one of these. It does not infer the types of
//! other expressions, so a field behind a call or an index is not counted.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, Fields, FnArg, GenericArgument, Member, Pat, PathArguments, Token, Type,
};

use crate::code;
use crate::modules::{Definition, Modules, Path};
use crate::tree::File;

/// A type of the crate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Surveyed<'a> {
    pub(super) line: usize,
    /// True for types that are `Copy`, which many functions take and none works on.
    pub(super) is_value: bool,
    /// Its inherent methods, as `path:line name`.
    pub(super) methods: Vec<String>,
    /// The functions that take it and are not its methods.
    pub(super) functions: Vec<String>,
    /// The files that use each field.
    pub(super) fields: BTreeMap<String, BTreeSet<String>>,
    /// The types whose fields it borrows: each of its fields with that of the owner.
    pub(super) views: BTreeMap<Definition<'a>, BTreeMap<String, String>>,
}

pub(super) type Types<'a> = BTreeMap<Definition<'a>, Surveyed<'a>>;

/// Surveys the crate in `folder`.
pub(super) fn survey<'a>(files: &'a [File], folder: &str) -> Types<'a> {
    let modules = Modules::new(files, folder);
    let mut reader = Reader {
        modules: &modules,
        module: &Path::new(),
        file: "",
        types: Types::new(),
        field_types: BTreeMap::new(),
        owner: None,
        is_inherent: false,
        locals: BTreeMap::new(),
    };
    for (module, file) in modules.files() {
        (reader.module, reader.file) = (module, &file.path);
        Declarations(&mut reader).visit_file(file.production());
    }
    for (module, file) in modules.files() {
        (reader.module, reader.file) = (module, &file.path);
        reader.visit_field_types(file.production());
    }
    for (module, file) in modules.files() {
        (reader.module, reader.file) = (module, &file.path);
        reader.visit_file(file.production());
    }
    let mut types = reader.types;
    for surveyed in types.values_mut() {
        let fields = surveyed.fields.len();
        // A struct that borrows one of many fields is a struct of its own.
        surveyed
            .views
            .retain(|_, borrowed| borrowed.len() > 1 && 2 * borrowed.len() >= fields);
    }
    types
}

/// What is known of a local.
#[derive(Clone, Default)]
struct Local<'a> {
    of: Option<Definition<'a>>,
    /// The field that it borrows, with its owner.
    borrowed: Option<(Definition<'a>, String)>,
}

struct Reader<'r, 'a> {
    modules: &'r Modules<'a>,
    module: &'r Path,
    file: &'a str,
    types: Types<'a>,
    field_types: BTreeMap<(Definition<'a>, String), Definition<'a>>,
    /// The type of the `impl` around what is read.
    owner: Option<Definition<'a>>,
    is_inherent: bool,
    locals: BTreeMap<String, Local<'a>>,
}

/// Adds the types that a file declares.
struct Declarations<'x, 'r, 'a>(&'x mut Reader<'r, 'a>);

impl Declarations<'_, '_, '_> {
    fn add(&mut self, name: &syn::Ident, attributes: &[Attribute], fields: Option<&Fields>) {
        let key = self.0.here(name);
        let fields = fields.map(field_names).unwrap_or_default().into_iter();
        let surveyed = self.0.types.entry(key).or_default();
        surveyed.line = name.span().start().line;
        surveyed.is_value = attributes.iter().any(derives_copy);
        surveyed.fields = fields.map(|(name, _)| (name, BTreeSet::new())).collect();
    }
}

impl<'ast> Visit<'ast> for Declarations<'_, '_, '_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident, &item.attrs, Some(&item.fields));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident, &item.attrs, None);
    }
}

/// Adds the types of fields, once all types are known.
struct FieldTypes<'x, 'r, 'a>(&'x mut Reader<'r, 'a>);

impl<'ast> Visit<'ast> for FieldTypes<'_, '_, '_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let key = self.0.here(&item.ident);
        for (name, of) in field_names(&item.fields) {
            if let Some(of) = self.0.definition(of) {
                self.0.field_types.insert((key.clone(), name), of);
            }
        }
    }
}

fn derives_copy(attribute: &Attribute) -> bool {
    let words = code::words(attribute.to_token_stream());
    let has = |text: &str| words.iter().any(|word| word.text == text);
    has("derive") && has("Copy")
}

fn field_names(fields: &Fields) -> Vec<(String, &Type)> {
    let named = fields.iter().enumerate().map(|(index, field)| {
        let name = field.ident.as_ref().map(ToString::to_string);
        (name.unwrap_or_else(|| index.to_string()), &field.ty)
    });
    named.collect()
}

fn member_name(member: &Member) -> String {
    match member {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

impl<'a> Reader<'_, 'a> {
    fn visit_field_types(&mut self, file: &syn::File) {
        FieldTypes(self).visit_file(file);
    }

    /// Returns the key of a type that this file declares.
    fn here(&self, name: &syn::Ident) -> Definition<'a> {
        Definition {
            file: self.file,
            name: name.to_string(),
        }
    }

    /// Returns the type of the crate that a type is, borrows or holds alone.
    fn definition(&self, of: &Type) -> Option<Definition<'a>> {
        match of {
            Type::Reference(reference) => self.definition(&reference.elem),
            Type::Paren(inner) => self.definition(&inner.elem),
            Type::Path(path) => {
                let last = path.path.segments.last()?;
                if let PathArguments::AngleBracketed(arguments) = &last.arguments
                    && WRAPPERS.iter().any(|wrapper| last.ident == wrapper)
                    && let Some(GenericArgument::Type(inner)) = arguments.args.first()
                {
                    return self.definition(inner);
                }
                self.definition_of_path(&path.path)
            }
            _ => None,
        }
    }

    fn definition_of_path(&self, path: &syn::Path) -> Option<Definition<'a>> {
        if path.is_ident("Self") {
            return self.owner.clone();
        }
        let names = path.segments.iter().map(|part| part.ident.to_string());
        let found = self
            .modules
            .definition(self.module, &names.collect::<Path>());
        found.filter(|found| self.types.contains_key(found))
    }

    /// Returns the type of an expression, if it is a local or a field of one.
    fn type_of(&self, expression: &Expr) -> Option<Definition<'a>> {
        match expression {
            Expr::Path(path) => {
                let name = path.path.get_ident()?.to_string();
                self.locals.get(&name)?.of.clone()
            }
            Expr::Field(field) => {
                let owner = self.type_of(&field.base)?;
                let key = (owner, member_name(&field.member));
                self.field_types.get(&key).cloned()
            }
            Expr::Reference(inner) => self.type_of(&inner.expr),
            Expr::Paren(inner) => self.type_of(&inner.expr),
            Expr::Unary(inner) => self.type_of(&inner.expr),
            _ => None,
        }
    }

    /// Returns the owner and the field that an expression borrows.
    fn borrowed(&self, expression: &Expr) -> Option<(Definition<'a>, String)> {
        match expression {
            Expr::Reference(inner) => match inner.expr.as_ref() {
                Expr::Field(field) => {
                    Some((self.type_of(&field.base)?, member_name(&field.member)))
                }
                _ => None,
            },
            Expr::Path(path) => {
                let name = path.path.get_ident()?.to_string();
                self.locals.get(&name)?.borrowed.clone()
            }
            _ => None,
        }
    }

    fn add_use(&mut self, of: &Definition<'a>, field: &str) {
        let surveyed = self.types.get_mut(of);
        if let Some(users) = surveyed.and_then(|it| it.fields.get_mut(field)) {
            users.insert(self.file.to_owned());
        }
    }

    /// Counts a function for the types that it belongs to or takes, and reads its body.
    fn read_function(&mut self, signature: &syn::Signature, body: impl FnOnce(&mut Self)) {
        let line = signature.ident.span().start().line;
        let place = format!("{}:{line} {}", self.file, signature.ident);
        let owner = self.owner.clone();
        let outer = std::mem::take(&mut self.locals);
        if let Some(surveyed) = owner.as_ref().and_then(|it| self.types.get_mut(it))
            && self.is_inherent
        {
            surveyed.methods.push(place.clone());
        }
        for argument in &signature.inputs {
            let (name, of) = match argument {
                FnArg::Receiver(_) => ("self".to_owned(), owner.clone()),
                FnArg::Typed(typed) => {
                    let name = match typed.pat.as_ref() {
                        Pat::Ident(name) => name.ident.to_string(),
                        _ => String::new(),
                    };
                    let of = self.definition(&typed.ty);
                    if let Some(surveyed) = of.as_ref().and_then(|of| self.types.get_mut(of))
                        && of != owner
                        && surveyed.functions.last() != Some(&place)
                    {
                        surveyed.functions.push(place.clone());
                    }
                    (name, of)
                }
            };
            let borrowed = None;
            self.locals.insert(name, Local { of, borrowed });
        }
        body(self);
        self.locals = outer;
    }
}

impl<'ast> Visit<'ast> for Reader<'_, '_> {
    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let owner = self.definition(&block.self_ty);
        let outer = std::mem::replace(&mut self.owner, owner);
        self.is_inherent = block.trait_.is_none();
        visit::visit_item_impl(self, block);
        self.owner = outer;
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let outer = self.owner.take();
        visit::visit_item_trait(self, item);
        self.owner = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let outer = self.owner.take();
        self.read_function(&item.sig, |reader| reader.visit_block(&item.block));
        self.owner = outer;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.read_function(&item.sig, |reader| reader.visit_block(&item.block));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.read_function(&item.sig, |reader| {
            item.default
                .iter()
                .for_each(|body| reader.visit_block(body));
        });
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        let value = local.init.as_ref().map(|init| init.expr.as_ref());
        let (pattern, declared) = match &local.pat {
            Pat::Type(typed) => (typed.pat.as_ref(), self.definition(&typed.ty)),
            pattern => (pattern, None),
        };
        if let Pat::Ident(name) = pattern {
            let found = Local {
                of: declared.or_else(|| value.and_then(|value| self.type_of(value))),
                borrowed: value.and_then(|value| self.borrowed(value)),
            };
            self.locals.insert(name.ident.to_string(), found);
        }
    }

    fn visit_pat_struct(&mut self, pattern: &'ast syn::PatStruct) {
        visit::visit_pat_struct(self, pattern);
        let Some(of) = self.definition_of_path(&pattern.path) else {
            return;
        };
        for field in &pattern.fields {
            let member = member_name(&field.member);
            self.add_use(&of, &member);
            if let Pat::Ident(name) = field.pat.as_ref() {
                let key = (of.clone(), member);
                let found = Local {
                    of: self.field_types.get(&key).cloned(),
                    borrowed: Some(key),
                };
                self.locals.insert(name.ident.to_string(), found);
            }
        }
    }

    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let Some(of) = self.type_of(&field.base) {
            self.add_use(&of, &member_name(&field.member));
        }
        visit::visit_expr_field(self, field);
    }

    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        visit::visit_expr_struct(self, literal);
        let Some(view) = self.definition_of_path(&literal.path) else {
            return;
        };
        for field in &literal.fields {
            let Some((owner, of_owner)) = self.borrowed(&field.expr) else {
                continue;
            };
            if let Some(surveyed) = self.types.get_mut(&view).filter(|_| owner != view) {
                let borrowed = surveyed.views.entry(owner).or_default();
                borrowed.insert(member_name(&field.member), of_owner);
            }
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // The arguments of `assert!`, `format!` and their like.
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        for argument in call.parse_body_with(arguments).iter().flatten() {
            Visit::visit_expr(self, argument);
        }
    }
}

/// The types that hold one other and are taken in its place.
const WRAPPERS: &[&str] = &["Arc", "Box", "Option", "Pin", "Rc"];
