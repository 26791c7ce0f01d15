//! Writes the confusion table of `docs/QLOG.md`: known causes, and the causes that explanations rank first.

#[path = "../tests/it/lab/mod.rs"]
#[allow(dead_code)]
mod lab;

use lab::table::{BEGIN, END, markdown, outcomes};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/QLOG.md");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let outcomes = outcomes();
    if std::env::args().any(|it| it == "--details") {
        for outcome in &outcomes {
            println!(
                "## {} ({:?})",
                outcome.scenario.about, outcome.scenario.cause
            );
            for it in outcome.explanations.iter().flat_map(|it| &it.findings) {
                println!(
                    "  {:?} {:.3} s {:.1} %: {}",
                    it.cause,
                    it.seconds,
                    it.share * 100.0,
                    it.text
                );
            }
        }
    }
    if let Some(folder) = std::env::args().skip_while(|it| it != "--dump").nth(1) {
        for (index, scenario) in lab::scenarios::SCENARIOS.iter().enumerate() {
            let traces = (scenario.run)(1);
            for side in [courser_base::Side::Client, courser_base::Side::Server] {
                let file = format!("{folder}/{index:02}-{side:?}.sqlog");
                std::fs::write(file, traces.bytes(side))?;
            }
        }
    }
    let table = markdown(&outcomes);
    print!("{table}");
    let document = std::fs::read_to_string(DOCUMENT)?;
    let (head, rest) = document.split_once(BEGIN).ok_or("no table")?;
    let (_, tail) = rest.split_once(END).ok_or("no end of the table")?;
    std::fs::write(
        DOCUMENT,
        format!("{head}{BEGIN}\n\n{}\n\n{END}{tail}", table.trim()),
    )?;
    Ok(())
}
