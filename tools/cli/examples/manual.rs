//! Writes the manual pages and the shell completions from the definition of the command line:
//! `cargo run --package courser-cli --example manual -- DIRECTORY`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap_complete::Shell;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("manual: pass the directory to write to");
        return ExitCode::FAILURE;
    };
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("manual: cannot write to {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Writes one page for each command to `man`, and one file for each shell to `completions`.
fn write(folder: &std::path::Path) -> std::io::Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(courser_cli::command(), &man)?;
    for shell in [
        Shell::Bash,
        Shell::Zsh,
        Shell::Fish,
        Shell::PowerShell,
        Shell::Elvish,
    ] {
        let mut command = courser_cli::command();
        clap_complete::generate_to(shell, &mut command, "courser", &completions)?;
    }
    Ok(())
}
