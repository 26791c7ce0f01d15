//! Flags that add to the content of a request, in the order of the command line.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// The flags of content, in the order of the command line.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct ContentFlags(pub(crate) Vec<ContentFlag>);

/// A flag of content with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentFlag {
    pub(crate) kind: ContentKind,
    pub(crate) value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Data,
    Raw,
    Binary,
    UrlEncoded,
    Json,
    Form,
    FormString,
}

impl ContentKind {
    /// Returns true for a part of multipart/form-data.
    pub(crate) const fn is_form(self) -> bool {
        matches!(self, Self::Form | Self::FormString)
    }
}

impl ContentFlags {
    /// Returns true if there is JSON, which has its own media type.
    pub(crate) fn has_json(&self) -> bool {
        self.0.iter().any(|flag| flag.kind == ContentKind::Json)
    }

    /// Returns true if a flag adds a part of a form.
    pub(crate) fn has_form(&self) -> bool {
        self.0.iter().any(|flag| flag.kind.is_form())
    }

    /// Returns the flags other than those of forms.
    pub(crate) fn data(&self) -> impl Iterator<Item = &ContentFlag> {
        self.0.iter().filter(|flag| !flag.kind.is_form())
    }
}

impl FromArgMatches for ContentFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut all = Vec::new();
        for (id, kind) in IDS {
            let values = matches.get_many::<String>(id).into_iter().flatten();
            let places = matches.indices_of(id).into_iter().flatten();
            let flags = values.map(|value| ContentFlag {
                kind,
                value: value.clone(),
            });
            all.extend(places.zip(flags));
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(Self(all.into_iter().map(|(_, flag)| flag).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ContentFlags {
    fn augment_args(command: Command) -> Command {
        command.args(arguments())
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.args(arguments())
    }
}

fn arguments() -> [Arg; 7] {
    let flag = |id: &'static str, name: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name(name)
            .action(ArgAction::Append)
    };
    [
        flag("data", "DATA")
            .short('d')
            .visible_alias("data-ascii")
            .help("Send data in a POST request; @FILE reads it from a file")
            .long_help(
                "Send data in a POST request; @FILE reads it from a file\n\nCarriage returns and \
                 newlines in the file are removed. Several flags of data are joined with &.",
            ),
        flag("data-raw", "DATA").help("Like --data, without special meaning of @"),
        flag("data-binary", "DATA").help("Like --data, without removing newlines from files"),
        flag("data-urlencode", "DATA")
            .help("Like --data, percent-encoded")
            .long_help(
                "Like --data, percent-encoded\n\nForms: content, =content, name=content, @FILE, \
                 name@FILE.",
            ),
        flag("json", "DATA")
            .help("Send JSON in a POST request; @FILE reads it from a file")
            .long_help(
                "Send JSON in a POST request; @FILE reads it from a file\n\nSets Content-Type and \
                 Accept to application/json, unless --header does. Several --json are concatenated. \
                 For the times of a transfer as JSON, see --timing-json.",
            ),
        flag("form", "PART")
            .short('F')
            .help("Add a part to a multipart/form-data body")
            .long_help(
                "Add a part to a multipart/form-data body\n\nForms: name=content, name=@FILE[,FILE] \
                 (upload), name=<FILE (content from a file). Append ;type=, ;filename=, ;headers= or \
                 ;encoder= to set these. Put content and names with commas or semicolons in double \
                 quotes.",
            ),
        flag("form-string", "PART").help("Like --form, without special meaning of @, < and ;"),
    ]
}

/// The identifiers of the flags, which are also their long names.
const IDS: [(&str, ContentKind); 7] = [
    ("data", ContentKind::Data),
    ("data-raw", ContentKind::Raw),
    ("data-binary", ContentKind::Binary),
    ("data-urlencode", ContentKind::UrlEncoded),
    ("json", ContentKind::Json),
    ("form", ContentKind::Form),
    ("form-string", ContentKind::FormString),
];
