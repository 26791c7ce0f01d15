//! Where bodies go.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use http::HeaderMap;

use super::args::OutputArguments;
use super::encoding::percent_decode;
use super::exit::{Failed, WRITE_ERROR};

/// What the flags say about the body of one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output, because nothing else was said.
    Stdout,
    /// Standard output, because somebody wants it there.
    ForcedStdout,
    File(PathBuf),
    /// A file whose name the server may choose.
    Remote {
        fallback: String,
        folder: PathBuf,
    },
}

impl Target {
    /// Of the URL with this index among those of the command line. `name` puts the parts of a
    /// pattern into names.
    pub(crate) fn of(
        output: &OutputArguments,
        index: usize,
        path: &str,
        name: impl Fn(&str) -> String,
    ) -> Result<Self, Failed> {
        let folder = output.output_dir.clone().unwrap_or_default();
        if let Some(file) = output.output.get(index) {
            return Ok(match name(file).as_str() {
                "-" => Self::ForcedStdout,
                file if cfg!(windows) && is_null_device(file) => Self::File(NULL_DEVICE.into()),
                file => Self::File(folder.join(file)),
            });
        }
        let is_remote = index < output.output.len() + usize::from(output.remote_name);
        if !is_remote && !output.remote_name_all {
            return Ok(Self::Stdout);
        }
        let last = path.rsplit('/').next().unwrap_or_default();
        let is_usable = !last.is_empty() && last != "." && last != ".." && !is_elsewhere(last);
        match (is_usable, output.remote_header_name) {
            (true, false) => Ok(Self::File(folder.join(last))),
            (_, true) => Ok(Self::Remote {
                fallback: if is_usable {
                    last.to_owned()
                } else {
                    String::new()
                },
                folder,
            }),
            (false, false) => Err(no_name(path)),
        }
    }

    /// The file that is there already, for those who go on with it.
    pub(crate) fn known_file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            _ => None,
        }
    }

    pub(crate) const fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout | Self::ForcedStdout)
    }

    /// Opens it when the head of a response is there; `offset` bytes of the file stay.
    pub(crate) fn open(
        &self,
        headers: &HeaderMap,
        offset: u64,
        creates_folders: bool,
    ) -> Result<Sink, Failed> {
        let (path, is_new) = match self {
            Self::Stdout => return Ok(Sink::stdout(io::stdout().is_terminal())),
            Self::ForcedStdout => return Ok(Sink::stdout(false)),
            Self::File(path) => (path.clone(), false),
            Self::Remote { fallback, folder } => {
                let name = name_of(headers).unwrap_or_else(|| fallback.clone());
                if name.is_empty() {
                    return Err(no_name(""));
                }
                (folder.join(name), true)
            }
        };
        if creates_folders && let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        }
        let mut options = File::options();
        options.write(true);
        match (offset, is_new) {
            // The server chose the name: it must not choose what is overwritten or appended to.
            (0, true) => options.create_new(true),
            (_, true) => return Err(not_resumable(&path)),
            // A device cannot be cut.
            _ if path.as_os_str() == NULL_DEVICE && cfg!(windows) => &mut options,
            (0, false) => options.create(true).truncate(true),
            _ => options.append(true),
        };
        let file = options
            .open(&path)
            .map_err(|error| unwritable(&path, &error))?;
        Ok(Sink {
            to: To::File(file, path),
            may_be_binary: true,
        })
    }
}

/// An open one.
#[derive(Debug)]
pub(crate) struct Sink {
    to: To,
    may_be_binary: bool,
}

#[derive(Debug)]
enum To {
    Stdout,
    File(File, PathBuf),
}

impl Sink {
    const fn stdout(is_terminal: bool) -> Self {
        Self {
            to: To::Stdout,
            may_be_binary: !is_terminal,
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        if !self.may_be_binary && bytes.contains(&0) {
            let text = "binary output can mess up your terminal: use '--output -' to have it \
                        there all the same, or '--output FILE'";
            return Err(Failed::new(WRITE_ERROR, text));
        }
        match &mut self.to {
            To::Stdout => io::stdout()
                .write_all(bytes)
                .map_err(|error| unwritable(Path::new("standard output"), &error)),
            To::File(file, path) => file
                .write_all(bytes)
                .map_err(|error| unwritable(path, &error)),
        }
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failed> {
        match &mut self.to {
            To::Stdout => io::stdout()
                .flush()
                .map_err(|error| unwritable(Path::new("standard output"), &error)),
            To::File(..) => Ok(()),
        }
    }

    /// The name of the file, if it is one.
    pub(crate) fn name(&self) -> String {
        match &self.to {
            To::Stdout => String::new(),
            To::File(_, path) => path.display().to_string(),
        }
    }
}

/// The name in a `content-disposition` field, without any folders (RFC 6266 §4.3).
fn name_of(headers: &HeaderMap) -> Option<String> {
    let field = headers.get("content-disposition")?.to_str().ok()?;
    let mut found = None;
    for part in field.split(';').skip(1) {
        let Some((name, value)) = part.trim().split_once('=') else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "filename*" => {
                let coded = value.splitn(3, '\'').nth(2)?;
                return usable(&percent_decode(coded));
            }
            "filename" => found = usable(value),
            _ => {}
        }
    }
    found
}

/// A name that stays in its folder.
fn usable(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next()?;
    let is_usable = !last.is_empty()
        && !last.starts_with('.')
        && !last.contains(|c: char| c.is_control() || c == ':')
        && !is_elsewhere(last);
    is_usable.then(|| last.to_owned())
}

/// True for what is no file of a folder on this system.
fn is_elsewhere(name: &str) -> bool {
    cfg!(windows) && is_special_on_windows(name)
}

/// Windows takes such a name for a device, a drive, a stream of a file, or another file.
fn is_special_on_windows(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let is_device = DEVICES.iter().any(|device| match device.strip_suffix('#') {
        None => stem.eq_ignore_ascii_case(device),
        Some(device) => stem
            .strip_suffix(|c: char| c.is_ascii_digit() || "¹²³".contains(c))
            .is_some_and(|stem| stem.eq_ignore_ascii_case(device)),
    });
    is_device
        || name.ends_with(['.', ' '])
        || name.contains(|c: char| c.is_control() || "<>:\"/\\|?*".contains(c))
}

/// Its name there, and the one that scripts written for curl know.
fn is_null_device(file: &str) -> bool {
    file == "/dev/null" || file.eq_ignore_ascii_case(NULL_DEVICE)
}

const NULL_DEVICE: &str = "NUL";

/// `#` is any digit.
const DEVICES: [&str; 8] = [
    "CON", "PRN", "AUX", "NUL", "COM#", "LPT#", "CONIN$", "CONOUT$",
];

fn no_name(path: &str) -> Failed {
    let text = format!("'{path}' does not end in a file name: use --output FILE");
    Failed::new(WRITE_ERROR, text)
}

fn not_resumable(path: &Path) -> Failed {
    let text = format!(
        "the server named the file {}: use --output FILE to resume a download",
        path.display()
    );
    Failed::new(WRITE_ERROR, text)
}

fn unwritable(path: &Path, error: &io::Error) -> Failed {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => ": use --create-dirs to create its directory",
        io::ErrorKind::AlreadyExists => ": --remote-header-name does not overwrite files",
        _ => "",
    };
    let text = format!("cannot write {}: {error}{remedy}", path.display());
    Failed::new(WRITE_ERROR, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(field: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert("content-disposition", field.parse().expect("a value"));
        name_of(&headers)
    }

    #[test]
    fn names_of_servers_stay_in_their_folder() {
        assert_eq!(
            named("attachment; filename=\"a b.txt\"").as_deref(),
            Some("a b.txt")
        );
        assert_eq!(
            named("attachment; filename=../../etc/passwd").as_deref(),
            Some("passwd")
        );
        assert_eq!(
            named("attachment; filename=\"..\\\\x\"").as_deref(),
            Some("x")
        );
        assert_eq!(
            named("attachment; filename=x; filename*=UTF-8''%e2%82%ac").as_deref(),
            Some("€")
        );
        for field in [
            "attachment",
            "attachment; filename=..",
            "attachment; filename=.bashrc",
            "inline; filename=a/",
        ] {
            assert_eq!(named(field), None, "{field}");
        }
    }

    #[test]
    fn files_that_the_server_names_are_not_appended_to() {
        let target = Target::Remote {
            fallback: "kept".to_owned(),
            folder: "/no/such/folder".into(),
        };
        let opened = target.open(&HeaderMap::new(), 1, false);
        let refused = opened.expect_err("the server named it");
        assert_eq!(refused.code, WRITE_ERROR);
        let text = refused.to_string();
        assert!(
            text.contains("kept") && text.contains("--output FILE"),
            "{text}"
        );
    }

    #[test]
    fn names_that_windows_takes_for_something_else_are_known() {
        for name in [
            "C:x",
            "x:y",
            "..\\x",
            "a|b",
            "nul",
            "Con.txt",
            "com7",
            "LPT¹.log",
            "x.",
            "x ",
            "aux .h",
            "conin$",
        ] {
            assert!(is_special_on_windows(name), "{name}");
        }
        for name in [
            "x.txt",
            ".profile",
            "console",
            "com",
            "nul1",
            "a b",
            "communication3",
        ] {
            assert!(!is_special_on_windows(name), "{name}");
        }
        for (name, is_null) in [("/dev/null", true), ("Nul", true), ("null", false)] {
            assert_eq!(is_null_device(name), is_null, "{name}");
        }
    }

    #[test]
    fn outputs_belong_to_urls_in_their_order() {
        let output = OutputArguments {
            output: vec!["a#1".to_owned(), "-".to_owned()],
            remote_name: 1,
            ..OutputArguments::default()
        };
        let target = |index| Target::of(&output, index, "/x/y", |name| name.replace("#1", "1"));
        assert_eq!(target(0), Ok(Target::File("a1".into())));
        assert_eq!(target(1), Ok(Target::ForcedStdout));
        assert_eq!(target(2), Ok(Target::File("y".into())));
        assert_eq!(target(3), Ok(Target::Stdout));
        let nameless = Target::of(&output, 2, "/x/", str::to_owned);
        assert_eq!(nameless.expect_err("no name").code, WRITE_ERROR);
    }
}
