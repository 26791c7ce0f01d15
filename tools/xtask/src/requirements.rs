//! Reads `docs/requirements.tsv`, the rules of the RFCs.

use std::collections::BTreeMap;

use crate::report::Problems;

/// A rule of an RFC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) id: String,
    pub(crate) rfc: String,
    pub(crate) section: String,
    pub(crate) level: String,
    /// The side as the table writes it, such as `client-rx`.
    pub(crate) bound: String,
    pub(crate) side: Side,
    pub(crate) rule: String,
}

/// The end that a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// The end that receives, `…-rx`.
    Receiver,
    /// The end that sends, `…-tx`.
    Sender,
    /// An intermediary between clients and servers, `proxy`.
    Proxy,
    /// The server that a resource lives on, `origin`: files, services of the library, pages of the server itself.
    Origin,
    /// The program that starts requests for a user, `ua`: cookies, redirects, credentials.
    UserAgent,
}

impl Side {
    /// Every side, in the order of reports.
    pub(crate) const ALL: [Self; 5] = [
        Self::Receiver,
        Self::Sender,
        Self::Proxy,
        Self::Origin,
        Self::UserAgent,
    ];

    /// Returns the name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Sender => "sender",
            Self::Proxy => "proxy",
            Self::Origin => "origin",
            Self::UserAgent => "user agent",
        }
    }

    /// Reads a side of the table.
    fn of(text: &str) -> Option<Self> {
        match text.split_once('-') {
            Some(("both" | "client" | "server", "rx")) => Some(Self::Receiver),
            Some(("both" | "client" | "server", "tx")) => Some(Self::Sender),
            None if text == "proxy" => Some(Self::Proxy),
            None if text == "origin" => Some(Self::Origin),
            None if text == "ua" => Some(Self::UserAgent),
            _ => None,
        }
    }
}

/// The rules by id.
pub(crate) type Requirements = BTreeMap<String, Requirement>;

/// Reads the table. Each line must have all columns and a unique id.
pub(crate) fn parse(text: &str) -> Result<Requirements, Problems> {
    let mut problems = Problems::new();
    let mut requirements = Requirements::new();
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, header)| header) != Some(HEADER) {
        return Err(vec![format!(
            "the first line is not `{}`",
            HEADER.replace('\t', " ")
        )]);
    }
    for (index, line) in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let [id, rfc, section, level, bound, rule, _error] = columns[..] else {
            problems.push(format!(
                "line {}: has {} columns, not 7",
                index + 1,
                columns.len()
            ));
            continue;
        };
        let Some(side) = Side::of(bound) else {
            problems.push(format!("line {}: no side is named `{bound}`", index + 1));
            continue;
        };
        let requirement = Requirement {
            id: id.to_owned(),
            rfc: rfc.to_owned(),
            section: section.to_owned(),
            level: level.to_owned(),
            bound: bound.to_owned(),
            side,
            rule: rule.to_owned(),
        };
        if requirements.insert(id.to_owned(), requirement).is_some() {
            problems.push(format!("line {}: repeats the rule {id}", index + 1));
        }
    }
    if problems.is_empty() {
        Ok(requirements)
    } else {
        Err(problems)
    }
}

const HEADER: &str = "id\trfc\tsection\tlevel\tside\trule\terror";

#[cfg(test)]
mod tests;
