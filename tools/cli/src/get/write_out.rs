//! `--write-out`: prints a text with variables.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};
use url::Url;

use super::exit::{Failed, version_number};
use super::facts::Facts;
use super::paths;
use super::target::scheme_of;

/// Writes a format with the figures of a transfer to standard output, or to the stream or file that it selects.
pub(crate) fn write(format: &str, facts: &Facts) {
    let mut out = Out::default();
    render(format, facts, &mut out);
    // A closed pipe is not an error.
    let _ = std::io::stdout().write_all(out.stdout.as_bytes());
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().write_all(out.stderr.as_bytes());
    for file in out.files {
        if let Err(error) = file.write() {
            // As in curl, the transfer has succeeded nevertheless.
            let path = file.path;
            crate::output::note(format!(
                "cannot write {path}, the file of --write-out: {error}"
            ));
        }
    }
}

/// Returns the format in an argument of --write-out, or in the file that it names.
pub(crate) fn load(argument: &str) -> Result<String, Failed> {
    match argument.strip_prefix('@') {
        Some(path) => {
            let text = super::content::read(path)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        None => Ok(argument.to_owned()),
    }
}

#[derive(Default)]
struct Out {
    stdout: String,
    stderr: String,
    files: Vec<OutFile>,
    target: Target,
}

/// The destination of the text that follows.
#[derive(Clone, Copy, Default)]
enum Target {
    #[default]
    Stdout,
    Stderr,
    /// The last file.
    File,
}

/// A file of `%output{FILE}`, to which `%output{>>FILE}` appends.
struct OutFile {
    path: String,
    appends: bool,
    text: String,
}

impl Out {
    fn push(&mut self, text: &str) {
        match (self.target, self.files.last_mut()) {
            (Target::File, Some(file)) => file.text.push_str(text),
            (Target::Stderr, _) => self.stderr.push_str(text),
            _ => self.stdout.push_str(text),
        }
    }

    fn begin_file(&mut self, name: &str) {
        let appended = name.strip_prefix(">>");
        self.files.push(OutFile {
            path: appended.unwrap_or(name).to_owned(),
            appends: appended.is_some(),
            text: String::new(),
        });
        self.target = Target::File;
    }
}

impl OutFile {
    fn write(&self) -> std::io::Result<()> {
        let mut options = std::fs::File::options();
        match self.appends {
            true => options.append(true),
            false => options.write(true).truncate(true),
        };
        let mut file = options.create(true).open(&self.path)?;
        file.write_all(self.text.as_bytes())
    }
}

fn render(format: &str, facts: &Facts, out: &mut Out) {
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        if let Some((text, next)) = escape(rest) {
            out.push(text);
            rest = next;
        } else if let Some((name, next)) = between(rest, "%{", '}') {
            match name {
                "stderr" => out.target = Target::Stderr,
                "stdout" => out.target = Target::Stdout,
                "onerror" if facts.failed.is_none() => return,
                "onerror" => {}
                name => out.push(&variable(name, facts)),
            }
            rest = next;
        } else if let Some((name, next)) = between(rest, "%output{", '}') {
            out.begin_file(name);
            rest = next;
        } else if let Some((name, next)) = between(rest, "%header{", '}') {
            out.push(facts.field(name).unwrap_or_default());
            rest = next;
        } else {
            out.push(&rest[..first.len_utf8()]);
            rest = &rest[first.len_utf8()..];
        }
    }
}

fn escape(text: &str) -> Option<(&'static str, &str)> {
    const ESCAPES: [(&str, &str); 5] = [
        ("\\n", "\n"),
        ("\\t", "\t"),
        ("\\r", "\r"),
        ("\\\\", "\\\\"),
        ("%%", "%"),
    ];
    ESCAPES
        .iter()
        .find_map(|(escape, meaning)| Some((*meaning, text.strip_prefix(escape)?)))
}

fn between<'a>(text: &'a str, start: &str, end: char) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(start)?.split_once(end)
}

fn variable(name: &str, facts: &Facts) -> String {
    match name {
        "json" => json(facts).to_string(),
        "header_json" => headers(facts),
        name => match value(name, facts) {
            Some(Value::String(text)) => text,
            Some(Value::Number(number)) if name.starts_with("time_") => {
                format!("{:.6}", number.as_f64().unwrap_or_default())
            }
            Some(Value::Null) => String::new(),
            Some(value) if name.ends_with("_code") => format!("{:03}", value.as_u64().unwrap_or(0)),
            Some(value) => value.to_string(),
            None => {
                let _ = writeln!(
                    std::io::stderr(),
                    "courser: unknown --write-out variable: '{name}'"
                );
                String::new()
            }
        },
    }
}

/// Returns all variables as JSON.
pub(crate) fn json(facts: &Facts) -> Value {
    let all = NAMES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), value(name, facts)?)));
    Value::Object(all.collect::<Map<_, _>>())
}

/// Returns the fields of the response as JSON, in the format and the order of curl.
fn headers(facts: &Facts) -> String {
    let headers = facts.response.iter().map(|response| &response.headers);
    let fields = headers.flat_map(|headers| {
        headers.keys().map(|name| {
            let values = headers.get_all(name).iter();
            let values: Vec<_> = values
                .map(|value| String::from_utf8_lossy(value.as_bytes()))
                .collect();
            format!("{}:{}", json!(name.as_str()), json!(values))
        })
    });
    let fields: Vec<_> = fields.collect();
    format!("{{{}\n}}", fields.join(",\n"))
}

/// Returns a part of a URL for `%{url.PART}`, as it is written there.
fn part(url: &str, part: &str) -> Option<String> {
    let whole = match scheme_of(url) {
        Some(_) => url.to_owned(),
        None => format!("http://{url}"),
    };
    let parsed = Url::parse(&whole).ok();
    let parsed = parsed.as_ref();
    Some(match part {
        "scheme" => parsed.map_or("", Url::scheme).to_owned(),
        "user" => parsed.map_or("", Url::username).to_owned(),
        "password" => parsed
            .and_then(Url::password)
            .unwrap_or_default()
            .to_owned(),
        "options" | "zoneid" => String::new(),
        "host" => parsed
            .and_then(Url::host_str)
            .unwrap_or_default()
            .to_owned(),
        "port" => parsed
            .and_then(Url::port_or_known_default)
            .map_or_else(String::new, |port| port.to_string()),
        "path" => parsed.map_or("", Url::path).to_owned(),
        "query" => parsed.and_then(Url::query).unwrap_or_default().to_owned(),
        "fragment" => parsed
            .and_then(Url::fragment)
            .unwrap_or_default()
            .to_owned(),
        _ => return None,
    })
}

fn seconds(time: Duration) -> Value {
    // curl reports whole microseconds.
    json!(f64::from(u32::try_from(time.as_micros()).unwrap_or(u32::MAX)) / 1e6)
}

fn value(name: &str, facts: &Facts) -> Option<Value> {
    if let Some(name) = name.strip_prefix("time_") {
        return time(name, facts).map(seconds);
    }
    if let Some(name) = name.strip_prefix("url.") {
        return part(&facts.url, name).map(Value::String);
    }
    if let Some(name) = name.strip_prefix("urle.") {
        let url = facts.effective_url.as_deref().unwrap_or(&facts.url);
        return part(url, name).map(Value::String);
    }
    let timing = facts.timing.as_ref();
    let remote = timing.and_then(|timing| timing.remote);
    let local = timing.and_then(|timing| timing.local);
    let failed = facts.failed.as_ref();
    Some(match name {
        "content_type" => json!(facts.field("content-type")),
        "errormsg" => json!(failed.map(|failed| &failed.text)),
        "exitcode" => json!(failed.map_or(0, |failed| failed.code)),
        "filename_effective" => json!(facts.file_name),
        // Those of other protocols and of TLS with proxies.
        "ftp_entry_path" => Value::Null,
        "proxy_ssl_verify_result" => json!(0),
        "http_code" | "response_code" => json!(facts.status().map_or(0, |status| status.as_u16())),
        "http_version" => json!(version(facts)),
        "local_ip" => json!(
            local
                .map(|local| local.ip().to_string())
                .unwrap_or_default()
        ),
        "local_port" => json!(local.map_or(0, |local| local.port())),
        "method" => json!(facts.method.as_str()),
        "num_connects" => json!(facts.connects),
        "num_headers" => json!(facts.response.as_ref().map_or(0, |head| head.headers.len())),
        "num_redirects" => json!(facts.redirects),
        "num_retries" => json!(facts.retries),
        "proxy_used" => json!(u8::from(timing.is_some_and(|timing| timing.is_proxied))),
        "redirect_url" => json!(facts.redirect_url),
        "remote_ip" => json!(
            remote
                .map(|remote| remote.ip().to_string())
                .unwrap_or_default()
        ),
        "remote_port" => json!(remote.map_or(0, |remote| remote.port())),
        "scheme" => json!(facts.effective.as_ref().and_then(|uri| uri.scheme_str())),
        "size_download" => json!(facts.size_download),
        "size_header" => json!(facts.size_header),
        "size_request" => json!(facts.size_request),
        "size_upload" => json!(facts.size_upload),
        "speed_download" => json!(facts.speed(facts.size_download)),
        "speed_upload" => json!(facts.speed(facts.size_upload)),
        "ssl_verify_result" => json!(failed.map_or(0, |failed| failed.verify_result)),
        "url" => json!(facts.url),
        "url_effective" => json!(facts.effective_url),
        "urlnum" | "xfer_id" => json!(facts.number),
        name => return quic(name, facts),
    })
}

/// Returns the version of the response, which may be lower than that of the request.
fn version(facts: &Facts) -> &'static str {
    match facts.response.as_ref().map(|response| response.version) {
        // curl prints no minor version here.
        Some(http::Version::HTTP_10) => "1",
        version => version_number(version),
    }
}

fn time(name: &str, facts: &Facts) -> Option<Duration> {
    let steps = facts.steps();
    Some(match name {
        "namelookup" => steps.name_lookup,
        "connect" => steps.connect,
        "appconnect" => steps.secure,
        "pretransfer" => steps.request,
        "starttransfer" => steps.first_byte,
        "redirect" if facts.redirects == 0 => Duration::ZERO,
        "redirect" => facts.last_began,
        "total" => facts.total,
        _ => return None,
    })
}

/// Returns the variables that curl does not have.
fn quic(name: &str, facts: &Facts) -> Option<Value> {
    let stats = facts
        .timing
        .as_ref()
        .and_then(|timing| timing.quic.as_ref());
    Some(match name {
        "early_data" => json!(early_data(facts)),
        "quic_rtt" => json!(stats.map(|stats| seconds(stats.path.rtt))),
        "quic_min_rtt" => json!(stats.map(|stats| seconds(stats.path.min_rtt))),
        "quic_cwnd" => json!(stats.map(|stats| stats.path.congestion_window)),
        "quic_mtu" => json!(stats.map(|stats| stats.path.mtu)),
        "quic_version" => json!(stats.map(|stats| stats.version.to_string())),
        "quic_packets_sent" => json!(stats.map(|stats| stats.packets_sent)),
        "quic_packets_received" => json!(stats.map(|stats| stats.packets_received)),
        "paths" => {
            let paths = facts.timing.as_ref().map(|timing| &timing.paths);
            paths.map_or_else(|| json!([]), |paths| paths::values(paths))
        }
        "quic_packets_lost" => json!(stats.map(|stats| stats.packets_lost)),
        _ => return None,
    })
}

/// Returns the fate of a request that was sent in early data.
fn early_data(facts: &Facts) -> Option<String> {
    let early = facts.timing.as_ref()?.early_data?;
    Some(early.to_string())
}

const NAMES: [&str; 49] = [
    "content_type",
    "errormsg",
    "exitcode",
    "filename_effective",
    "ftp_entry_path",
    "http_code",
    "http_version",
    "local_ip",
    "local_port",
    "method",
    "num_connects",
    "num_headers",
    "num_redirects",
    "num_retries",
    "proxy_ssl_verify_result",
    "proxy_used",
    "redirect_url",
    "remote_ip",
    "remote_port",
    "response_code",
    "scheme",
    "size_download",
    "size_header",
    "size_request",
    "size_upload",
    "speed_download",
    "speed_upload",
    "ssl_verify_result",
    "time_appconnect",
    "time_connect",
    "time_namelookup",
    "time_pretransfer",
    "time_redirect",
    "time_starttransfer",
    "time_total",
    "url",
    "url_effective",
    "urlnum",
    "xfer_id",
    "early_data",
    "quic_rtt",
    "quic_min_rtt",
    "quic_cwnd",
    "quic_mtu",
    "quic_version",
    "quic_packets_sent",
    "quic_packets_received",
    "quic_packets_lost",
    "paths",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            url: "a".to_owned(),
            size_download: 1000,
            total: Duration::from_millis(500),
            ..Facts::default()
        }
    }

    fn rendered(format: &str, facts: &Facts) -> (String, String) {
        let mut out = Out::default();
        render(format, facts, &mut out);
        (out.stdout, out.stderr)
    }

    #[test]
    fn variables_are_formatted_as_by_curl() {
        let format = "%{http_code} %{time_total} %{speed_download} 100%%\\n\\x%";
        assert_eq!(rendered(format, &facts()).0, "000 0.500000 2000 100%\n\\x%");
    }

    #[test]
    fn backslashes_stay_before_other_letters() {
        assert_eq!(rendered(r"\\n\x\t", &facts()).0, "\\\\n\\x\t");
    }

    #[test]
    fn parts_of_urls_are_as_written() {
        let facts = Facts {
            url: "a.test/x%20y?q=1#f".to_owned(),
            effective_url: Some("https://u:p@b.test:81/z".to_owned()),
            ..Facts::default()
        };
        let format = "%{url.path} %{url.query} %{url.fragment} %{urle.scheme} %{urle.user} \
                      %{urle.password} %{urle.host} %{urle.port} %{urle.path}";
        assert_eq!(
            rendered(format, &facts).0,
            "/x%20y q=1 f https u p b.test 81 /z"
        );
    }

    #[test]
    fn text_after_a_file_belongs_to_it() {
        let mut out = Out::default();
        render("a%output{f}b%{stdout}c%output{>>g}d", &facts(), &mut out);
        let files = out.files.iter();
        let files: Vec<_> = files
            .map(|file| (&*file.path, file.appends, &*file.text))
            .collect();
        assert_eq!(files, [("f", false, "b"), ("g", true, "d")]);
        assert_eq!(out.stdout, "ac");
    }

    #[test]
    fn text_follows_the_stream_of_its_variable() {
        let (stdout, stderr) = rendered("a%{stderr}b%{stdout}c%{onerror}d", &facts());
        assert_eq!((stdout.as_str(), stderr.as_str()), ("ac", "b"));
    }

    #[test]
    fn every_name_has_a_value() {
        for name in NAMES {
            assert!(value(name, &facts()).is_some(), "{name}");
        }
        assert_eq!(json(&facts()).as_object().map(Map::len), Some(NAMES.len()));
    }
}
