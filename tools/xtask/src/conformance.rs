//! `cargo xtask conformance`: maps the rules of the RFCs to the tests that cover them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::Problems;
use crate::requirements::{self, Requirement, Requirements, Side};

/// The options of the command line.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Prints the rules without a test as well.
    pub(crate) missing: bool,
    /// A folder that has the output of `cargo test -p <package> -- --list` in `<package>.txt`.
    pub(crate) lists: Option<PathBuf>,
}

/// Checks the mapping and prints its coverage of each RFC.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), Problems> {
    let requirements = named(
        REQUIREMENTS,
        requirements::parse(&read(root, REQUIREMENTS)?),
    )?;
    let mapping = named(MAPPING, parse_mapping(&read(root, MAPPING)?))?;
    let packages: BTreeSet<&str> = mapping.iter().filter_map(Row::package).collect();
    let mut lists = match options.lists {
        Some(_) => BTreeMap::new(),
        None => list_tests(root)?,
    };
    let mut tests = Tests::new();
    for package in packages {
        let list = match &options.lists {
            Some(folder) => read(folder, &format!("{package}.txt"))?,
            None => lists.remove(package).unwrap_or_default(),
        };
        tests.insert(package.to_owned(), parse_list(&list));
    }
    let (state, problems) = check(&mapping, &requirements, &tests);
    let mut text = report(&state, &requirements);
    for (rule, exclusion) in &state.excluded {
        text.push_str(&format!("{rule}  {exclusion}\n"));
    }
    if options.missing {
        text.extend(missing(&state, &requirements).map(missing_line));
    }
    crate::report::print(&text);
    if problems.is_empty() {
        Ok(())
    } else {
        named(MAPPING, Err(problems))
    }
}

/// A line of the mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    line: usize,
    rule: String,
    proof: Proof,
}

/// The evidence of a line for its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Proof {
    /// The test fails when the rule is broken.
    Test { package: String, test: String },
    /// The rule has no test and needs none.
    Excluded(Exclusion),
}

/// The statement that a rule needs no test, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exclusion {
    /// courser has nothing that the rule binds.
    NotApplicable(String),
    /// The rule binds what courser does not have yet.
    NotBuilt(String),
}

impl Exclusion {
    /// Reads the column of the package and the one behind it.
    fn of(package: &str, reason: &str) -> Option<Self> {
        match package {
            NOT_APPLICABLE => Some(Self::NotApplicable(reason.to_owned())),
            NOT_BUILT => Some(Self::NotBuilt(reason.to_owned())),
            _ => None,
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::NotApplicable(_) => "does not apply",
            Self::NotBuilt(_) => "is not built",
        }
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NotApplicable(reason) | Self::NotBuilt(reason)) = self;
        write!(f, "{}: {reason}", self.words())
    }
}

impl Row {
    /// Returns the package of the test.
    fn package(&self) -> Option<&str> {
        match &self.proof {
            Proof::Test { package, .. } => Some(package),
            Proof::Excluded(_) => None,
        }
    }
}

/// The paths of the tests of each package, as the test harness prints them.
type Tests = BTreeMap<String, BTreeSet<String>>;

/// Reads rule, package and test path of each line, or rule, `not-applicable` or `not-built`, and the
/// reason. Skips empty lines and lines that start with `#`.
fn parse_mapping(text: &str) -> Result<Vec<Row>, Problems> {
    let mut problems = Problems::new();
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() || line.starts_with('#') || (index == 0 && line == HEADER) {
            continue;
        }
        let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
        let [rule, package, test] = columns[..] else {
            problems.push(format!(
                "line {number}: has {} columns, not 3",
                columns.len()
            ));
            continue;
        };
        if [rule, package, test].contains(&"") {
            problems.push(format!("line {number}: has an empty column"));
        } else if !seen.insert((rule, package, test)) {
            problems.push(format!("line {number}: repeats an earlier line"));
        }
        rows.push(Row {
            line: number,
            rule: rule.to_owned(),
            proof: match Exclusion::of(package, test) {
                Some(exclusion) => Proof::Excluded(exclusion),
                None => Proof::Test {
                    package: package.to_owned(),
                    test: test.to_owned(),
                },
            },
        });
    }
    if problems.is_empty() {
        Ok(rows)
    } else {
        Err(problems)
    }
}

/// Reads the output of `cargo test -- --list`, which has a line `path: test` for each test.
fn parse_list(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect()
}

/// The rules that the mapping covers.
#[derive(Debug, Default, PartialEq, Eq)]
struct State<'a> {
    /// Rules with a test.
    held: BTreeSet<&'a str>,
    /// Rules that need no test.
    excluded: BTreeMap<&'a str, &'a Exclusion>,
}

/// Returns the rules that are covered, and a problem for each line that covers none.
fn check<'a>(
    mapping: &'a [Row],
    requirements: &Requirements,
    tests: &Tests,
) -> (State<'a>, Problems) {
    let mut state = State::default();
    let mut problems = Problems::new();
    for Row { line, rule, proof } in mapping {
        let known = requirements.contains_key(rule);
        if !known {
            problems.push(format!("line {line}: no rule has the id {rule}"));
        }
        match proof {
            Proof::Test { package, test } => {
                let tested = tests.get(package).is_some_and(|tests| tests.contains(test));
                if !tested {
                    problems.push(format!("line {line}: {package} has no test `{test}`"));
                } else if known {
                    state.held.insert(rule);
                }
            }
            Proof::Excluded(exclusion) if known => {
                state.excluded.insert(rule, exclusion);
            }
            Proof::Excluded(_) => {}
        }
    }
    for rule in &state.held {
        if let Some(exclusion) = state.excluded.remove(rule) {
            problems.push(format!("{rule} has a test and {}", exclusion.words()));
        }
    }
    (state, problems)
}

/// The numbers of rules with a test and of all rules.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    held: usize,
    all: usize,
}

/// The coverage of the rules of each side.
#[derive(Clone, Debug, Default)]
struct Coverage {
    sides: BTreeMap<Side, Count>,
    /// Rules of any side that do not apply. The counts leave them out.
    not_applicable: usize,
    /// Rules of any side that bind what is not built. The counts leave them out.
    not_built: usize,
}

impl Coverage {
    fn add(&mut self, side: Side, is_held: bool) {
        let count = self.sides.entry(side).or_default();
        count.held += usize::from(is_held);
        count.all += 1;
    }

    fn exclude(&mut self, exclusion: &Exclusion) {
        match exclusion {
            Exclusion::NotApplicable(_) => self.not_applicable += 1,
            Exclusion::NotBuilt(_) => self.not_built += 1,
        }
    }

    /// Formats the counts. A side that no rule binds is left out.
    fn line(&self, name: &str) -> String {
        let mut line = format!("{name:<8}");
        for side in Side::ALL {
            if let Some(Count { held, all }) = self.sides.get(&side) {
                line.push_str(&format!("  {} {held:>3} of {all:>3}", side.name()));
            }
        }
        let held: usize = self.sides.values().map(|count| count.held).sum();
        let all: usize = self.sides.values().map(|count| count.all).sum();
        let percent = (held * 100).checked_div(all).unwrap_or(100);
        let untested = all - held;
        let (not_applicable, not_built) = (self.not_applicable, self.not_built);
        format!(
            "{line}  all {held:>3} of {all:>3} rules mapped, {percent:>3} %, \
             {untested:>3} without a test, {not_applicable:>2} do not apply, {not_built:>2} not built\n"
        )
    }
}

/// Formats the coverage of each RFC and of all of them, one line each.
fn report(state: &State<'_>, requirements: &Requirements) -> String {
    let mut rfcs: BTreeMap<&str, Coverage> = BTreeMap::new();
    let mut overall = Coverage::default();
    for rule in requirements.values() {
        let of_rfc = rfcs.entry(rule.rfc.as_str()).or_default();
        if let Some(exclusion) = state.excluded.get(rule.id.as_str()) {
            of_rfc.exclude(exclusion);
            overall.exclude(exclusion);
            continue;
        }
        let is_held = state.held.contains(rule.id.as_str());
        of_rfc.add(rule.side, is_held);
        overall.add(rule.side, is_held);
    }
    let mut text: String = rfcs
        .iter()
        .map(|(rfc, coverage)| coverage.line(&document(rfc)))
        .collect();
    text.push_str(&overall.line("overall"));
    text
}

/// Returns the name of a document from its column: an RFC, or a draft such as `WT-h3`.
fn document(column: &str) -> String {
    match column.parse::<u16>() {
        Ok(_) => format!("RFC {column}"),
        Err(_) => column.to_owned(),
    }
}

/// Returns the rules without a test and without a reason.
fn missing<'a>(
    state: &'a State<'_>,
    requirements: &'a Requirements,
) -> impl Iterator<Item = &'a Requirement> {
    requirements.values().filter(|rule| {
        let id = rule.id.as_str();
        !state.held.contains(id) && !state.excluded.contains_key(id)
    })
}

fn missing_line(rule: &Requirement) -> String {
    let Requirement {
        id,
        section,
        level,
        bound,
        rule,
        ..
    } = rule;
    format!("{id}  §{section}  {level}  {bound}  {rule}\n")
}

/// Returns the tests of each package, as its binaries print them, without those that are ignored.
///
/// One build serves all packages, the same as for `cargo test --workspace`. A single package has
/// other features and would be compiled again.
fn list_tests(root: &Path) -> Result<BTreeMap<String, String>, Problems> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["test", "--workspace", "--no-run", "--quiet"])
        .arg("--message-format=json");
    let mut lists = BTreeMap::<String, String>::new();
    for line in output(&mut build, root)?.lines() {
        if let Some((package, binary)) = test_binary(line) {
            let list = output(Command::new(&binary).arg("--list"), root)?;
            let ignored = output(Command::new(&binary).args(["--list", "--ignored"]), root)?;
            lists
                .entry(package)
                .or_default()
                .push_str(&without(&list, &ignored));
        }
    }
    Ok(lists)
}

/// Returns the lines of `list` that are not in `ignored`. An ignored test proves nothing.
fn without(list: &str, ignored: &str) -> String {
    let ignored: BTreeSet<&str> = ignored.lines().collect();
    list.lines()
        .filter(|line| !ignored.contains(line))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Returns package and path of a test binary from a message of Cargo.
fn test_binary(line: &str) -> Option<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_test = message["profile"]["test"].as_bool()?;
    let kind = message["target"]["kind"][0].as_str()?;
    let binary = message["executable"].as_str()?;
    // `path+file:///…/crates/http3#courser-http3@0.1.0`. Without a name, the folder has the same.
    let (folder, name) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package = match name.split_once('@') {
        Some((name, _)) => name,
        None => folder.rsplit('/').next()?,
    };
    (is_test && kind != "example").then(|| (package.to_owned(), PathBuf::from(binary)))
}

fn output(command: &mut Command, root: &Path) -> Result<String, Problems> {
    let name = format!("{command:?}");
    let output = command
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| vec![format!("cannot start {name}: {error}")])?;
    if !output.status.success() {
        return Err(vec![format!("{name} failed")]);
    }
    String::from_utf8(output.stdout).map_err(|error| vec![format!("{name}: {error}")])
}

fn read(folder: &Path, name: &str) -> Result<String, Problems> {
    fs::read_to_string(folder.join(name)).map_err(|error| vec![format!("{name}: {error}")])
}

/// Prefixes each problem with the name of the file.
fn named<T>(name: &str, result: Result<T, Problems>) -> Result<T, Problems> {
    result.map_err(|problems| {
        problems
            .into_iter()
            .map(|problem| format!("{name}: {problem}"))
            .collect()
    })
}

const REQUIREMENTS: &str = "docs/requirements.tsv";
const MAPPING: &str = "docs/conformance.tsv";
const HEADER: &str = "rule\tpackage\ttest";
/// Stands in the column of the package before the reason why a rule does not apply.
const NOT_APPLICABLE: &str = "not-applicable";
/// Stands there before the reason why there is nothing to test yet.
const NOT_BUILT: &str = "not-built";

#[cfg(test)]
mod tests;
