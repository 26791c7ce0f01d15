//! The files that callgrind writes.

use std::collections::BTreeMap;

/// Instructions by their origin.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Counts {
    /// Rust code of the program: the core, and the packages that are compiled into it.
    pub(super) own: u64,
    /// C and assembly of the program, which is AWS-LC. They depend on the instructions of the processor.
    pub(super) foreign: u64,
    /// Shared libraries: copies and allocations of the C library. They depend on its version.
    pub(super) libraries: u64,
}

impl Counts {
    /// Returns the counts of one unit, rounded.
    pub(super) const fn divided_by(self, units: u64) -> Self {
        Self {
            own: (self.own + units / 2) / units,
            foreign: (self.foreign + units / 2) / units,
            libraries: (self.libraries + units / 2) / units,
        }
    }
}

/// Adds up the instructions of all functions, without those that they call. `program` is the path of the program.
pub(super) fn parse(text: &str, program: &str) -> Counts {
    let mut counts = Counts::default();
    let (mut objects, mut functions) = (Names::default(), Names::default());
    let (mut object, mut function) = (String::new(), String::new());
    let mut is_cost_of_call = false;
    for line in text.lines() {
        match line.split_once('=') {
            Some(("ob", name)) => object = objects.resolve(name),
            Some(("cob", name)) => drop(objects.resolve(name)),
            Some(("fn", name)) => function = functions.resolve(name),
            Some(("cfn", name)) => drop(functions.resolve(name)),
            Some(("calls", _)) => is_cost_of_call = true,
            _ => {
                let Some(cost) = cost(line) else { continue };
                // The line behind `calls` is the cost of the callee, which has lines of its own.
                if std::mem::take(&mut is_cost_of_call) {
                    continue;
                }
                if object != program {
                    counts.libraries += cost;
                } else if is_rust(&function) {
                    counts.own += cost;
                } else {
                    counts.foreign += cost;
                }
            }
        }
    }
    counts
}

/// Returns the instructions of a line `POSITION COUNT`, where the position may be relative.
fn cost(line: &str) -> Option<u64> {
    if !line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
        return None;
    }
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns true for names of Rust, mangled or not. Names of C contain no `::`.
fn is_rust(function: &str) -> bool {
    function.contains("::") || function.starts_with("_R") || function.starts_with("_ZN")
}

/// Names that are written once, behind a number in parentheses that stands for them later.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn resolve(&mut self, text: &str) -> String {
        let (number, name) = text.split_once(' ').unwrap_or((text, ""));
        if !number.starts_with('(') {
            return text.to_owned();
        }
        if !name.is_empty() {
            self.0.insert(number.to_owned(), name.to_owned());
        }
        self.0.get(number).cloned().unwrap_or_default()
    }
}
