//! The words of a command line of `get`, before clap parses them.
//!
//! curl's rules differ from those of clap: a value may begin with a dash, `--no-` turns a flag off, and `--next`
//! begins another set of flags.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

use super::exit::{FAILED_INIT, Failed, READ_ERROR};
use super::{config, curl_flags};

/// Returns the command lines of `get` between `--next`, in words that clap reads as curl does. Arguments of other
/// commands are returned unchanged, as one command line.
///
/// # Errors
/// Returns an error for a flag of curl that `get` does not have, and for a file of --config that cannot be used.
pub(crate) fn command_lines(
    words: Vec<OsString>,
    command: &Command,
) -> Result<Vec<Vec<OsString>>, Failed> {
    let command = command.find_subcommand("get");
    let Some(command) = command.filter(|_| words.get(1).is_some_and(|word| word == "get")) else {
        return Ok(vec![words]);
    };
    let start: Vec<_> = words[..2].to_vec();
    let mut lines = Lines {
        command,
        all: vec![start.clone()],
        start,
    };
    let mut words = words.into_iter().skip(2);
    while let Some(word) = words.next() {
        if word == "--" {
            // Words after it are URLs.
            let line = lines.last();
            line.push(word);
            line.extend(words.by_ref());
            break;
        }
        lines.add(word, &mut words)?;
    }
    Ok(lines.all)
}

/// Returns the words that a file of --config stands for, in the first command line.
///
/// # Errors
/// Returns an error for a line that is not a flag.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn of_file(shown: &str, text: &str, command: &Command) -> Result<Vec<OsString>, Failed> {
    let mut lines = Lines {
        command,
        all: vec![Vec::new()],
        start: Vec::new(),
    };
    lines.add_file(shown, text)?;
    Ok(lines.all.swap_remove(0))
}

/// The command lines so far.
struct Lines<'a> {
    command: &'a Command,
    all: Vec<Vec<OsString>>,
    /// The words with which each command line begins.
    start: Vec<OsString>,
}

impl Lines<'_> {
    fn last(&mut self) -> &mut Vec<OsString> {
        if self.all.is_empty() {
            self.all.push(self.start.clone());
        }
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    fn add(
        &mut self,
        word: OsString,
        rest: &mut impl Iterator<Item = OsString>,
    ) -> Result<(), Failed> {
        let Some(text) = word.to_str() else {
            self.last().push(word);
            return Ok(());
        };
        if let Some(long) = text.strip_prefix("--") {
            let (name, glued) = match long.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (long, None),
            };
            return self.add_long(name, glued, rest);
        }
        match text.strip_prefix('-') {
            None | Some("") => {
                self.last().push(word);
                Ok(())
            }
            Some(shorts) => self.add_shorts(shorts, rest),
        }
    }

    fn add_long(
        &mut self,
        name: &str,
        glued: Option<OsString>,
        rest: &mut impl Iterator<Item = OsString>,
    ) -> Result<(), Failed> {
        let whole = || {
            let mut word = OsString::from(format!("--{name}"));
            if let Some(value) = &glued {
                word.push("=");
                word.push(value);
            }
            word
        };
        if name == "next" {
            self.next();
            return Ok(());
        }
        match by_long(self.command, name) {
            Some(arg) if takes_next(arg) => {
                let value = glued.clone().or_else(|| rest.next());
                self.add_value(arg, whole(), value)?;
            }
            Some(_) => self.last().push(whole()),
            None if curl_flags::is_ignored(name) => {
                if curl_flags::takes_value(name) && glued.is_none() {
                    rest.next();
                }
            }
            None => match name.strip_prefix("no-") {
                Some(positive) if self.is_switch(positive) => self.turn_off(positive),
                _ => match curl_flags::refusal(name) {
                    Some(text) => return Err(Failed::new(FAILED_INIT, text)),
                    // clap reports it, and suggests a similar one.
                    None => self.last().push(whole()),
                },
            },
        }
        Ok(())
    }

    /// Adds short flags that share a word, such as `-sSLo`.
    fn add_shorts(
        &mut self,
        shorts: &str,
        rest: &mut impl Iterator<Item = OsString>,
    ) -> Result<(), Failed> {
        for (at, letter) in shorts.char_indices() {
            let word = OsString::from(format!("-{letter}"));
            let arg = by_short(self.command, letter);
            if let Some(arg) = arg.filter(|arg| takes_next(arg)) {
                let glued = &shorts[at + letter.len_utf8()..];
                let value = match glued {
                    "" => rest.next(),
                    glued => Some(glued.into()),
                };
                return self.add_value(arg, word, value);
            }
            if arg.is_some() {
                self.last().push(word);
                continue;
            }
            match curl_flags::long_of(letter) {
                Some("next") => self.next(),
                Some(long) if curl_flags::is_ignored(long) => {}
                Some(long) => match curl_flags::refusal(long) {
                    Some(text) => return Err(Failed::new(FAILED_INIT, text)),
                    None => self.last().push(word),
                },
                None => self.last().push(word),
            }
        }
        Ok(())
    }

    /// Adds a flag with its value in one word, so that the value may begin with a dash.
    fn add_value(
        &mut self,
        arg: &Arg,
        word: OsString,
        value: Option<OsString>,
    ) -> Result<(), Failed> {
        let Some(value) = value else {
            // clap reports that the value is missing.
            self.last().push(word);
            return Ok(());
        };
        if arg.get_long() == Some("config") {
            let shown = value.to_string_lossy();
            let text = super::content::read(&shown)?;
            return self.add_file(&shown, &String::from_utf8_lossy(&text));
        }
        let mut word = OsString::from(format!("--{}=", arg.get_long().unwrap_or_default()));
        word.push(value);
        self.last().push(word);
        Ok(())
    }

    /// Adds the flags in a file.
    fn add_file(&mut self, shown: &str, text: &str) -> Result<(), Failed> {
        for (number, line) in config::lines(text) {
            let wrong = |why: &str| {
                let text = format!("line {number} of {shown}: {why}");
                Failed::new(READ_ERROR, text)
            };
            let (name, value) = config::flag(line).map_err(|why| wrong(&why))?;
            let short = name.strip_prefix('-').filter(|it| it.chars().count() == 1);
            let short = short.and_then(|short| short.chars().next());
            let long = match short {
                None => Some(name.trim_start_matches("--")),
                Some(letter) => by_short(self.command, letter)
                    .and_then(Arg::get_long)
                    .or_else(|| curl_flags::long_of(letter)),
            };
            let long =
                long.ok_or_else(|| wrong(&format!("'{name}' is not a flag of 'courser get'")))?;
            if long == "config" {
                return Err(wrong("a file cannot include another one"));
            }
            let arg = by_long(self.command, long);
            let takes_value = match arg {
                Some(arg) => takes_next(arg),
                None => curl_flags::takes_value(long),
            };
            let is_known = arg.is_some()
                || long == "next"
                || curl_flags::is_ignored(long)
                || long
                    .strip_prefix("no-")
                    .is_some_and(|it| self.is_switch(it));
            if !is_known {
                let text = curl_flags::refusal(long);
                let text =
                    text.unwrap_or_else(|| format!("'{name}' is not a flag of 'courser get'"));
                return Err(wrong(&text));
            }
            match (&value, takes_value) {
                (None, true) => return Err(wrong(&format!("'{name}' needs a value"))),
                (Some(_), false) => return Err(wrong(&format!("'{name}' takes no value"))),
                _ => {}
            }
            self.add_long(long, value.map(OsString::from), &mut std::iter::empty())
                .map_err(|failed| wrong(&failed.text))?;
        }
        Ok(())
    }

    fn next(&mut self) {
        self.all.push(self.start.clone());
    }

    /// Returns true for a flag without a value, which `--no-` turns off.
    fn is_switch(&self, name: &str) -> bool {
        by_long(self.command, name).is_some_and(|arg| !arg.get_action().takes_values())
            || (curl_flags::is_ignored(name) && !curl_flags::takes_value(name))
    }

    /// Removes a flag that precedes its negation.
    fn turn_off(&mut self, name: &str) {
        let short = by_long(self.command, name).and_then(Arg::get_short);
        let (long, short) = (
            format!("--{name}"),
            short.map(|letter| format!("-{letter}")),
        );
        let is_it = |word: &OsStr| {
            word == long.as_str() || short.as_ref().is_some_and(|it| word == it.as_str())
        };
        self.last().retain(|word| !is_it(word));
    }
}

fn by_long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || aliases.contains(&name)
    })
}

fn by_short(command: &Command, letter: char) -> Option<&Arg> {
    let mut arguments = command.get_arguments();
    arguments.find(|arg| arg.get_short() == Some(letter))
}

/// Returns true if the next word is the value of a flag.
fn takes_next(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn lines(line: &[&str]) -> Result<Vec<Vec<String>>, Failed> {
        let words = ["courser", "get"].iter().chain(line).map(OsString::from);
        let command = crate::args::Arguments::command();
        let lines = command_lines(words.collect(), &command)?;
        let text = |word: OsString| word.into_string().expect("UTF-8");
        Ok(lines
            .into_iter()
            .map(|line| line.into_iter().skip(2).map(text).collect())
            .collect())
    }

    fn line(words: &[&str]) -> Vec<String> {
        let mut all = lines(words).expect("a command line");
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn values_may_begin_with_dashes() {
        for (given, expected) in [
            (&["-r", "-500", "u"][..], &["--range=-500", "u"][..]),
            (&["-r-500"], &["--range=-500"]),
            (&["--data", "-x"], &["--data=-x"]),
            (&["-d=x"], &["--data==x"]),
            (&["-sSo", "-x"], &["-s", "-S", "--output=-x"]),
            (&["-H", "-K", "u"], &["--header=-K", "u"]),
            (&["--early-data", "u"], &["--early-data", "u"]),
            (&["--", "-K"], &["--", "-K"]),
            (&["-o"], &["-o"]),
        ] {
            assert_eq!(line(given), expected, "{given:?}");
        }
        let other = ["courser", "serve", "-K"].map(OsString::from).to_vec();
        let command = crate::args::Arguments::command();
        let same = command_lines(other.clone(), &command).expect("unchanged");
        assert_eq!(same, [other]);
    }

    #[test]
    fn switches_can_be_turned_off_and_others_are_ignored() {
        assert_eq!(line(&["-sL", "--no-silent", "u"]), ["-L", "u"]);
        assert_eq!(line(&["-sSN#q", "--tcp-nodelay", "u"]), ["-s", "-S", "u"]);
        assert_eq!(line(&["--tlsv1.2", "--no-keepalive", "u"]), ["u"]);
        assert_eq!(line(&["--no-progress-meter"]), ["--no-progress-meter"]);
    }

    #[test]
    fn next_begins_another_command_line() {
        let all = lines(&["-d", "x", "a", "--next", "b", "-:", "c"]).expect("three");
        assert_eq!(all, [vec!["--data=x", "a"], vec!["b"], vec!["c"]]);
    }

    #[test]
    fn flags_of_curl_that_are_not_built_are_named() {
        for (flag, why) in [
            ("--ftp-port", "--ftp-port"),
            ("-P", "--ftp-port"),
            ("--ntlm", "NTLM"),
        ] {
            let failed = lines(&[flag, "u"]).expect_err("not built");
            assert!(failed.text.contains(why), "{failed}");
        }
        // clap reports flags that nobody has.
        assert_eq!(line(&["--no-such-flag"]), ["--no-such-flag"]);
    }

    #[test]
    fn files_are_read_as_curl_does() {
        let command = crate::args::Arguments::command();
        let get = command.find_subcommand("get").expect("a command");
        let of_line = |line: &str| of_file("file", line, get);
        for (line, expected) in [
            ("silent", "--silent"),
            ("-s", "--silent"),
            ("--silent # quiet", "--silent"),
            (
                "url = \"https://a.test/?q=b c\"",
                "--url=https://a.test/?q=b c",
            ),
            ("url=https://a.test/", "--url=https://a.test/"),
            ("url: https://a.test/", "--url=https://a.test/"),
            ("--url https://a.test/", "--url=https://a.test/"),
            ("-X POST", "--request=POST"),
            ("data = -x", "--data=-x"),
            ("header = \"a: \\\"b\\\\\\t\\q\"", "--header=a: \"b\\\tq"),
            ("user-agent = \"\"", "--user-agent="),
        ] {
            assert_eq!(of_line(line).expect(line), [expected], "{line}");
        }
        for wrong in [
            "no-such-flag",
            "silent = yes",
            "url",
            "url = \"https://a.test/",
            "config = other",
            "-K other",
            "ftp-port = -",
        ] {
            let failed = of_line(wrong).expect_err(wrong);
            assert!(failed.text.contains("line 1 of file"), "{failed}");
        }
        assert_eq!(of_line("no-buffer\n-N").expect("ignored"), [""; 0]);
    }
}
