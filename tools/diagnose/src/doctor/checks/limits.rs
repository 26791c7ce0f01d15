//! Checks the resource limits of this process.

use courser_units::binary_size;

use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Compares the limits on open files and memory with the needs of a server.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let text = match machine.read("/proc/self/limits") {
        Ok(text) => text,
        Err(reason) => return vec![reason.finding(FILES)],
    };
    let mut found = vec![files(&text)];
    found.extend(memory(&text));
    found
}

fn files(text: &str) -> Finding {
    let Some((soft, hard)) = limit(text, "Max open files") else {
        let reason = Unseen::Failed("/proc/self/limits has no open files".to_owned());
        return reason.finding(FILES);
    };
    let Some(soft) = soft else {
        return Finding::good(FILES, "unlimited");
    };
    let (verdict, noun) = match soft {
        0..MIN_FILES => ("warning", "files"),
        MIN_FILES..ENOUGH_FILES => ("note", "files"),
        _ => return Finding::good(FILES, format!("{soft} files")),
    };
    let hard = hard.map_or_else(
        || "no hard limit".to_owned(),
        |hard| format!("hard limit {hard}"),
    );
    let saw = format!("{soft} {noun}, {hard}");
    let why = "QUIC needs one socket for all clients, but each TCP client and each connection to a backend takes a file";
    let fix = "ulimit -n 65536\nor LimitNOFILE=65536 in the [Service] section of the systemd unit";
    match verdict {
        "warning" => Finding::weak(FILES, saw, why).fix(fix),
        _ => Finding::fact(FILES, saw).because(why).fix(fix),
    }
}

fn memory(text: &str) -> Option<Finding> {
    let limits = ["Max address space", "Max data size"].map(|name| limit(text, name)?.0);
    let bytes = limits.into_iter().flatten().min()?;
    let saw = format!("{} (ulimit -v or -d)", binary_size(bytes));
    let name = "process memory";
    Some(match bytes < MIN_MEMORY {
        true => {
            let why = "the memory budget of the server is a quarter of it, which suffices for few clients only";
            Finding::weak(name, saw, why).fix("ulimit -v unlimited; ulimit -d unlimited")
        }
        false => Finding::good(name, saw),
    })
}

/// Returns the soft and the hard limit, each `None` if unlimited.
fn limit(text: &str, name: &str) -> Option<(Option<u64>, Option<u64>)> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut numbers = line.split_whitespace().map(|text| text.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

const FILES: &str = "open files";
const MIN_FILES: u64 = 1024;
const ENOUGH_FILES: u64 = 4096;
const MIN_MEMORY: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Fact, Good, Unknown, Weak};

    fn found(files: &str, space: &str) -> Vec<Finding> {
        let tree = Tree::new();
        let text = format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max open files            {files}                files     \n\
             Max address space         {space}            unlimited            bytes     \n"
        );
        tree.write("/proc/self/limits", &text);
        check(&tree.machine())
    }

    #[test]
    fn few_open_files_are_reported() {
        for (files, verdict) in [
            ("512   1024", Weak),
            ("1024  524288", Fact),
            ("65536 65536", Good),
            ("unlimited unlimited", Good),
        ] {
            assert_eq!(found(files, "unlimited")[0].verdict, verdict, "{files}");
        }
        let few = &found("512 1024", "unlimited")[0];
        assert_eq!(few.saw, "512 files, hard limit 1024");
    }

    #[test]
    fn little_memory_is_reported() {
        assert_eq!(found("65536 65536", "unlimited").len(), 1);
        assert_eq!(found("65536 65536", "134217728")[1].verdict, Weak);
        assert_eq!(found("65536 65536", "8589934592")[1].verdict, Good);
    }

    #[test]
    fn limits_that_are_missing_are_unknown() {
        assert_eq!(check(&Tree::new().machine())[0].verdict, Unknown);
        let tree = Tree::new();
        tree.write("/proc/self/limits", "nothing\n");
        assert_eq!(check(&tree.machine())[0].verdict, Unknown);
    }
}
