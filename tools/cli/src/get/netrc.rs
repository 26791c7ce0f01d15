//! `--netrc`: user names and passwords of hosts.

use std::path::{Path, PathBuf};

use super::exit::{Failed, READ_ERROR};

/// The credentials of hosts.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(super) struct Netrc(Vec<Machine>);

#[derive(Clone, Default, Debug, PartialEq, Eq)]
struct Machine {
    /// `None` for all hosts that are not listed before.
    host: Option<String>,
    login: Option<String>,
    password: Option<String>,
}

impl Netrc {
    /// Reads a file.
    pub(super) fn read(path: &Path, is_optional: bool) -> Result<Self, Failed> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(_) if is_optional => Ok(Self::default()),
            Err(error) => {
                let text = format!("cannot read {}: {error}", path.display());
                Err(Failed::new(READ_ERROR, text))
            }
        }
    }

    /// Returns the file of the user, `.netrc` in the home directory.
    pub(super) fn of_user() -> PathBuf {
        let home = ["NETRC", "CURL_HOME", "HOME", "USERPROFILE"].iter();
        let mut homes = home.filter_map(|name| Some((*name, std::env::var_os(name)?)));
        match homes.next() {
            Some(("NETRC", file)) => file.into(),
            Some((_, home)) => Path::new(&home).join(".netrc"),
            None => ".netrc".into(),
        }
    }

    fn parse(text: &str) -> Self {
        let mut machines: Vec<Machine> = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut words = Words(line);
            while let Some(word) = words.next() {
                match word.as_str() {
                    // A macro ends with an empty line.
                    "macdef" => {
                        for line in lines.by_ref() {
                            if line.trim().is_empty() {
                                break;
                            }
                        }
                        break;
                    }
                    "default" => machines.push(Machine::default()),
                    "machine" => {
                        let host = words.next_or(&mut lines);
                        machines.push(Machine {
                            host: Some(host.to_ascii_lowercase()),
                            ..Machine::default()
                        });
                    }
                    "login" | "password" | "account" => {
                        let value = words.next_or(&mut lines);
                        if let Some(machine) = machines.last_mut() {
                            match word.as_str() {
                                "login" => machine.login = Some(value),
                                "password" => machine.password = Some(value),
                                _ => {}
                            }
                        }
                    }
                    word if word.starts_with('#') => break,
                    _ => {}
                }
            }
        }
        Self(machines)
    }

    /// Returns `user:password` for a host, and for a user if one is given.
    pub(super) fn find(&self, host: &str, user: Option<&str>) -> Option<String> {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let found = self.0.iter().find(|machine| {
            let is_host = machine.host.as_ref().is_none_or(|it| *it == host);
            let login = machine.login.as_deref();
            is_host && user.is_none_or(|user| login.is_none_or(|login| login == user))
        })?;
        let login = user.or(found.login.as_deref()).unwrap_or_default();
        let password = found.password.as_deref().unwrap_or_default();
        Some(format!("{login}:{password}"))
    }
}

/// The words of a line, which may be in double quotes.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// Returns the next word of this line or of the next lines.
    fn next_or(&mut self, lines: &mut std::str::Lines<'a>) -> String {
        loop {
            if let Some(word) = self.next() {
                return word;
            }
            match lines.next() {
                Some(line) => self.0 = line,
                None => return String::new(),
            }
        }
    }
}

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.0 = self.0.trim_start();
        let Some(quoted) = self.0.strip_prefix('"') else {
            let end = self.0.find(char::is_whitespace).unwrap_or(self.0.len());
            let (word, rest) = self.0.split_at(end);
            self.0 = rest;
            return (!word.is_empty()).then(|| word.to_owned());
        };
        let mut word = String::new();
        let mut letters = quoted.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return Some(word);
                }
                '\\' => match letters.next() {
                    Some((_, 'n')) => word.push('\n'),
                    Some((_, 'r')) => word.push('\r'),
                    Some((_, 't')) => word.push('\t'),
                    Some((_, escaped)) => word.push(escaped),
                    None => break,
                },
                _ => word.push(letter),
            }
        }
        self.0 = "";
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_with_their_credentials() {
        let netrc = Netrc::parse(
            "# a comment machine no.test\n\
             machine a.test login me password \"p w\\\"\"\n\
             machine B.test\n  login you\n  password\n\n  secret account x\n\
             macdef init\nmachine evil.test login x\n\n\
             machine a.test login other password second\n\
             default login anonymous password x@y\n",
        );
        let find = |host, user| netrc.find(host, user);
        assert_eq!(find("a.test", None).as_deref(), Some("me:p w\""));
        assert_eq!(
            find("A.TEST", Some("other")).as_deref(),
            Some("other:second")
        );
        assert_eq!(find("b.test", None).as_deref(), Some("you:secret"));
        assert_eq!(find("evil.test", None).as_deref(), Some("anonymous:x@y"));
        assert_eq!(Netrc::parse("machine a.test").find("b.test", None), None);
    }
}
