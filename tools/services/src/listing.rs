//! Folder listings as a page or as JSON.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;

use courser::files::{self, Folder};
use courser_units::binary_size;
use http::{HeaderValue, Request, Response, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use serde::Serialize;

use crate::body::{Body, plain, typed};

/// A file or folder in a listing.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
struct Entry {
    name: String,
    /// The percent-encoded URL relative to the folder.
    url: String,
    is_folder: bool,
    /// Size in bytes; `None` for folders.
    size: Option<u64>,
    /// Modification time in UTC in the format of RFC 3339.
    modified: Option<String>,
    #[serde(skip)]
    modified_at: Option<SystemTime>,
}

/// The sorted entries of a folder.
#[derive(Serialize, Debug)]
struct Listing {
    path: String,
    /// The folders on the path.
    #[serde(skip)]
    parents: Vec<Parent>,
    entries: Vec<Entry>,
    /// Number of entries that are not listed because of the limit.
    omitted: usize,
}

/// A folder on the path of a listing.
#[derive(PartialEq, Eq, Debug)]
struct Parent {
    name: String,
    url: String,
}

/// The sort key. Folders always precede files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Name,
    Size,
    Time,
}

/// Lists a folder, as JSON if the request prefers it, otherwise as a page.
///
/// The query determines the order: `sort=name`, `size` or `time`, and `order=desc`.
pub async fn answer<B>(folder: Folder, request: &Request<B>) -> Response<Body> {
    let order = order(request.uri().query().unwrap_or_default());
    let wants_json = request
        .headers()
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(wants_json);
    let listing = match folder.read(move |folder| read(folder, order)).await {
        Ok(Ok(listing)) => listing,
        Ok(Err(_)) => return plain(StatusCode::NOT_FOUND),
        Err(reason) => return reason.into_response(),
    };
    let mut response = if wants_json {
        let json = serde_json::to_string(&listing).unwrap_or_default();
        typed(StatusCode::OK, "application/json", json)
    } else {
        typed(
            StatusCode::OK,
            "text/html; charset=utf-8",
            page(&listing, order),
        )
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    );
    response
}

/// Returns true if a request prefers JSON to HTML by name. `*/*` selects a page.
fn wants_json(accept: &str) -> bool {
    let position = |kind: &str| {
        accept
            .split(',')
            .position(|one| one.trim().starts_with(kind))
    };
    match (position("application/json"), position("text/html")) {
        (Some(json), Some(html)) => json < html,
        (json, _) => json.is_some(),
    }
}

type Order = (Key, bool);

/// Parses the order from a query such as `sort=size&order=desc`. Other parameters are ignored.
fn order(query: &str) -> Order {
    let mut order = (Key::Name, false);
    for pair in query.split('&') {
        match pair {
            "sort=size" => order.0 = Key::Size,
            "sort=time" => order.0 = Key::Time,
            "order=desc" => order.1 = true,
            _ => {}
        }
    }
    order
}

/// Reads the entries of a folder in this order.
fn read(folder: &Folder, order: Order) -> std::io::Result<Listing> {
    let found = folder.entries(MAX_ENTRIES)?;
    let mut entries: Vec<_> = found.listed.iter().map(Entry::of).collect();
    entries.sort_by(|a, b| compare(a, b, order));
    let parents = parents(folder.relative());
    let names = parents.iter().map(|parent| format!("{}/", parent.name));
    Ok(Listing {
        path: std::iter::once("/".to_owned()).chain(names).collect(),
        parents,
        entries,
        omitted: found.omitted,
    })
}

impl Entry {
    fn of(entry: &files::Entry) -> Self {
        let slash = if entry.is_folder { "/" } else { "" };
        Self {
            name: entry.name.to_string_lossy().into_owned(),
            // Without `./`, a colon in the name would make the part before it a scheme.
            url: format!("./{}{slash}", entry.url()),
            is_folder: entry.is_folder,
            size: (!entry.is_folder).then_some(entry.len),
            modified: entry.modified.map(courser_units::rfc3339),
            modified_at: entry.modified,
        }
    }
}

/// Returns the folders on the path of a folder, from the first below the root to the folder itself.
fn parents(relative: &Path) -> Vec<Parent> {
    let mut url = String::from("/");
    let parents = relative.iter().map(|name| {
        url.push_str(&percent_encode(name));
        url.push('/');
        Parent {
            name: name.to_string_lossy().into_owned(),
            url: url.clone(),
        }
    });
    parents.collect()
}

fn compare(a: &Entry, b: &Entry, (key, descending): Order) -> Ordering {
    let by_name = || {
        a.name
            .to_lowercase()
            .cmp(&b.name.to_lowercase())
            .then(a.name.cmp(&b.name))
    };
    let by_key = match key {
        Key::Name => by_name(),
        Key::Size => a.size.cmp(&b.size).then_with(by_name),
        Key::Time => a.modified_at.cmp(&b.modified_at).then_with(by_name),
    };
    let by_key = if descending { by_key.reverse() } else { by_key };
    b.is_folder.cmp(&a.is_folder).then(by_key)
}

fn page(listing: &Listing, order: Order) -> String {
    let title = escape(&listing.path);
    let mut rows = String::new();
    if listing.path != "/" {
        rows.push_str("<tr><td class=folder><a href=\"../\">..</a></td><td></td><td></td></tr>\n");
    }
    for entry in &listing.entries {
        let (class, slash) = if entry.is_folder {
            ("folder", "/")
        } else {
            ("file", "")
        };
        let size = entry.size.map_or_else(String::new, binary_size);
        let time = entry.modified_at.map_or_else(String::new, minutes);
        // Writing to a string does not fail.
        let _ = writeln!(
            rows,
            "<tr><td class={class}><a href=\"{}\">{}{slash}</a></td><td>{size}</td><td>{time}</td></tr>",
            escape(&entry.url),
            escape(&entry.name),
        );
    }
    let folders = listing
        .entries
        .iter()
        .filter(|entry| entry.is_folder)
        .count();
    let files = listing.entries.len() - folders;
    let bytes = listing.entries.iter().filter_map(|entry| entry.size).sum();
    let mut foot = format!("{folders} folders, {files} files, {}", binary_size(bytes));
    if listing.omitted > 0 {
        let _ = write!(foot, "; {} more not shown", listing.omitted);
    }
    PAGE.replace("{title}", &title)
        .replace("{crumbs}", &crumbs(&listing.parents))
        .replace("{head}", &head(order))
        .replace("{foot}", &foot)
        // Replaced last, because names may contain text that looks like a placeholder.
        .replace("{rows}", &rows)
}

/// Returns the path as links to each of its folders.
fn crumbs(parents: &[Parent]) -> String {
    let mut crumbs = String::from("<a href=\"/\">/</a>");
    for Parent { name, url } in parents {
        let _ = write!(crumbs, "<a href=\"{}\">{}</a>/", escape(url), escape(name));
    }
    crumbs
}

/// Returns the table head. Each title is a link that sorts by its column; a second click reverses the order.
fn head((key, descending): Order) -> String {
    let columns = [
        (Key::Name, "name", "Name"),
        (Key::Size, "size", "Size"),
        (Key::Time, "time", "Modified"),
    ];
    let mut head = String::new();
    for (column, word, title) in columns {
        let is_this = column == key;
        let next = if is_this && !descending {
            "desc"
        } else {
            "asc"
        };
        let mark = match (is_this, descending) {
            (true, true) => " \u{2193}",
            (true, false) => " \u{2191}",
            _ => "",
        };
        let _ = write!(
            head,
            "<th><a href=\"?sort={word}&amp;order={next}\">{title}{mark}</a></th>"
        );
    }
    head
}

fn minutes(time: SystemTime) -> String {
    let text = courser_units::rfc3339(time);
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

/// Escapes text for the page, including braces, because the template uses them for placeholders.
fn escape(text: &str) -> String {
    courser_plot::escape(text).replace('{', "&#123;")
}

/// Percent-encodes all bytes but unreserved characters (RFC 3986 §2.3).
fn percent_encode(name: &OsStr) -> String {
    percent_encoding::percent_encode(name.as_encoded_bytes(), &RESERVED).to_string()
}

const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Largest number of listed entries, so that the page remains usable and quick to create.
const MAX_ENTRIES: usize = 10_000;

const PAGE: &str = include_str!("listing.html");

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(name: &str, is_folder: bool, size: u64) -> Entry {
        Entry {
            name: name.to_owned(),
            url: percent_encode(OsStr::new(name)),
            is_folder,
            size: (!is_folder).then_some(size),
            modified: None,
            modified_at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(size)),
        }
    }

    fn sorted(order: Order) -> Vec<String> {
        let mut entries = [
            entry("b", false, 1),
            entry("A", false, 2),
            entry("z", true, 0),
        ];
        entries.sort_by(|a, b| compare(a, b, order));
        entries.map(|entry| entry.name).to_vec()
    }

    #[test]
    fn folders_precede_files_in_the_requested_order() {
        assert_eq!(sorted(order("")), ["z", "A", "b"]);
        assert_eq!(sorted(order("order=desc")), ["z", "b", "A"]);
        assert_eq!(sorted(order("sort=size")), ["z", "b", "A"]);
        assert_eq!(sorted(order("sort=time&order=desc")), ["z", "A", "b"]);
        assert_eq!(sorted(order("sort=nonsense&&&")), ["z", "A", "b"]);
    }

    #[test]
    fn names_cannot_write_html() {
        let listing = Listing {
            path: "/<b>{rows}/".to_owned(),
            parents: parents(Path::new("<b>{rows}")),
            entries: vec![entry("<script>alert(1)</script>{foot}\".txt", false, 1)],
            omitted: 0,
        };
        let page = page(&listing, order(""));
        assert!(
            !page.contains("<script>") && !page.contains("<b>"),
            "{page}"
        );
        assert_eq!(page.matches("1 files").count(), 1, "{page}");
    }

    #[test]
    fn names_cannot_change_the_direction_of_text() {
        let listing = Listing {
            path: "/".to_owned(),
            parents: Vec::new(),
            entries: vec![entry("invoice\u{202e}fdp.exe", false, 1)],
            omitted: 0,
        };
        let page = page(&listing, order(""));
        assert!(page.contains(">invoice\u{fffd}fdp.exe<"), "{page}");
        assert!(page.contains("href=\"invoice%E2%80%AEfdp.exe\""), "{page}");
    }

    #[cfg(unix)]
    #[test]
    fn parents_are_links_to_names_of_any_bytes() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(OsStr::from_bytes(b"a b/\xff"));
        let parents = parents(path);
        let urls: Vec<_> = parents.iter().map(|parent| parent.url.as_str()).collect();
        assert_eq!(urls, ["/a%20b/", "/a%20b/%FF/"]);
        assert_eq!(parents[1].name, "\u{fffd}");
    }

    #[test]
    fn json_is_preferred_by_name() {
        assert!(wants_json("application/json"));
        assert!(wants_json("application/json, text/html;q=0.5"));
        assert!(!wants_json("text/html,application/json"));
        assert!(!wants_json("*/*"));
    }
}
