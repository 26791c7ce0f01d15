//! `--write-out`: prints a text with variables.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::exit::{CERTIFICATE, Failed, version_number};
use super::facts::Facts;

/// Writes a format with the figures of a transfer to standard output, or to the stream that it selects.
pub(crate) fn write(format: &str, facts: &Facts) -> Result<(), Failed> {
    let mut out = Out::default();
    render(format, facts, &mut out);
    // A closed pipe is not an error.
    let _ = std::io::stdout().write_all(out.stdout.as_bytes());
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().write_all(out.stderr.as_bytes());
    Ok(())
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
    is_stderr: bool,
}

impl Out {
    fn push(&mut self, text: &str) {
        match self.is_stderr {
            true => self.stderr.push_str(text),
            false => self.stdout.push_str(text),
        }
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
                "stderr" => out.is_stderr = true,
                "stdout" => out.is_stderr = false,
                "onerror" if facts.failed.is_none() => return,
                "onerror" => {}
                name => out.push(&variable(name, facts)),
            }
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
    const ESCAPES: [(&str, &str); 4] = [("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ("%%", "%")];
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
        "header_json" => headers(facts).to_string(),
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

fn headers(facts: &Facts) -> Value {
    let mut all = Map::new();
    for (name, value) in facts.response.iter().flat_map(|response| &response.headers) {
        let list = all.entry(name.as_str()).or_insert_with(|| json!([]));
        if let Value::Array(list) = list {
            list.push(json!(String::from_utf8_lossy(value.as_bytes())));
        }
    }
    Value::Object(all)
}

fn seconds(time: Duration) -> Value {
    // curl reports whole microseconds.
    json!(f64::from(u32::try_from(time.as_micros()).unwrap_or(u32::MAX)) / 1e6)
}

fn value(name: &str, facts: &Facts) -> Option<Value> {
    if let Some(name) = name.strip_prefix("time_") {
        return time(name, facts).map(seconds);
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
        "redirect_url" => json!(facts.redirect_url.as_ref().map(ToString::to_string)),
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
        "ssl_verify_result" => json!(u8::from(
            failed.is_some_and(|failed| failed.code == CERTIFICATE)
        )),
        "url" => json!(facts.url),
        "url_effective" => json!(facts.effective_url),
        "urlnum" => json!(facts.number),
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
        "quic_packets_lost" => json!(stats.map(|stats| stats.packets_lost)),
        _ => return None,
    })
}

/// Returns the fate of a request that was sent in early data.
fn early_data(facts: &Facts) -> Option<String> {
    let early = facts.timing.as_ref()?.early_data?;
    Some(early.to_string())
}

const NAMES: [&str; 45] = [
    "content_type",
    "errormsg",
    "exitcode",
    "filename_effective",
    "http_code",
    "http_version",
    "local_ip",
    "local_port",
    "method",
    "num_connects",
    "num_headers",
    "num_redirects",
    "num_retries",
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
    "early_data",
    "quic_rtt",
    "quic_min_rtt",
    "quic_cwnd",
    "quic_mtu",
    "quic_version",
    "quic_packets_sent",
    "quic_packets_received",
    "quic_packets_lost",
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
