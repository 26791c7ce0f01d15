//! Writes pages as HTML.

use std::fmt::Write;

use crate::escape::escape;
use crate::{Chart, style};

use super::table::{Cell, Table, Tone};
use super::{Page, Part, Section};

impl Page {
    /// Returns the page as one HTML file.
    pub fn to_html(&self) -> String {
        page(self)
    }
}

/// The largest number of values of each series in a page. [`Chart::to_csv`] returns all of them.
const ROWS: usize = 200;

/// Returns the HTML of a page.
pub(super) fn page(page: &Page) -> String {
    let title = escape(&page.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{title}</title><style>{}\n{STYLESHEET}</style></head>\n<body><header><h1>{title}</h1>",
        style::STYLESHEET,
    );
    for line in &page.lines {
        let _ = write!(out, "<p>{}</p>", escape(line));
    }
    out.push_str("</header>\n");
    contents(&mut out, &page.sections);
    out.push_str("<main>\n");
    for (index, one) in page.sections.iter().enumerate() {
        section(&mut out, one, index + 1);
    }
    out.push_str("</main></body></html>\n");
    out
}

/// Writes a table of contents, if the page has at least three sections.
fn contents(out: &mut String, sections: &[Section]) {
    if sections.len() < 3 {
        return;
    }
    out.push_str("<nav aria-label=\"Contents\"><ul>");
    for (index, section) in sections.iter().enumerate() {
        let _ = write!(
            out,
            "<li><a href=\"#s{}\">{}</a></li>",
            index + 1,
            escape(&section.heading)
        );
    }
    out.push_str("</ul></nav>\n");
}

fn section(out: &mut String, section: &Section, number: usize) {
    let heading = escape(&section.heading);
    let _ = write!(out, "<section id=\"s{number}\">");
    if section.is_folded {
        let _ = write!(out, "<details><summary><h2>{heading}</h2></summary>");
    } else {
        let _ = write!(out, "<h2>{heading}</h2>");
    }
    let is_chart = |part: &Part| matches!(part, Part::Chart(_));
    for group in section.parts.chunk_by(|a, b| is_chart(a) && is_chart(b)) {
        if group.iter().all(is_chart) {
            out.push_str("<div class=\"charts\">");
            group.iter().for_each(|one| part(out, one));
            out.push_str("</div>\n");
        } else {
            group.iter().for_each(|one| part(out, one));
        }
    }
    out.push_str(if section.is_folded {
        "</details></section>\n"
    } else {
        "</section>\n"
    });
}

fn part(out: &mut String, part: &Part) {
    match part {
        Part::Text(text) => {
            let _ = writeln!(out, "<p>{}</p>", escape(text));
        }
        Part::Code(code) => {
            let lines: Vec<_> = code.lines().map(escape).collect();
            let _ = writeln!(out, "<pre><code>{}</code></pre>", lines.join("\n"));
        }
        Part::Table(one) => table(out, one),
        Part::Chart(one) => chart(out, one),
    }
}

fn table(out: &mut String, table: &Table) {
    let is_number = |column: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(column));
        cells.any(|cell| cell.is_number)
    };
    let _ = write!(
        out,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\
         <table><caption>{caption}</caption><thead><tr>",
        caption = escape(&table.caption),
    );
    for (column, heading) in table.headings.iter().enumerate() {
        let class = if is_number(column) {
            " class=\"number\""
        } else {
            ""
        };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(heading));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        out.push_str("<tr>");
        row.iter().for_each(|one| cell(out, one));
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn cell(out: &mut String, cell: &Cell) {
    let (tone, sign) = match cell.tone {
        Tone::Plain => ("", ""),
        Tone::Good => ("good", "✓ "),
        Tone::Bad => ("bad", "✗ "),
        Tone::Muted => ("muted", ""),
    };
    let side = if cell.is_number { " number" } else { "" };
    let text = escape(&cell.text);
    let _ = match format!("{tone}{side}").trim() {
        "" => write!(out, "<td>"),
        class => write!(out, "<td class=\"{class}\">"),
    };
    let _ = match &cell.link {
        Some(link) => write!(out, "<a href=\"{}\">{sign}{text}</a>", escape(link)),
        None => write!(out, "{sign}{text}"),
    };
    if !cell.detail.is_empty() {
        let _ = write!(out, "<small>{}</small>", escape(&cell.detail));
    }
    out.push_str("</td>");
}

fn chart(out: &mut String, chart: &Chart) {
    let longest = chart.series.iter().map(|series| series.points.len());
    let note = match longest.max().unwrap_or(0) {
        count if count > ROWS => format!("{ROWS} of at most {count} values of each series"),
        _ => "all values".to_owned(),
    };
    let lines = |text: &str| text.lines().map(escape).collect::<Vec<_>>().join("\n");
    let _ = writeln!(
        out,
        "<figure>{}<details><summary>Values of {}</summary><pre>{}</pre>\
         <p>CSV, {note}:</p><pre class=\"csv\" tabindex=\"0\">{}</pre></details></figure>",
        chart.to_fragment(),
        escape(&chart.title),
        lines(&chart.to_text()),
        lines(&chart.to_csv_thinned(ROWS)),
    );
}

/// The stylesheet of pages. Its colours match those of the charts.
const STYLESHEET: &str = "\
:root{color-scheme:light dark;--page:#f6f7f9;--card:#ffffff;--text:#1b1f24;--dim:#59636e;\
--line:#d5d9de;--link:#0255b7;--good:#1a7f37;--bad:#c4161c}\
@media (prefers-color-scheme:dark){:root{--page:#0d0f12;--card:#14171b;--text:#e8ebef;\
--dim:#a3adb8;--line:#333a42;--link:#6cb8ff;--good:#4cc26b;--bad:#ff6b62}}\
*{box-sizing:border-box}\
body{margin:0 auto;padding:1.5rem;max-width:96rem;background:var(--page);color:var(--text);\
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
h1{font-size:1.6rem;line-height:1.2;margin:0 0 .3rem}h2{font-size:1.2rem;margin:2rem 0 .6rem}\
header p{color:var(--dim);margin:.1rem 0}a{color:var(--link)}\
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:2px solid var(--link)}\
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}\
.wide{overflow-x:auto;margin:.8rem 0}\
table{border-collapse:collapse;background:var(--card);font-size:.92em}\
caption{text-align:left;color:var(--dim);padding:.2rem 0;white-space:nowrap}\
th,td{border:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}\
th{background:var(--page);position:sticky;top:0}\
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
th.number{white-space:normal}.good,.bad,td a{white-space:nowrap}\
.good,.good a{color:var(--good)}.bad,.bad a{color:var(--bad);font-weight:600}.muted{color:var(--dim)}\
td small{display:block;color:var(--dim);white-space:nowrap;font-weight:400}\
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,34rem),1fr));gap:1rem}\
figure{margin:0;padding:.5rem;background:var(--card);border:1px solid var(--line);\
border-radius:6px;min-width:0;overflow-x:auto}\
figure svg{display:block;width:100%;min-width:32rem}\
summary{cursor:pointer;color:var(--dim)}summary h2{display:inline-block;color:var(--text);margin:.6rem 0}\
pre{overflow:auto;max-height:20rem;background:var(--page);padding:.6rem;border-radius:4px;\
font-size:.85em}";
