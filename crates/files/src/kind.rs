//! Content types by file name.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use http::HeaderValue;

/// The content types of files, by the suffix of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    /// The types that take precedence over those of the [`TABLE`], by suffix in lower case.
    own: HashMap<Box<str>, HeaderValue, RandomState>,
}

impl Types {
    /// Sets the type of a suffix.
    pub(crate) fn set(&mut self, suffix: &str, kind: HeaderValue) {
        self.own.insert(suffix.to_ascii_lowercase().into(), kind);
    }

    /// Returns the value of `Content-Type` for a file of this name.
    pub(crate) fn of(&self, path: &Path) -> HeaderValue {
        if let Some(kind) = self.own_type(path) {
            return kind;
        }
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        let kind = suffix.and_then(|suffix| with_lower_case(suffix, registered));
        HeaderValue::from_static(kind.unwrap_or(UNKNOWN))
    }

    /// Returns the type that the user has set for the longest suffix of a name. A suffix may contain dots.
    fn own_type(&self, path: &Path) -> Option<HeaderValue> {
        if self.own.is_empty() {
            return None;
        }
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        // A dot at the beginning belongs to the name.
        let dots = name
            .char_indices()
            .skip(1)
            .filter(|(_, character)| *character == '.');
        let mut suffixes = dots.filter_map(|(at, _)| name.get(at + 1..));
        suffixes.find_map(|suffix| self.own.get(suffix)).cloned()
    }
}

/// The type of files whose suffix is unknown.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// Calls `find` with the suffix in lower case. Returns `None` for suffixes longer than all known ones.
fn with_lower_case<T>(suffix: &str, find: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut lower = [0; LONGEST_SUFFIX];
    let lower = lower.get_mut(..suffix.len())?;
    lower.copy_from_slice(suffix.as_bytes());
    lower.make_ascii_lowercase();
    find(std::str::from_utf8(lower).ok()?)
}

fn registered(suffix: &str) -> Option<&'static str> {
    static BY_SUFFIX: LazyLock<HashMap<&str, &str, RandomState>> = LazyLock::new(|| {
        let rows = TABLE.iter();
        let pairs = rows.flat_map(|(kind, suffixes)| suffixes.iter().map(|it| (*it, *kind)));
        pairs.collect()
    });
    BY_SUFFIX.get(suffix).copied()
}

const LONGEST_SUFFIX: usize = 16;

/// Returns true if content of this type should be compressed. This excludes what is already compressed, and
/// streams of messages, which a compressor would delay.
pub(crate) fn compresses(kind: &HeaderValue) -> bool {
    let is = |prefix: &str| kind.as_bytes().starts_with(prefix.as_bytes());
    let is_picture = is("image/") && !is("image/svg+xml");
    let is_rpc = is("application/grpc") && !is("application/grpc-web");
    !is_picture && !is_rpc && !is("text/event-stream")
}

/// Content types and the suffixes of their files: those of web pages, and of files that people
/// download. `interop/media-types` compares them with the registry of IANA and states why some differ.
///
/// Text is declared as UTF-8, because browsers would guess another encoding. Formats that state their
/// encoding themselves, such as XML, and those that are always UTF-8, such as JSON, have no `charset`.
const TABLE: &[(&str, &[&str])] = &[
    // Pages, and what they load.
    ("text/html; charset=utf-8", &["html", "htm"]),
    ("application/xhtml+xml", &["xhtml", "xht"]),
    ("text/css; charset=utf-8", &["css"]),
    ("text/javascript; charset=utf-8", &["js", "mjs"]),
    ("application/node", &["cjs"]),
    ("application/json", &["json", "map"]),
    ("application/manifest+json", &["webmanifest"]),
    ("application/wasm", &["wasm"]),
    ("text/vtt; charset=utf-8", &["vtt"]),
    // Data.
    ("application/ld+json", &["jsonld"]),
    ("application/geo+json", &["geojson"]),
    ("application/jsonl", &["jsonl"]),
    ("application/x-ndjson", &["ndjson"]),
    ("application/xml", &["xml", "xsd"]),
    ("application/xslt+xml", &["xsl", "xslt"]),
    ("application/xml-dtd", &["dtd"]),
    ("application/atom+xml", &["atom"]),
    ("application/rss+xml", &["rss"]),
    ("application/rdf+xml", &["rdf", "owl"]),
    ("text/turtle; charset=utf-8", &["ttl"]),
    ("application/n-triples", &["nt"]),
    ("application/sparql-query", &["rq"]),
    ("application/yaml", &["yaml", "yml"]),
    ("application/toml", &["toml"]),
    ("application/sql", &["sql"]),
    ("text/csv; charset=utf-8", &["csv"]),
    ("text/tab-separated-values; charset=utf-8", &["tsv"]),
    ("text/calendar; charset=utf-8", &["ics"]),
    ("text/vcard; charset=utf-8", &["vcf", "vcard"]),
    ("application/vnd.google-earth.kml+xml", &["kml"]),
    ("application/vnd.google-earth.kmz", &["kmz"]),
    ("application/gpx+xml", &["gpx"]),
    ("application/vnd.apache.parquet", &["parquet"]),
    ("application/vnd.apache.arrow.file", &["arrow"]),
    ("application/vnd.sqlite3", &["sqlite", "sqlite3"]),
    ("application/cbor", &["cbor"]),
    // Text.
    (
        "text/plain; charset=utf-8",
        &[
            "txt",
            "text",
            "log",
            "conf",
            "cfg",
            "ini",
            "properties",
            "diff",
            "patch",
            "tex",
            "rst",
            "adoc",
            "c",
            "h",
            "cc",
            "cpp",
            "hpp",
            "cs",
            "go",
            "java",
            "kt",
            "lua",
            "pl",
            "pm",
            "py",
            "rb",
            "rs",
            "swift",
            "tsx",
            "jsx",
            "vue",
        ],
    ),
    ("text/markdown; charset=utf-8", &["md", "markdown"]),
    ("application/x-sh", &["sh"]),
    ("text/troff; charset=utf-8", &["roff", "man"]),
    // Pictures.
    ("image/png", &["png"]),
    ("image/apng", &["apng"]),
    ("image/jpeg", &["jpg", "jpeg", "jpe", "jfif"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("image/avif", &["avif", "avifs"]),
    ("image/jxl", &["jxl"]),
    ("image/svg+xml", &["svg"]),
    ("image/vnd.microsoft.icon", &["ico"]),
    ("image/bmp", &["bmp", "dib"]),
    ("image/tiff", &["tif", "tiff"]),
    ("image/heic", &["heic"]),
    ("image/heif", &["heif"]),
    ("image/jp2", &["jp2", "jpg2"]),
    ("image/jpx", &["jpx", "jpf"]),
    ("image/jpm", &["jpm"]),
    ("image/vnd.adobe.photoshop", &["psd"]),
    ("image/vnd.djvu", &["djvu", "djv"]),
    ("image/ktx", &["ktx"]),
    ("image/ktx2", &["ktx2"]),
    // Fonts (RFC 8081).
    ("font/woff", &["woff"]),
    ("font/woff2", &["woff2"]),
    ("font/ttf", &["ttf"]),
    ("font/otf", &["otf"]),
    ("font/collection", &["ttc"]),
    ("application/vnd.ms-fontobject", &["eot"]),
    // Sound.
    ("audio/mpeg", &["mp3"]),
    ("audio/mp4", &["m4a", "m4b"]),
    ("audio/aac", &["aac"]),
    ("audio/ogg", &["ogg", "oga", "opus", "spx"]),
    ("audio/flac", &["flac"]),
    ("audio/wav", &["wav"]),
    ("audio/webm", &["weba"]),
    ("audio/midi", &["mid", "midi"]),
    ("audio/matroska", &["mka"]),
    ("audio/aiff", &["aif", "aiff"]),
    ("audio/ac3", &["ac3"]),
    ("audio/eac3", &["ec3"]),
    // Video.
    ("video/mp4", &["mp4", "m4v", "mp4v"]),
    // Segments of HTTP Live Streaming (RFC 8216) and DASH.
    ("video/iso.segment", &["m4s", "cmfv"]),
    ("video/mp2t", &["ts", "m2ts", "mts"]),
    ("application/vnd.apple.mpegurl", &["m3u8"]),
    ("audio/mpegurl", &["m3u"]),
    ("application/dash+xml", &["mpd"]),
    ("video/webm", &["webm"]),
    ("video/ogg", &["ogv"]),
    ("application/ogg", &["ogx"]),
    ("video/quicktime", &["mov", "qt"]),
    ("video/mpeg", &["mpeg", "mpg", "mpe"]),
    ("video/matroska", &["mkv"]),
    ("video/matroska-3d", &["mk3d"]),
    ("video/3gpp", &["3gp"]),
    ("video/3gpp2", &["3g2"]),
    ("video/x-msvideo", &["avi"]),
    ("video/x-flv", &["flv"]),
    ("application/ttml+xml", &["ttml"]),
    ("application/x-subrip", &["srt"]),
    // Models.
    ("model/gltf-binary", &["glb"]),
    ("model/gltf+json", &["gltf"]),
    ("model/vnd.usdz+zip", &["usdz"]),
    ("model/stl", &["stl"]),
    ("model/obj", &["obj"]),
    ("model/mtl", &["mtl"]),
    ("model/3mf", &["3mf"]),
    // Documents.
    ("application/pdf", &["pdf"]),
    ("application/postscript", &["ps", "eps", "ai"]),
    ("application/rtf", &["rtf"]),
    ("application/epub+zip", &["epub"]),
    ("application/vnd.amazon.mobi8-ebook", &["azw3"]),
    ("application/x-mobipocket-ebook", &["mobi"]),
    ("application/msword", &["doc", "dot"]),
    ("application/vnd.ms-excel", &["xls", "xlt"]),
    ("application/vnd.ms-powerpoint", &["ppt", "pps", "pot"]),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        &["docx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
        &["dotx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        &["xlsx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
        &["xltx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        &["pptx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
        &["ppsx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.template",
        &["potx"],
    ),
    ("application/vnd.oasis.opendocument.text", &["odt"]),
    ("application/vnd.oasis.opendocument.text-template", &["ott"]),
    ("application/vnd.oasis.opendocument.spreadsheet", &["ods"]),
    ("application/vnd.oasis.opendocument.presentation", &["odp"]),
    ("application/vnd.oasis.opendocument.graphics", &["odg"]),
    ("application/vnd.oasis.opendocument.formula", &["odf"]),
    ("application/vnd.visio", &["vsd"]),
    ("message/rfc822", &["eml"]),
    ("application/mbox", &["mbox"]),
    // Archives and packages.
    ("application/zip", &["zip"]),
    ("application/gzip", &["gz", "tgz"]),
    ("application/zstd", &["zst"]),
    ("application/x-bzip2", &["bz2", "tbz", "tbz2"]),
    ("application/x-xz", &["xz", "txz"]),
    ("application/x-tar", &["tar"]),
    ("application/x-7z-compressed", &["7z"]),
    ("application/vnd.rar", &["rar"]),
    ("application/java-archive", &["jar", "war", "ear"]),
    ("application/vnd.android.package-archive", &["apk"]),
    ("application/vnd.debian.binary-package", &["deb", "udeb"]),
    ("application/x-rpm", &["rpm"]),
    ("application/vnd.ms-cab-compressed", &["cab"]),
    ("application/x-msi", &["msi"]),
    (
        "application/vnd.microsoft.portable-executable",
        &["exe", "dll"],
    ),
    ("application/vnd.apple.installer+xml", &["mpkg"]),
    ("application/x-apple-diskimage", &["dmg"]),
    ("application/vnd.efi.iso", &["iso"]),
    ("application/vnd.efi.img", &["img"]),
    ("application/x-bittorrent", &["torrent"]),
    ("application/metalink4+xml", &["meta4"]),
    // Keys and signatures.
    ("application/pgp-keys", &["asc"]),
    ("application/pgp-signature", &["sig"]),
    ("application/pem-certificate-chain", &["pem"]),
    ("application/pkix-cert", &["cer"]),
    ("application/x-x509-ca-cert", &["crt", "der"]),
    ("application/pkix-crl", &["crl"]),
    ("application/pkcs10", &["p10", "csr"]),
    ("application/pkcs8", &["p8"]),
    ("application/pkcs12", &["p12", "pfx"]),
    ("application/pkcs7-mime", &["p7m"]),
    ("application/pkcs7-signature", &["p7s"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> String {
        let kind = Types::default().of(Path::new(name));
        kind.to_str().expect("text").to_owned()
    }

    #[test]
    fn content_types_are_those_of_their_standards() {
        for (name, expected) in [
            // RFC 8216 §4: segments of HTTP Live Streaming.
            ("segment.ts", "video/mp2t"),
            ("list.m3u8", "application/vnd.apple.mpegurl"),
            // RFC 8081.
            ("a.ttf", "font/ttf"),
            ("a.otf", "font/otf"),
            ("a.woff2", "font/woff2"),
            // RFC 9239.
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            // ECMA-426.
            ("a.js.map", "application/json"),
            ("a.usdz", "model/vnd.usdz+zip"),
            ("a.wasm", "application/wasm"),
            ("INDEX.HTML", "text/html; charset=utf-8"),
            ("a.tar.gz", "application/gzip"),
            ("a.unknown", UNKNOWN),
            ("a.a-suffix-longer-than-all-others", UNKNOWN),
            ("a", UNKNOWN),
            ("a.", UNKNOWN),
            (".js", UNKNOWN),
            ("a.\u{f6}", UNKNOWN),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }

    #[test]
    fn types_of_the_user_take_precedence() {
        let mut types = Types::default();
        types.set("TS", HeaderValue::from_static("text/x-typescript"));
        types.set(
            "a-suffix-longer-than-all-others",
            HeaderValue::from_static("a/b"),
        );
        assert_eq!(types.of(Path::new("a.ts")), "text/x-typescript");
        assert_eq!(types.of(Path::new("a.Ts")), "text/x-typescript");
        assert_eq!(
            types.of(Path::new("a.a-suffix-longer-than-all-others")),
            "a/b"
        );
        assert_eq!(types.of(Path::new("a.css")), "text/css; charset=utf-8");
        assert_eq!(types.of(Path::new(".ts")), UNKNOWN);
        types.set("cwl.json", HeaderValue::from_static("application/cwl+json"));
        assert_eq!(types.of(Path::new("a.b.cwl.json")), "application/cwl+json");
        assert_eq!(types.of(Path::new("a.json")), "application/json");
    }

    #[test]
    fn table_has_each_suffix_once_and_states_the_charset_of_text() {
        let mut seen = std::collections::HashSet::new();
        for (kind, suffixes) in TABLE {
            let is_text = kind.starts_with("text/");
            assert_eq!(is_text, kind.ends_with("; charset=utf-8"), "{kind}");
            assert!(HeaderValue::from_str(kind).is_ok(), "{kind}");
            for suffix in *suffixes {
                assert!(seen.insert(*suffix), "{suffix} occurs twice");
                assert!(suffix.len() <= LONGEST_SUFFIX, "{suffix}");
                let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
                assert!(suffix.bytes().all(is_lower), "{suffix}");
                assert_eq!(of(&format!("a.{suffix}")), *kind);
            }
        }
    }
}
