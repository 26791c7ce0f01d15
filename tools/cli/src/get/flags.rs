//! Converts the flags to the plan of a run.

use std::time::{Duration, Instant};

use courser::client::FileTokenStore;
use http::header::{self, HeaderName};

use super::args::{Arguments, EarlyDataUse, OutputArguments, RequestArguments, TransferArguments};
use super::content_flags::{ContentFlag, ContentKind};
use super::cookie_argument::CookieArgument;
use super::date;
use super::destination::destination;
use super::exit::{FAILED_INIT, Failed, UNSUPPORTED_PROTOCOL, URL_MALFORMED};
use super::netrc::Netrc;
use super::plan::{
    CookiePlan, Job, NetrcPlan, Plan, Refused, RequestPlan, ResponsePlan, ResumeAt, RetryPlan,
    StepReport, TimeCondition, TokenFile, TransferPlan, Upload, Verbosity,
};
use super::prepared::Prepared;
use super::protocols::Protocols;
use super::speed::SlowLimit;
use super::trace::TracePlan;
use super::zones::Zones;
use super::{prepared, setup, write_out};
use crate::transfer::{ExpandedUrl, expand_url};

/// Returns the plan of a run. Reads the files that it needs: the content, the format of --write-out,
/// certificates and tokens.
pub(super) fn plan(arguments: &Arguments) -> Result<Plan, Failed> {
    let Arguments {
        request,
        output,
        connection,
        transfer,
        ..
    } = arguments;
    if arguments.all_urls().next().is_none() {
        return Err(Failed::new(FAILED_INIT, no_url(request)));
    }
    let mut zones = Zones::default();
    let jobs = jobs(arguments, &mut zones)?;
    let write_out = output.write_out.as_deref().map(write_out::load);
    let write_out = write_out.transpose()?;
    let content = Prepared::of(request)?;
    let began = Instant::now();
    let tokens = tokens(arguments);
    let ech = connection.ech.as_deref();
    let time_condition = time_condition(request, verbosity(output));
    let is_quic = connection.http3 || connection.http3_only;
    Ok(Plan {
        began,
        client: setup::client(arguments, &zones, tokens.as_ref())?,
        tokens,
        cookies: cookies(request),
        jobs,
        prepares_early_data: connection.early_data == Some(EarlyDataUse::First),
        rebind_every: connection.rebind_every,
        links: connection.via.clone(),
        dump: output.dump_header.clone(),
        trace: trace(output),
        parallel: transfer.parallel.then_some(transfer.parallel_max),
        stops_at_failure: transfer.fail_early,
        interval: transfer.rate,
        hsts: request.hsts.clone(),
        transfer: TransferPlan {
            request: request_plan(
                request,
                content,
                conditions(request, time_condition),
                if is_quic { "https" } else { "http" },
            )?,
            response: response(arguments, time_condition)?,
            retries: retries(transfer),
            max_time: setup::set(transfer.max_time),
            max_rate: transfer.limit_rate.filter(|rate| *rate > 0),
            slow_limit: slow_limit(transfer),
            verbosity: verbosity(output),
            offers_ech: ech.is_some_and(|value| value != "false"),
            write_out,
            steps: match (output.timing, output.timing_json) {
                (_, true) => Some(StepReport::Json),
                (true, false) => Some(StepReport::Text),
                (false, false) => None,
            },
        },
    })
}

/// Returns the messages to print, which are needed before the plan is complete.
pub(super) fn verbosity(output: &OutputArguments) -> Verbosity {
    Verbosity {
        shows_details: output.verbose,
        shows_errors: !output.silent || output.show_error,
        shows_notes: !output.silent,
        shows_progress: !output.silent && !output.no_progress_meter,
    }
}

/// Returns the settings of --trace and --trace-ascii.
fn trace(output: &OutputArguments) -> Option<TracePlan> {
    let (path, is_ascii) = match (&output.trace, &output.trace_ascii) {
        (_, Some(path)) => (path, true),
        (Some(path), None) => (path, false),
        (None, None) => return None,
    };
    Some(TracePlan {
        path: path.clone(),
        is_ascii,
    })
}

/// Returns the transfers of all URLs and patterns.
fn jobs(arguments: &Arguments, zones: &mut Zones) -> Result<Vec<Job>, Failed> {
    let mut jobs = Vec::new();
    for (index, pattern) in arguments.all_urls().enumerate() {
        let all = expanded(pattern, arguments.request.globoff)?;
        for upload in uploads(arguments, index)? {
            for expanded in &all {
                let url = zones.take_from(expanded.url.clone())?;
                let path = path_of(&url);
                let name = |template: &str| expanded.name(template);
                let destination = destination(&arguments.output, index, path, name);
                jobs.push(Job {
                    number: jobs.len(),
                    url,
                    upload: upload.clone(),
                    destination,
                });
            }
        }
    }
    Ok(jobs)
}

/// Returns the files that are uploaded to the URL with this index on the command line, one after the other, or
/// `None` alone.
fn uploads(arguments: &Arguments, index: usize) -> Result<Vec<Option<Upload>>, Failed> {
    let request = &arguments.request;
    let Some(pattern) = request.upload_file.get(index) else {
        return Ok(vec![None]);
    };
    let files = expanded(pattern, request.globoff)?.into_iter();
    files
        .map(|file| {
            let content = prepared::file(&file.url)?;
            let file = file.url;
            Ok(Some(Upload { file, content }))
        })
        .collect()
}

/// Returns the values of a pattern.
fn expanded(pattern: &str, is_plain: bool) -> Result<Vec<ExpandedUrl>, Failed> {
    match is_plain {
        true => Ok(vec![ExpandedUrl::plain(pattern)]),
        false => expand_url(pattern).map_err(|error| Failed::new(URL_MALFORMED, error.to_string())),
    }
}

/// Returns the path of a URL, for file names.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    rest.find('/').map_or("/", |slash| &rest[slash..])
}

/// Opens the file of tokens. Reports a file that cannot be used, and continues without it.
fn tokens(arguments: &Arguments) -> Option<TokenFile> {
    let path = arguments.connection.token_file.as_ref()?;
    let opened = FileTokenStore::open(path);
    let opened = opened.inspect_err(|error| crate::output::note(error.to_string()));
    Some(TokenFile {
        path: path.clone(),
        store: opened.ok()?.into(),
    })
}

fn request_plan(
    request: &RequestArguments,
    content: Prepared,
    conditions: Vec<(HeaderName, String)>,
    scheme: &'static str,
) -> Result<RequestPlan, Failed> {
    let scheme = match request.proto_default.as_deref() {
        None => scheme,
        Some("https") => "https",
        Some("http") => "http",
        Some(other) => {
            let text = format!("--proto-default '{other}' is not supported: use https or http");
            return Err(Failed::new(UNSUPPORTED_PROTOCOL, text));
        }
    };
    let (referer, has_auto_referer) = match request.referer.as_deref() {
        Some(referer) => match referer.strip_suffix(";auto") {
            Some(first) => (Some(first).filter(|it| !it.is_empty()), true),
            None => (Some(referer), false),
        },
        None => (None, false),
    };
    let cookies = request.cookie.iter();
    let cookies = cookies.filter_map(|text| match CookieArgument::of(text) {
        CookieArgument::Pairs(pairs) => Some(pairs.to_owned()),
        CookieArgument::File(_) => None,
    });
    Ok(RequestPlan {
        scheme,
        method: request.method.clone(),
        is_head: request.head,
        content: content.content,
        query: content.query,
        user: request.user.clone(),
        bearer: request.oauth2_bearer.clone(),
        user_agent: request.user_agent.clone(),
        referer: referer.map(str::to_owned),
        cookies: cookies.collect(),
        range: request.range.clone(),
        fields: request.headers.clone(),
        keeps_credentials: request.location_trusted,
        keeps_dots: request.path_as_is,
        target: request.request_target.clone(),
        protocols: Protocols::parse("--proto", request.proto.as_deref())?,
        has_auto_referer,
        keeps_post: [request.post301, request.post302, request.post303],
        netrc: netrc(request)?,
        conditions,
        accepts_json: request.content.has_json(),
    })
}

/// Returns the message for a command line without a URL.
fn no_url(request: &RequestArguments) -> String {
    let is_url = |flag: &&ContentFlag| {
        flag.kind == ContentKind::Json && flag.value.contains("://") && !flag.value.contains('{')
    };
    match request.content.0.iter().find(is_url) {
        Some(flag) => format!(
            "--json sends its value as the content of a request, as in curl, so that '{}' is no URL: use \
             --timing-json for the times of a transfer as JSON",
            flag.value
        ),
        None => "no URL: see 'courser get --help'".to_owned(),
    }
}

fn netrc(request: &RequestArguments) -> Result<Option<NetrcPlan>, Failed> {
    let is_optional = request.netrc_optional;
    if !request.netrc && !is_optional && request.netrc_file.is_none() {
        return Ok(None);
    }
    let path = request.netrc_file.clone().unwrap_or_else(Netrc::of_user);
    // As in curl, the file of the user need not exist.
    let netrc = Netrc::read(&path, is_optional || request.netrc_file.is_none())?;
    Ok(Some(NetrcPlan { netrc, is_optional }))
}

/// Returns the condition of --time-cond.
fn time_condition(request: &RequestArguments, verbosity: Verbosity) -> Option<TimeCondition> {
    let text = request.time_cond.as_ref()?;
    let (is_newer, text) = match text.strip_prefix('-') {
        Some(text) => (false, text),
        None => (true, text.trim_start_matches(['+', '='])),
    };
    let of_file = || std::fs::metadata(text).and_then(|file| file.modified());
    let time = match date::of_user(text) {
        Some(seconds) => Some(date::system_time(seconds)),
        None => of_file().ok(),
    };
    // As in curl, a file that does not exist yet is no condition.
    if time.is_none() && verbosity.shows_notes {
        crate::output::note(format!(
            "--time-cond '{text}' is neither a date nor a file: the request has no condition"
        ));
    }
    time.map(|time| TimeCondition { time, is_newer })
}

/// Returns the fields of --time-cond and --etag-compare.
fn conditions(
    request: &RequestArguments,
    time_condition: Option<TimeCondition>,
) -> Vec<(HeaderName, String)> {
    let mut conditions = Vec::new();
    if let Some(TimeCondition { time, is_newer }) = time_condition {
        let name = match is_newer {
            true => header::IF_MODIFIED_SINCE,
            false => header::IF_UNMODIFIED_SINCE,
        };
        conditions.push((name, httpdate::fmt_http_date(time)));
    }
    if let Some(path) = &request.etag_compare {
        // As in curl, there is nothing to compare before the first transfer.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let etag = text.lines().next().unwrap_or_default().trim();
        let etag = if etag.is_empty() { "\"\"" } else { etag };
        conditions.push((header::IF_NONE_MATCH, etag.to_owned()));
    }
    conditions
}

fn slow_limit(transfer: &TransferArguments) -> Option<SlowLimit> {
    let is_set = transfer.speed_limit.is_some() || transfer.speed_time.is_some();
    is_set.then(|| SlowLimit {
        rate: transfer.speed_limit.unwrap_or(1),
        time: Duration::from_secs(transfer.speed_time.unwrap_or(30).max(1)),
    })
}

fn cookies(request: &RequestArguments) -> CookiePlan {
    let files = request.cookie.iter();
    let files = files.filter_map(|text| match CookieArgument::of(text) {
        CookieArgument::File(name) => Some(name.to_owned()),
        CookieArgument::Pairs(_) => None,
    });
    CookiePlan {
        files: files.collect(),
        jar: request.cookie_jar.clone(),
        drops_sessions: request.junk_session_cookies,
    }
}

fn response(
    arguments: &Arguments,
    time_condition: Option<TimeCondition>,
) -> Result<ResponsePlan, Failed> {
    let Arguments {
        request,
        output,
        transfer,
        ..
    } = arguments;
    Ok(ResponsePlan {
        follows: request.location || request.location_trusted,
        // A negative number means no limit.
        max_redirects: u64::try_from(request.max_redirs).ok(),
        decompresses: request.compressed,
        refused: match (output.fail, output.fail_with_body) {
            (true, _) => Refused::Fails,
            (false, true) => Refused::FailsWithBody,
            (false, false) => Refused::Succeeds,
        },
        includes_headers: output.include || request.head,
        creates_folders: output.create_dirs,
        resume: resume(transfer)?,
        max_size: transfer.max_filesize.unwrap_or(u64::MAX),
        redirect_protocols: Protocols::parse("--proto-redir", request.proto_redir.as_deref())?,
        verifies: !arguments.connection.insecure,
        keeps_time: output.remote_time,
        removes_failed: output.remove_on_error,
        etag_file: request.etag_save.clone(),
        time_condition,
    })
}

fn resume(transfer: &TransferArguments) -> Result<Option<ResumeAt>, Failed> {
    Ok(match transfer.continue_at.as_deref() {
        None => None,
        Some("-") => Some(ResumeAt::EndOfFile),
        Some(number) => Some(ResumeAt::Offset(number.parse().map_err(|_| {
            let text = format!("--continue-at '{number}' is neither '-' nor a number of bytes");
            Failed::new(FAILED_INIT, text)
        })?)),
    })
}

fn retries(transfer: &TransferArguments) -> RetryPlan {
    RetryPlan {
        most: transfer.retry,
        delay: setup::set(transfer.retry_delay),
        max_time: setup::set(transfer.retry_max_time),
        if_refused: transfer.retry_connrefused,
        after_all: transfer.retry_all_errors,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Command;

    /// Returns the plan of a command line.
    fn planned(flags: &[&str]) -> Result<Plan, Failed> {
        let words = ["courser", "get"].iter().chain(flags);
        let arguments = crate::args::Arguments::try_parse_from(words);
        let Some(Command::Get(get)) = arguments.expect("a command line").command else {
            panic!("another command");
        };
        plan(&get)
    }

    #[test]
    fn defaults_are_those_of_curl() {
        let plan = planned(&["a.test"]).expect("a plan");
        assert_eq!((plan.parallel, plan.stops_at_failure), (None, false));
        let TransferPlan {
            request, response, ..
        } = plan.transfer;
        assert_eq!(request.scheme, "http");
        assert_eq!(
            (response.follows, response.max_redirects),
            (false, Some(50))
        );
        assert_eq!(response.refused, Refused::Succeeds);
        assert_eq!((response.resume, response.max_size), (None, u64::MAX));
    }

    #[test]
    fn flags_become_values() {
        let flags = "--http3 -Z --parallel-max 7 -L --max-redirs -1 -C 12 --fail-with-body -I --timing-json -sS a.test";
        let plan = planned(&flags.split(' ').collect::<Vec<_>>()).expect("a plan");
        assert_eq!(plan.parallel, Some(7));
        let TransferPlan {
            request,
            response,
            verbosity,
            steps,
            ..
        } = plan.transfer;
        assert_eq!((request.scheme, request.is_head), ("https", true));
        assert!(response.follows && response.includes_headers);
        assert_eq!(response.max_redirects, None);
        assert_eq!(response.resume, Some(ResumeAt::Offset(12)));
        assert_eq!(response.refused, Refused::FailsWithBody);
        assert_eq!(steps, Some(StepReport::Json));
        assert!(verbosity.shows_errors && !verbosity.shows_notes && !verbosity.shows_progress);
    }

    #[test]
    fn cookies_and_their_files_are_separated() {
        let plan = planned(&["-b", "a=b", "-b", "jar", "-b", "", "a.test"]).expect("a plan");
        assert_eq!(plan.transfer.request.cookies, ["a=b"]);
        assert_eq!(plan.cookies.files, ["jar", ""]);
    }

    #[test]
    fn offset_that_is_not_a_number_is_refused() {
        let failed = planned(&["-C", "half", "a.test"]).err().expect("a mistake");
        assert_eq!(failed.code, FAILED_INIT);
        assert!(failed.text.contains("--continue-at 'half'"), "{failed}");
    }

    #[test]
    fn paths_of_urls_have_no_query() {
        for (url, path) in [
            ("https://a.test/x/y?z#w", "/x/y"),
            ("a.test", "/"),
            ("a.test/x", "/x"),
        ] {
            assert_eq!(path_of(url), path);
        }
    }
}
