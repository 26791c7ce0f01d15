//! `cargo xtask instructions`: counts the instructions of the core's paths with callgrind and compares them with
//! their budgets.
//!
//! `courser-bench` runs each path with fixed seeds and in virtual time, so the counts of one build do not vary.

mod callgrind;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use self::callgrind::Counts;
use crate::report::Problems;

/// The task of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// Compares the counts with the budgets.
    Check,
    /// Makes the counts the budgets.
    Write,
}

/// Counts all paths, prints the counts, and checks or writes the budgets. Without valgrind it prints that it skips
/// them.
pub(crate) fn run(root: &Path, task: Task) -> Result<(), Problems> {
    if output_of(Command::new("valgrind").arg("--version")).is_err() {
        println!("SKIPPED the instruction budgets: valgrind is missing");
        return Ok(());
    }
    let program = build(root)?;
    let listed = output_of(&mut Command::new(&program)).map_err(|problem| vec![problem])?;
    let paths: Vec<PathInfo> = listed.lines().filter_map(PathInfo::parse).collect();
    let measured = measure(&program, &paths)?;
    let compiler = compiler()?;
    let file = root.join(FILE);
    if task == Task::Write {
        print!("{}", table(&measured, &BTreeMap::new()));
        return fs::write(&file, render(&compiler, &measured))
            .map_err(|error| vec![format!("{FILE}: {error}")]);
    }
    let text = fs::read_to_string(&file).map_err(|error| vec![format!("{FILE}: {error}")])?;
    let budgets = parse(&text)?;
    print!("{}", table(&measured, &budgets));
    let mut problems = compare(&measured, &budgets);
    if !problems.is_empty() && !text.contains(&compiler) {
        problems.push(format!(
            "{FILE} was written with another compiler than this {compiler}, which may be the reason"
        ));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// A path as the program lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PathInfo {
    name: String,
    /// The thing that is counted, such as a packet.
    unit: String,
    description: String,
}

impl PathInfo {
    fn parse(line: &str) -> Option<Self> {
        let mut columns = line.split('\t').map(str::to_owned);
        Some(Self {
            name: columns.next()?,
            unit: columns.next()?,
            description: columns.next()?,
        })
    }
}

/// A path and its instructions per unit.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Measured {
    path: PathInfo,
    each: Counts,
}

/// Builds the program, and returns its path.
fn build(root: &Path) -> Result<PathBuf, Problems> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["build", "--quiet", "--locked", "--release"])
        .args(["--package", PROGRAM])
        // Other flags would make other instructions.
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => return Err(vec![format!("{PROGRAM} does not compile")]),
        Err(error) => return Err(vec![format!("cannot start cargo: {error}")]),
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root.join(target).join("release").join(PROGRAM))
}

/// Counts all paths, as many at once as there are cores.
fn measure(program: &Path, paths: &[PathInfo]) -> Result<Vec<Measured>, Problems> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let mut measured = Vec::new();
    for some in paths.chunks(at_once) {
        let runs: Result<Vec<Run>, String> =
            some.iter().map(|it| Run::start(program, it)).collect();
        for run in runs.map_err(|problem| vec![problem])? {
            measured.push(run.finish(program).map_err(|problem| vec![problem])?);
        }
    }
    Ok(measured)
}

/// A path that is being counted.
struct Run {
    path: PathInfo,
    child: Child,
    /// The file that callgrind writes.
    out: PathBuf,
}

impl Run {
    fn start(program: &Path, path: &PathInfo) -> Result<Self, String> {
        let out = program.with_file_name(format!("{PROGRAM}.{}.callgrind", path.name));
        let child = Command::new("valgrind")
            .arg("--tool=callgrind")
            .arg(format!("--toggle-collect={COUNTED}"))
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(program)
            .arg(&path.name)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start valgrind: {error}"))?;
        Ok(Self {
            path: path.clone(),
            child,
            out,
        })
    }

    fn finish(self, program: &Path) -> Result<Measured, String> {
        let name = &self.path.name;
        let output = self.child.wait_with_output();
        let output = output.map_err(|error| format!("{name}: {error}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{name}: valgrind failed:\n{text}"));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let units: u64 = text
            .trim()
            .parse()
            .map_err(|_| format!("{name}: `{text}` is no number of units"))?;
        let counted = fs::read_to_string(&self.out).map_err(|error| format!("{name}: {error}"))?;
        // What was counted can be looked at with callgrind_annotate only if the run is repeated.
        fs::remove_file(&self.out).map_err(|error| format!("{name}: {error}"))?;
        let total = callgrind::parse(&counted, &program.display().to_string());
        if units == 0 || total.own == 0 {
            return Err(format!("{name}: nothing was counted"));
        }
        Ok(Measured {
            each: total.divided_by(units),
            path: self.path,
        })
    }
}

/// Returns the version of the compiler.
fn compiler() -> Result<String, Problems> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = output_of(Command::new(rustc).arg("--version"));
    let version = version.map_err(|problem| vec![problem])?;
    // Without the hash and the date.
    let words: Vec<&str> = version.split_whitespace().take(2).collect();
    Ok(words.join(" "))
}

/// Returns what a program prints, or a problem if it cannot be started or fails.
fn output_of(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().display().to_string();
    match command.output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(_) => Err(format!("{program} failed")),
        Err(error) => Err(format!("cannot start {program}: {error}")),
    }
}

/// Formats the counts beside the budgets.
fn table(measured: &[Measured], budgets: &BTreeMap<String, u64>) -> String {
    let mut text = format!(
        "{:<18}{:>9}{:>9}{:>9}{:>10}{:>9}  per\n",
        "path", "core", "budget", "change", "cipher", "C lib"
    );
    for Measured { path, each } in measured {
        let budget = budgets.get(&path.name);
        let change = budget.map_or(String::new(), |budget| {
            format!("{:+.1} %", percent_above(each.own, *budget))
        });
        let budget = budget.map_or(String::new(), u64::to_string);
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{:<18}{:>9}{budget:>9}{change:>9}{:>10}{:>9}  {}",
            path.name, each.own, each.foreign, each.libraries, path.unit
        );
    }
    text
}

/// Returns the paths that exceed their budgets, and those that are missing on either side.
fn compare(measured: &[Measured], budgets: &BTreeMap<String, u64>) -> Problems {
    let mut problems = Problems::new();
    for Measured { path, each } in measured {
        let name = &path.name;
        let Some(&budget) = budgets.get(name) else {
            problems.push(format!("{FILE}: has no budget for {name}; {ACCEPT}"));
            continue;
        };
        if each.own * 100 > budget * (100 + ALLOWED_PERCENT) {
            let above = percent_above(each.own, budget);
            problems.push(format!(
                "{name}: {} instructions per {} were counted ({}), {above:.1} % above the budget of {budget} \
                 in {FILE}; if the change is worth it, {ACCEPT}",
                each.own, path.unit, path.description
            ));
        }
    }
    for name in budgets.keys() {
        if !measured.iter().any(|it| it.path.name == *name) {
            problems.push(format!("{FILE}: {name} is no path; {ACCEPT}"));
        }
    }
    problems
}

fn percent_above(count: u64, budget: u64) -> f64 {
    (count as f64 / budget as f64 - 1.0) * 100.0
}

/// Formats the file of budgets.
fn render(compiler: &str, measured: &[Measured]) -> String {
    let mut text =
        format!("{HEAD}# Written with {compiler}.\npath\tunit\tinstructions\tdescription\n");
    for Measured { path, each } in measured {
        let (name, unit, own) = (&path.name, &path.unit, each.own);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{name}\t{unit}\t{own}\t{}", path.description);
    }
    text
}

/// Reads the budgets by path.
fn parse(text: &str) -> Result<BTreeMap<String, u64>, Problems> {
    let mut budgets = BTreeMap::new();
    let mut problems = Problems::new();
    let rows = text.lines().enumerate();
    for (index, line) in rows.filter(|(_, line)| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        match columns.as_slice() {
            ["path", ..] => {}
            [name, _, count, _] if count.parse::<u64>().is_ok_and(|count| count > 0) => {
                budgets.insert((*name).to_owned(), count.parse().unwrap_or_default());
            }
            _ => problems.push(format!("{FILE}:{}: no budget: `{line}`", index + 1)),
        }
    }
    if problems.is_empty() {
        Ok(budgets)
    } else {
        Err(problems)
    }
}

const PROGRAM: &str = "courser-bench";
const FILE: &str = "docs/instructions.tsv";
/// The function of the program below which instructions are counted.
const COUNTED: &str = "*instructions_counted_below*";
/// A path may exceed its budget by this much.
const ALLOWED_PERCENT: u64 = 3;
const ACCEPT: &str = "accept it with `cargo xtask instructions --write`";
const HEAD: &str = "\
# Instructions of the core for each unit of a path: see `Instruction budgets` in TESTING.md.
# `cargo xtask instructions` fails when a path exceeds its budget by more than 3 %, and
# `cargo xtask instructions --write` writes this file.
";

#[cfg(test)]
mod tests;
