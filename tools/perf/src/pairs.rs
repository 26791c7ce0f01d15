//! Compares two commands that run in turn.
//!
//! The load of a shared machine changes over time, but two consecutive runs see about the same load. The
//! comparison therefore uses the ratio within each pair.

mod figure;
mod text;

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use courser_measure::{Estimate, Failure};
use serde::Serialize;

pub use self::figure::Figure;

/// A comparison of two commands.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The shell command that is the baseline.
    pub a: String,
    /// The shell command that is compared with it.
    pub b: String,
    /// The number of pairs, at least 1.
    pub pairs: u32,
    /// The figure to compare.
    pub figure: Figure,
    /// The time limit of a run, after which the comparison fails.
    pub timeout: Duration,
}

/// The result of one run of a command.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Run {
    /// The value of the figure, in the unit of the command's report or in seconds.
    pub figure: f64,
    /// The duration of the run.
    pub seconds: f64,
    /// CPU time of the command and its children, if the system reports it.
    pub cpu_seconds: Option<f64>,
}

/// One run of each command.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Pair {
    /// The run of the baseline.
    pub a: Run,
    /// The run of the other command.
    pub b: Run,
}

/// The results of all pairs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PairsReport {
    /// The shell command that is the baseline.
    pub a: String,
    /// The shell command that was compared with it.
    pub b: String,
    /// The name of the figure: a JSON pointer, or `seconds`.
    pub figure: String,
    /// True if a smaller figure is better.
    pub less_is_better: bool,
    /// All pairs, in the order in which they ran.
    pub pairs: Vec<Pair>,
    /// The figure of the baseline.
    pub figure_a: Estimate,
    /// The figure of the other command.
    pub figure_b: Estimate,
    /// The ratio of the figures within pairs, the other command to the baseline.
    pub ratio: Estimate,
    /// The ratio of CPU times, if the system reports them.
    pub cpu_ratio: Option<Estimate>,
}

impl Pairs {
    /// Runs both commands in turn, in an order that alternates between pairs. `on_pair` is called after each
    /// pair with its number and the results so far. When `stop` resolves, the comparison ends with the pairs
    /// so far.
    ///
    /// # Errors
    /// Returns an error if a command cannot be started, fails, takes too long or prints no figure, or if no
    /// pair is complete.
    pub async fn run(
        &self,
        mut on_pair: impl FnMut(u32, &PairsReport),
        stop: impl Future<Output = ()>,
    ) -> Result<PairsReport, Failure> {
        let mut stop = std::pin::pin!(stop);
        let mut results = Results {
            figure: self.figure.clone(),
            pairs: Vec::new(),
        };
        for number in 0..self.pairs {
            let pair = tokio::select! {
                pair = self.pair(number, &mut results.figure) => pair?,
                () = &mut stop => break,
            };
            results.pairs.push(pair);
            on_pair(number + 1, &self.report(&results)?);
        }
        self.report(&results)
    }

    async fn pair(&self, number: u32, figure: &mut Figure) -> Result<Pair, Failure> {
        if number.is_multiple_of(2) {
            let a = self.once(&self.a, "a", figure).await?;
            let b = self.once(&self.b, "b", figure).await?;
            return Ok(Pair { a, b });
        }
        let b = self.once(&self.b, "b", figure).await?;
        let a = self.once(&self.a, "a", figure).await?;
        Ok(Pair { a, b })
    }

    /// Runs a command, and reads its figure. The first run chooses the figure if the user has not.
    async fn once(&self, command: &str, name: &str, figure: &mut Figure) -> Result<Run, Failure> {
        let fail = |text: String| Failure::new(format!("command {name} ({command}) {text}"));
        let (began, cpu) = (Instant::now(), cpu_of_children());
        let output = tokio::time::timeout(self.timeout, output(command)).await;
        let output = output
            .map_err(|_| fail(format!("took longer than {:?}", self.timeout)))?
            .map_err(|error| fail(format!("cannot be run: {error}")))?;
        let seconds = began.elapsed().as_secs_f64();
        let cpu_seconds = cpu.zip(cpu_of_children()).map(|(from, to)| to - from);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors
                .trim_end()
                .lines()
                .last()
                .unwrap_or("it printed no error");
            return Err(fail(format!("failed with {}: {last}", output.status)));
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let value = figure
            .choose(&printed)
            .read(&printed, seconds)
            .map_err(fail)?;
        Ok(Run {
            figure: value,
            seconds,
            cpu_seconds,
        })
    }

    fn report(&self, results: &Results) -> Result<PairsReport, Failure> {
        let each = |of: fn(&Pair) -> f64| results.pairs.iter().map(of).collect::<Vec<_>>();
        let figures = (
            Estimate::of(&each(|pair| pair.a.figure)),
            Estimate::of(&each(|pair| pair.b.figure)),
            Estimate::of(&each(|pair| pair.b.figure / pair.a.figure)),
        );
        let (Some(figure_a), Some(figure_b), Some(ratio)) = figures else {
            return Err(Failure::new("stopped before a pair was complete"));
        };
        let cpu: Option<Vec<f64>> = results.pairs.iter().map(cpu_ratio).collect();
        Ok(PairsReport {
            a: self.a.clone(),
            b: self.b.clone(),
            figure: results.figure.name().to_owned(),
            less_is_better: results.figure.less_is_better(),
            pairs: results.pairs.clone(),
            figure_a,
            figure_b,
            ratio,
            cpu_ratio: cpu.as_deref().and_then(Estimate::of),
        })
    }
}

/// The results so far.
struct Results {
    figure: Figure,
    pairs: Vec<Pair>,
}

/// Returns the ratio of the CPU times of a pair; `None` if one of them is too short for the clock.
fn cpu_ratio(pair: &Pair) -> Option<f64> {
    let (a, b) = (pair.a.cpu_seconds?, pair.b.cpu_seconds?);
    (a > 0.0).then(|| b / a)
}

/// Runs a command in a shell. Its standard input is empty.
async fn output(command: &str) -> std::io::Result<Output> {
    let (shell, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let mut shell = tokio::process::Command::new(shell);
    shell.args([flag, command]).stdin(Stdio::null());
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    // The processes that the shell starts are in its group, which is killed with it.
    #[cfg(unix)]
    shell.process_group(0);
    let child = shell.kill_on_drop(true).spawn()?;
    let mut group = Group(child.id());
    let output = child.wait_with_output().await;
    group.0 = None;
    output
}

/// The process group of a shell, which is killed on drop.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(id) = self.0.take().and_then(|id| i32::try_from(id).ok())
            && let Some(id) = rustix::process::Pid::from_raw(id)
        {
            // Fails if the group has ended already.
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

/// Returns the CPU time of all children that have ended, and of their own children.
#[cfg(target_os = "linux")]
fn cpu_of_children() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may contain spaces. The field after it is the third one.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    let (user, system) = (ticks()?, ticks()?);
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some((f64::from(user) + f64::from(system)) / f64::from(per_second))
}

/// Returns `None`, because this system is not supported.
#[cfg(not(target_os = "linux"))]
fn cpu_of_children() -> Option<f64> {
    None
}

#[cfg(all(test, unix))]
mod tests;
