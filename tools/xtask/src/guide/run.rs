//! Runs the commands of a page and compares their output with it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::form;
use super::markdown::{Fence, Page};
use super::ports::Ports;
use crate::report::Problems;

/// The programs that pages may name.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    repository: PathBuf,
}

impl Programs {
    /// Takes the programs in a folder of cargo, such as `target/debug`.
    pub(super) fn new(folder: PathBuf, repository: PathBuf) -> Result<Self, Problems> {
        let folder = std::path::absolute(&folder).map_err(|error| vec![error.to_string()])?;
        if !folder.join("courser").is_file() {
            return Err(vec![format!(
                "{}: there is no `courser`; build it, or name its folder with --programs",
                folder.display()
            )]);
        }
        Ok(Self { folder, repository })
    }

    /// Returns a command with these programs in its path.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.display()));
        command
            .env("COLUMNS", "100")
            .env("NO_COLOR", "1")
            .env("LC_ALL", "C");
        command.stdin(Stdio::null());
        command
    }

    /// Replaces `cargo run … --bin NAME` and `--example NAME` by the program that cargo has built.
    fn with_built(&self, command: &str) -> String {
        let Some(rest) = command.strip_prefix("cargo run ") else {
            return command.to_owned();
        };
        let mut words = rest
            .split(' ')
            .skip_while(|word| !matches!(*word, "--bin" | "--example"));
        words.next();
        let name = words.next().unwrap_or_default();
        let arguments = words
            .filter(|word| *word != "--")
            .collect::<Vec<_>>()
            .join(" ");
        let program = self.folder.join("examples").join(name);
        format!("{} {arguments}", program.display())
    }
}

/// The result of running a page.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) commands: usize,
    /// The page with its new outputs, if one of them has another form.
    pub(super) text: Option<String>,
    /// The outputs that have another form.
    pub(super) differences: Problems,
}

/// Runs each block of a page whose language is `console`, in an empty folder of its own.
pub(super) fn run(page: &Page<'_>, programs: &Programs) -> Result<Outcome, Problems> {
    let mut outcome = Outcome::default();
    let blocks = page
        .fences
        .iter()
        .filter(|fence| fence.language() == "console");
    let mut blocks = blocks.peekable();
    if blocks.peek().is_none() {
        return Ok(outcome);
    }
    let mut lines: Vec<String> = page.text.lines().map(str::to_owned).collect();
    let mut is_changed = false;
    let mut replaced = Vec::new();
    for fence in blocks {
        let mut session =
            Session::new(programs, page.name()).map_err(|error| vec![error.to_string()])?;
        let mut block = Vec::new();
        for step in steps(fence) {
            outcome.commands += 1;
            let failed = |error: String| failed(page, step.line, &step.command, &error);
            let output = session.run(&step.command, step.exit).map_err(failed)?;
            let output: Vec<&str> = output.lines().map(str::trim_end).collect();
            block.extend(step.written.iter().map(|&line| line.to_owned()));
            if form::agree(&step.output, &output) {
                block.extend(step.output.iter().map(|&line| line.to_owned()));
                continue;
            }
            is_changed = true;
            outcome.differences.push(format!(
                "{}:{}: `{}` has another output now; `cargo xtask guide` writes it:\n{}",
                page.path,
                step.line,
                step.command,
                output.join("\n")
            ));
            block.extend(output.iter().map(|&line| line.to_owned()));
        }
        session
            .check_last()
            .map_err(|error| failed(page, fence.line, "the block", &error))?;
        replaced.push((fence.line, fence.lines.len(), block));
    }
    // From the last block on, so that the numbers of lines before it stay.
    for (line, length, block) in replaced.into_iter().rev() {
        lines.splice(line..line + length, block);
    }
    outcome.text = is_changed.then(|| lines.join("\n") + "\n");
    Ok(outcome)
}

/// Returns the problem of a command that has failed.
fn failed(page: &Page<'_>, line: usize, command: &str, error: &str) -> Problems {
    vec![format!("{}:{line}: `{command}`: {error}", page.path)]
}

/// One command of a block, and the output on the page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step<'a> {
    pub(super) line: usize,
    /// The lines of the command as written.
    pub(super) written: Vec<&'a str>,
    pub(super) command: String,
    /// The exit code of the command, 0 unless the page names another one.
    pub(super) exit: i32,
    pub(super) output: Vec<&'a str>,
}

/// Returns the commands of a block. Each begins with `$ ` and goes on after a line that ends with `\`. One that
/// fails has a comment at its end, such as `# exit code 7`.
pub(super) fn steps<'a>(fence: &Fence<'a>) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    for (index, &line) in fence.lines.iter().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: fence.line + index + 1,
                written: vec![line],
                command: command.to_owned(),
                exit: 0,
                output: Vec::new(),
            });
        } else if let Some(step) = steps.last_mut() {
            match step.command.strip_suffix('\\') {
                Some(begun) if step.output.is_empty() => {
                    step.command = format!("{begun}{}", line.trim());
                    step.written.push(line);
                }
                _ => step.output.push(line),
            }
        }
    }
    for step in &mut steps {
        if let Some((command, exit)) = expected_exit(&step.command) {
            (step.command, step.exit) = (command.to_owned(), exit);
        }
    }
    steps
}

/// Splits a command and the exit code in the comment at its end.
fn expected_exit(command: &str) -> Option<(&str, i32)> {
    let (command, comment) = command.rsplit_once('#')?;
    let exit = comment.trim().strip_prefix("exit code ")?.parse().ok()?;
    Some((command.trim_end(), exit))
}

/// An empty folder, and the commands that run in it.
struct Session<'a> {
    programs: &'a Programs,
    folder: PathBuf,
    ports: Ports,
    background: Vec<Background>,
}

/// A command that runs while others do.
struct Background {
    child: Child,
    log: PathBuf,
    shown: usize,
    /// The exit code unless a signal ends it.
    exit: i32,
}

impl<'a> Session<'a> {
    fn new(programs: &'a Programs, page: &str) -> io::Result<Self> {
        let name = format!("courser-guide-{}-{page}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("home"))?;
        fs::create_dir_all(folder.join("work"))?;
        Ok(Self {
            programs,
            folder,
            ports: Ports::default(),
            background: Vec::new(),
        })
    }

    /// Runs one command and returns its output, with the ports and the folder of the page.
    ///
    /// # Errors
    /// Returns an error if a command cannot be run, or ends with another exit code.
    fn run(&mut self, command: &str, exit: i32) -> Result<String, String> {
        let (command, is_background) = match command.strip_suffix('&') {
            Some(command) => (command.trim_end(), true),
            None => (command, false),
        };
        let mut command = self.programs.with_built(command);
        for (index, background) in self.background.iter().enumerate() {
            command = command.replace(
                &format!("%{}", index + 1),
                &background.child.id().to_string(),
            );
        }
        // Pages find the repository in the folder `courser`.
        let repository = format!(" {}/", self.programs.repository.display());
        let command = command.replace(" courser/", &repository);
        let command = self.ports.replace(&command)?;
        let failed = |error: io::Error| error.to_string();
        let output = if is_background {
            self.start(&command, exit).map_err(failed)?
        } else {
            let (output, status) = self.complete(&command).map_err(failed)?;
            check_exit(status, exit, &output)?;
            output
        };
        self.check_background()?;
        let output = output.replace(&self.folder.join("work").display().to_string(), FOLDER);
        let output = output.replace(repository.trim_start(), "courser/");
        Ok(self.ports.restore(&output))
    }

    /// Checks the commands in the background that have ended.
    fn check_background(&mut self) -> Result<(), String> {
        self.background.iter_mut().try_for_each(Background::check)
    }

    /// Checks the commands in the background after the last command of a block. They may fail because of it a little
    /// later.
    fn check_last(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        for background in &mut self.background {
            let left = LAST.saturating_sub(begun.elapsed());
            wait(&mut background.child, left).map_err(|error| error.to_string())?;
        }
        self.check_background()
    }

    fn spawn(&self, command: &str, log: &Path) -> io::Result<Child> {
        let output = File::create(log)?;
        self.programs
            .command("bash")
            .args(["-c", command])
            .env("HOME", self.folder.join("home"))
            .current_dir(self.folder.join("work"))
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
    }

    fn start(&mut self, command: &str, exit: i32) -> io::Result<String> {
        let log = self
            .folder
            .join(format!("background-{}", self.background.len()));
        let child = self.spawn(&format!("exec {command}"), &log)?;
        self.background.push(Background {
            child,
            log,
            shown: 0,
            exit,
        });
        let last = self.background.last_mut().expect("it was pushed");
        last.settle(START)?;
        last.new_output()
    }

    fn complete(&mut self, command: &str) -> io::Result<(String, ExitStatus)> {
        let log = self.folder.join("foreground");
        let mut child = self.spawn(command, &log)?;
        let Some(status) = wait(&mut child, LONGEST)? else {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("takes more than {LONGEST:?}")));
        };
        let mut output = fs::read_to_string(&log)?;
        if command.starts_with("kill ") {
            for background in &mut self.background {
                background.settle(SIGNAL)?;
                output.push_str(&background.new_output()?);
            }
        }
        Ok((output, status))
    }
}

impl Background {
    /// Waits until the command has ended, or has written something and nothing more for a while.
    fn settle(&mut self, idle: Duration) -> io::Result<()> {
        let begun = Instant::now();
        let (mut length, mut since) = (0, Instant::now());
        while begun.elapsed() < LONGEST_START && self.child.try_wait()?.is_none() {
            let now = fs::metadata(&self.log)?.len();
            if now != length {
                (length, since) = (now, Instant::now());
            }
            if now > 0 && since.elapsed() > idle {
                break;
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Checks the exit code of a command that has ended. One that a signal has ended has none.
    fn check(&mut self) -> Result<(), String> {
        let status = self.child.try_wait().map_err(|error| error.to_string())?;
        let Some(status) = status.filter(|status| status.code().is_some()) else {
            return Ok(());
        };
        let output = fs::read_to_string(&self.log).unwrap_or_default();
        check_exit(status, self.exit, &output)
            .map_err(|error| format!("a command in the background {error}"))
    }

    /// Returns the output since the last call.
    fn new_output(&mut self) -> io::Result<String> {
        let all = fs::read_to_string(&self.log)?;
        let new_output = all[self.shown.min(all.len())..].to_owned();
        self.shown = all.len();
        Ok(new_output)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        for background in &mut self.background {
            let _ = background.child.kill();
            let _ = background.child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Compares the exit code of a command with that of the page.
fn check_exit(status: ExitStatus, expected: i32, output: &str) -> Result<(), String> {
    if status.code() == Some(expected) {
        return Ok(());
    }
    let remedy = status.code().map_or(String::new(), |code| {
        format!("; if it should, write `# exit code {code}` behind the command")
    });
    Err(format!(
        "ended with {status}, not with exit code {expected}{remedy}:\n{output}"
    ))
}

/// Waits for the end of a process. Returns `None` if it takes longer than `longest`.
fn wait(child: &mut Child, longest: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    while begun.elapsed() < longest {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL);
    }
    Ok(None)
}

/// The folder that outputs name instead of the temporary one.
const FOLDER: &str = "/tmp/guide";

/// The longest time of a command.
const LONGEST: Duration = Duration::from_secs(60);

/// The longest time until a command in the background has started.
const LONGEST_START: Duration = Duration::from_secs(10);

/// The time without output after which a command has started.
const START: Duration = Duration::from_millis(400);

/// The time without output after which a command has answered a signal.
const SIGNAL: Duration = Duration::from_millis(700);

/// The time in which commands in the background may fail after the last command of a block.
const LAST: Duration = Duration::from_millis(300);

const POLL: Duration = Duration::from_millis(10);
