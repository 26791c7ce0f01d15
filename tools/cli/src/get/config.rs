//! `--config FILE`: flags from a file in curl's format, which replace the flag on the command line.

use std::ffi::{OsStr, OsString};
use std::vec::IntoIter;

use clap::{Arg, Command};

use super::content;
use super::exit::{FAILED_INIT, Failed};

/// Replaces `--config FILE` in the arguments of `get` by the flags in the file. Arguments of other
/// commands are returned unchanged.
///
/// # Errors
/// Returns an error if a file cannot be read, or if a line of it is not a flag.
pub(crate) fn expand(words: Vec<OsString>, command: &Command) -> Result<Vec<OsString>, Failed> {
    let command = command.find_subcommand("get");
    let Some(command) = command.filter(|_| words.get(1).is_some_and(|word| word == "get")) else {
        return Ok(words);
    };
    let mut words = words.into_iter();
    let mut all: Vec<_> = words.by_ref().take(2).collect();
    while let Some(word) = words.next() {
        if word == "--" {
            all.push(word);
            all.extend(words.by_ref());
            break;
        }
        match flag(&word, command) {
            None => all.push(word),
            Some((head, Flag::Config(glued))) => {
                all.extend(head);
                // clap reports that the name is missing.
                match glued.map(OsString::from).or_else(|| words.next()) {
                    Some(name) => all.extend(read(&name, command)?),
                    None => all.push(word),
                }
            }
            Some((_, Flag::WithValue)) => {
                all.push(word);
                all.extend(words.next());
            }
        }
    }
    Ok(all)
}

/// A flag that determines the meaning of the next argument.
enum Flag {
    /// `--config`, with the file name if it is part of the same argument.
    Config(Option<String>),
    /// A flag whose value is the next argument.
    WithValue,
}

/// Returns the flag at the end of an argument if it takes a value, and the flags without values that precede
/// it.
fn flag(word: &OsStr, command: &Command) -> Option<(Option<OsString>, Flag)> {
    let text = word.to_str()?;
    if let Some(long) = text.strip_prefix("--") {
        let (name, glued) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        if name == "config" {
            return Some((None, Flag::Config(glued)));
        }
        let is_alone = glued.is_none() && takes_value(by_long(command, name)?);
        return is_alone.then_some((None, Flag::WithValue));
    }
    let shorts = text.strip_prefix('-')?;
    for (at, letter) in shorts.char_indices() {
        let rest = &shorts[at + letter.len_utf8()..];
        if letter == 'K' {
            let head = (at > 0).then(|| OsString::from(format!("-{}", &shorts[..at])));
            let glued = (!rest.is_empty()).then(|| rest.to_owned());
            return Some((head, Flag::Config(glued)));
        }
        let arg = command
            .get_arguments()
            .find(|arg| arg.get_short() == Some(letter))?;
        if takes_value(arg) {
            return rest.is_empty().then_some((None, Flag::WithValue));
        }
    }
    None
}

fn by_long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || aliases.contains(&name)
    })
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn read(name: &OsStr, command: &Command) -> Result<IntoIter<OsString>, Failed> {
    let shown = name.to_string_lossy();
    let bytes = content::read(&shown)?;
    parse(&shown, &String::from_utf8_lossy(&bytes), command)
}

/// Parses the text of a file. `shown` is its name in errors.
pub(crate) fn parse(
    shown: &str,
    text: &str,
    command: &Command,
) -> Result<IntoIter<OsString>, Failed> {
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let word = word(line, command).map_err(|why| {
            let number = number + 1;
            Failed::new(FAILED_INIT, format!("line {number} of {shown}: {why}"))
        })?;
        words.push(OsString::from(word));
    }
    Ok(words.into_iter())
}

/// Converts a line to one argument.
fn word(line: &str, command: &Command) -> Result<String, String> {
    let is_dashed = line.starts_with('-');
    let is_separator =
        |letter: char| letter.is_whitespace() || (!is_dashed && matches!(letter, '=' | ':'));
    let end = line.find(is_separator).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let value = value(rest.trim_start_matches(is_separator))?;
    let short = name.strip_prefix('-').filter(|it| it.len() == 1);
    let long = name.trim_start_matches("--");
    let arg = match short {
        Some(short) => command
            .get_arguments()
            .find(|arg| arg.get_short() == short.chars().next()),
        None => by_long(command, long),
    };
    let arg = arg.ok_or_else(|| format!("'{name}' is not a flag of 'courser get'"))?;
    if arg.get_long() == Some("config") {
        return Err("a file cannot include another one".to_owned());
    }
    match (value, takes_value(arg)) {
        (None, false) => Ok(short.map_or(format!("--{long}"), |_| name.to_owned())),
        (Some(value), true) => {
            Ok(short.map_or_else(|| format!("--{long}={value}"), |_| format!("{name}{value}")))
        }
        (None, true) => Err(format!("'{name}' needs a value")),
        (Some(_), false) => Err(format!("'{name}' takes no value")),
    }
}

/// Parses a value, which is quoted if it contains spaces. Returns `None` if there is none.
fn value(text: &str) -> Result<Option<String>, String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let value = text.split_whitespace().next();
        let value = value.filter(|value| !value.starts_with('#'));
        return Ok(value.map(str::to_owned));
    };
    let mut value = String::new();
    let mut letters = quoted.chars();
    loop {
        let letter = match letters.next() {
            None => return Err("unterminated quotes".to_owned()),
            Some('"') => return Ok(Some(value)),
            Some('\\') => match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('v') => '\u{b}',
                Some(letter) => letter,
                None => continue,
            },
            Some(letter) => letter,
        };
        value.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn command() -> Command {
        crate::args::Arguments::command()
    }

    fn of_line(line: &str) -> Result<String, String> {
        let command = command();
        word(line, command.find_subcommand("get").expect("a command"))
    }

    #[test]
    fn lines_are_read_as_curl_does() {
        for (line, expected) in [
            ("silent", "--silent"),
            ("-s", "-s"),
            ("--silent # quiet", "--silent"),
            (
                "url = \"https://a.test/?q=b c\"",
                "--url=https://a.test/?q=b c",
            ),
            ("url=https://a.test/", "--url=https://a.test/"),
            ("url: https://a.test/", "--url=https://a.test/"),
            ("--url https://a.test/", "--url=https://a.test/"),
            ("-X POST", "-XPOST"),
            ("data = -x", "--data=-x"),
            ("header = \"a: \\\"b\\\\\\t\\q\"", "--header=a: \"b\\\tq"),
            ("user-agent = \"\"", "--user-agent="),
        ] {
            assert_eq!(of_line(line).as_deref(), Ok(expected), "{line}");
        }
        for wrong in [
            "no-such-flag",
            "silent = yes",
            "url",
            "url = \"https://a.test/",
            "config = other",
            "-K other",
        ] {
            assert!(of_line(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_of_other_flags_are_unchanged() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in [
            "courser get -H -K https://a.test/",
            "courser get -sH -K",
            "courser get --header --config x",
            "courser get -- -K",
            "courser get -o-K x",
            "courser serve -K",
            "courser get x -K",
        ] {
            let same = expand(words(line), &command()).expect(line);
            assert_eq!(same, words(line), "{line}");
        }
    }
}
