//! Runs the commands of `courser qlog` on files, from their command lines.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use courser_trace::{Console, Error, QlogCommand, run};

use crate::lab::scenarios::SCENARIOS;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: QlogCommand,
}

/// The output of a command.
#[derive(Debug, Default)]
pub struct Seen {
    pub lines: Vec<String>,
    pub notes: Vec<String>,
}

impl Console for Seen {
    fn line(&mut self, text: &str) {
        self.lines.push(text.to_owned());
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

/// Runs a command.
pub fn courser_qlog(words: &[&str]) -> (Seen, Result<(), Error>) {
    let words = ["qlog"].iter().chain(words);
    let arguments = Arguments::try_parse_from(words).expect("valid flags");
    let mut seen = Seen::default();
    let result = run(&arguments.command, &mut seen);
    (seen, result)
}

/// A directory that is removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("courser-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a directory");
        Self(folder)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    pub fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the trace of the first end of a scenario, by its description.
pub fn trace(about: &str, side: courser_base::Side) -> Vec<u8> {
    let scenario = SCENARIOS.iter().find(|it| it.about == about);
    (scenario.expect("a scenario").run)(1).bytes(side)
}

#[test]
fn input_is_not_overwritten() {
    let folder = Folder::new("overwrite");
    let bytes = trace(PACED, courser_base::Side::Client);
    let file = folder.write("a.html", &bytes);
    for command in ["html", "plot"] {
        let (_, result) = courser_qlog(&[command, &file, "-o", &file]);
        let error = result.expect_err("refused").to_string();
        assert!(error.contains("is also an input"), "{error}");
        assert!(std::fs::read(&file).expect("a file") == bytes, "{command}");
    }
}

#[test]
fn further_traces_of_a_file_are_reported_by_every_command() {
    let folder = Folder::new("further");
    let packet = |name| {
        format!(
            "{{\"time\":0,\"name\":\"{name}\",\"data\":{{\"header\":{{\"packet_number\":1}}}}}}"
        )
    };
    let both = [packet("quic:packet_sent"), packet("quic:packet_received")].join(",");
    let file = |side: &str| {
        let one = format!("{{\"vantage_point\":{{\"type\":\"{side}\"}},\"events\":[{both}]}}");
        let text = format!("{{\"traces\":[{one},{one}]}}");
        folder.write(&format!("{side}.qlog"), text.as_bytes())
    };
    let (client, server) = (file("client"), file("server"));
    let output = folder.path("out.sqlog");
    for words in [
        vec!["explain", &client],
        vec!["stats", &client],
        vec!["convert", &client, "-o", &output],
        vec!["merge", &client, &server, "-o", &output],
        vec!["tail", "--wait", "0.1", &client],
    ] {
        let (seen, result) = courser_qlog(&words);
        result.expect("read");
        let mut printed = seen.notes.iter().chain(&seen.lines);
        let is_reported = printed.any(|it| it.contains("ignored 1 further traces"));
        assert!(is_reported, "{words:?}: {seen:?}");
    }
}

#[test]
fn share_of_idle_time_is_marked_as_share_of_the_whole_time() {
    let folder = Folder::new("idle");
    let idle = trace("1 kB every 5 s", courser_base::Side::Client);
    let file = folder.write("a.sqlog", &idle);
    let page = folder.path("a.html");
    courser_qlog(&["html", &file, "-o", &page])
        .1
        .expect("drawn");
    let text = std::fs::read_to_string(page).expect("written");
    assert!(text.contains("% of all<"), "a cell of the table");
    let (seen, _) = courser_qlog(&["explain", "--json", &file]);
    let value: serde_json::Value = serde_json::from_str(&seen.lines[0]).expect("JSON");
    for finding in value["findings"].as_array().expect("a list") {
        assert_eq!(finding["of_all"], finding["cause"] == "idle", "{finding}");
    }
}

const PACED: &str = "2 kB every 20 ms on 20 Mbit/s";

#[test]
fn explanation_names_cause_evidence_and_remedy() {
    let folder = Folder::new("explain");
    let file = folder.write("a.sqlog", &trace(PACED, courser_base::Side::Client));
    let (seen, result) = courser_qlog(&["explain", &file]);
    result.expect("explained");
    let text = seen.lines.join("\n");
    for part in [
        "a.sqlog (client, JSON-SEQ, quic-13)",
        "  sent 296 kB in 3.00 s",
        "application: this end had nothing to send",
        "(lines ",
        "-> write earlier",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let (seen, result) = courser_qlog(&["explain", "--json", &file, &file]);
    result.expect("explained");
    assert_eq!(seen.lines.len(), 2);
    let value: serde_json::Value = serde_json::from_str(&seen.lines[0]).expect("JSON");
    let first = &value["findings"][0];
    assert_eq!(first["cause"], "application");
    assert!(first["share"].as_f64().is_some_and(|share| share > 0.9));
    assert!(first["evidence"][0]["from"]["line"].is_u64(), "{first}");
}

#[test]
fn compressed_traces_are_read_and_counted() {
    let folder = Folder::new("stats");
    let bytes = trace(PACED, courser_base::Side::Client);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&bytes).expect("memory");
    let plain = folder.write("a.sqlog", &bytes);
    let packed = folder.write("a.sqlog.gz", &encoder.finish().expect("memory"));
    let counted = |file| {
        let (seen, result) = courser_qlog(&["stats", file]);
        result.expect("counted");
        seen.lines[1..].to_vec()
    };
    assert_eq!(counted(&plain), counted(&packed));
    let text = counted(&plain).join("\n");
    assert!(
        text.contains("quic:packet_sent") && text.contains("1RTT"),
        "{text}"
    );
    let (seen, _) = courser_qlog(&["stats", "--json", &plain]);
    let value: serde_json::Value = serde_json::from_str(&seen.lines[0]).expect("JSON");
    assert!(
        value["sent"]["frames"]["stream"]
            .as_u64()
            .is_some_and(|it| it >= 150),
        "{value}"
    );
}

#[test]
fn page_has_the_explanation_and_charts_and_is_self_contained() {
    let folder = Folder::new("html");
    let file = folder.write("a.sqlog", &trace(PACED, courser_base::Side::Client));
    let page = folder.path("a.html");
    let (seen, result) = courser_qlog(&["html", &file, "-o", &page]);
    result.expect("written");
    assert!(seen.notes[0].starts_with("wrote "), "{:?}", seen.notes);
    let text = std::fs::read_to_string(page).expect("written");
    assert!(text.contains("What limited the transfer") && text.contains("<svg"));
    assert!(text.contains("this end had nothing to send"));
    assert!(
        !text.contains("<script src") && !text.contains("<link"),
        "the page is self-contained"
    );
}

#[test]
fn bad_files_are_reported_in_one_line_and_the_others_are_read() {
    let folder = Folder::new("bad");
    let bytes = trace(PACED, courser_base::Side::Client);
    let good = folder.write("good.sqlog", &bytes);
    let cut = folder.write("cut.sqlog", &bytes[..bytes.len() - 20]);
    let text = folder.write("text", b"hello");
    let empty = folder.write("empty.qlog", b"");
    let missing = folder.path("missing");
    let here = Path::new(&good)
        .parent()
        .expect("a directory")
        .to_string_lossy();
    let files = ["explain", &good, &text, &empty, &missing, &here, &cut];
    let (seen, result) = courser_qlog(&files);
    let error = result.expect_err("four are bad").to_string();
    assert_eq!(error.lines().count(), 1);
    for part in [
        "text: line 1: not a qlog trace",
        "empty.qlog: line 1: the file is empty",
        "cannot read",
        "is a directory",
    ] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    let read = seen.lines.iter().filter(|line| line.contains("JSON-SEQ"));
    assert_eq!(read.count(), 2, "the good and the cut one");
    assert!(
        seen.notes
            .iter()
            .any(|note| note.contains("skipped 1 unreadable lines")),
        "{:?}",
        seen.notes
    );
}

#[test]
fn converted_traces_have_the_same_counts() {
    let folder = Folder::new("convert");
    let file = folder.write("a.sqlog", &trace(PACED, courser_base::Side::Client));
    let (plain, again) = (folder.path("b.qlog"), folder.path("c.sqlog"));
    for (from, to) in [(&file, &plain), (&plain, &again)] {
        let (seen, result) = courser_qlog(&["convert", from, "-o", to]);
        result.expect("converted");
        assert!(seen.notes[0].starts_with("wrote "), "{:?}", seen.notes);
    }
    let counts = |file: &str| courser_qlog(&["stats", file]).0.lines[1..].to_vec();
    assert_eq!(counts(&file), counts(&plain));
    assert_eq!(counts(&file), counts(&again));
    let (_, result) = courser_qlog(&["convert", &file, "-o", &file]);
    let error = result.expect_err("its own input").to_string();
    assert!(error.contains("is also an input"), "{error}");
}

#[test]
fn comparison_finds_the_point_of_divergence_and_its_cause() {
    use courser_sim::apps::{Amount, Bulk, Serve, TransferDirection};

    use crate::lab::{SERVER, Setup};

    let folder = Folder::new("diff");
    let up = Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(4_000_000));
    let whole = Setup::on(1, "20mbit,rtt=40ms").run(up, Serve::new());
    let whole = folder.write("a.sqlog", &whole.bytes(courser_base::Side::Client));
    let broken = trace("outage of 4 s", courser_base::Side::Client);
    let broken = folder.write("b.sqlog", &broken);
    let (seen, result) = courser_qlog(&["diff", &whole, &broken]);
    result.expect("compared");
    let text = seen.lines.join("\n");
    for part in [
        "rtt min",
        "limited by",
        "blackout",
        "B falls behind",
        "limited by: blackout",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let (seen, _) = courser_qlog(&["diff", "--json", &whole, &broken]);
    let value: serde_json::Value = serde_json::from_str(&seen.lines[0]).expect("JSON");
    let time = value["divergence"]["time"].as_f64().expect("a time");
    assert!(
        (0.5..1.0).contains(&time),
        "the outage begins after 0.5 s: {time}"
    );
    let (seen, _) = courser_qlog(&["diff", &whole, &whole]);
    assert!(
        seen.lines
            .iter()
            .any(|line| line.contains("progress at the same rate"))
    );
}

#[test]
fn traces_of_both_ends_are_merged_in_chronological_order() {
    let folder = Folder::new("merge");
    let about = "CUBIC, 2 % random loss";
    let client = folder.write("c.sqlog", &trace(about, courser_base::Side::Client));
    let server = folder.write("s.sqlog", &trace(about, courser_base::Side::Server));
    let both = folder.path("both.sqlog");
    let (seen, result) = courser_qlog(&["merge", &client, &server, "-o", &both]);
    result.expect("merged");
    let text = seen.lines.join("\n");
    assert!(text.contains("shortest round trip 40."), "{text}");
    assert!(
        text.contains("packets from the client did not reach the server"),
        "{text}"
    );
    assert!(
        text.contains("\n0 of "),
        "no losses from the server to the client: {text}"
    );
    let file = std::io::BufReader::new(std::fs::File::open(&both).expect("written"));
    let mut reader = courser_trace::qlog::Reader::new(file).expect("a trace");
    assert_eq!(reader.about().vantage_point.as_deref(), Some("network"));
    let times: Vec<f64> = reader
        .by_ref()
        .map(|event| event.expect("an event").time)
        .collect();
    assert!(times.is_sorted() && times.len() > 1000);
    let page = folder.path("both.html");
    for words in [
        vec!["explain", &both],
        vec!["html", &both, "-o", &page],
        vec!["diff", &client, &both],
    ] {
        let error = courser_qlog(&words).1.expect_err("both ends").to_string();
        assert!(error.contains("pass the trace of one end"), "{error}");
    }
    let (_, result) = courser_qlog(&["merge", &client, &client, "-o", &both]);
    let error = result.expect_err("the same end").to_string();
    assert!(error.contains("same end"), "{error}");
}
