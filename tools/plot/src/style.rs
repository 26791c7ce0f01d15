//! The stylesheet of charts: colours, lines and text.

/// Returns the stylesheet of all charts, for a page with several
/// [fragments](crate::Chart::to_fragment). Every rule is scoped by the class `courser-plot`.
///
/// A page can set its own colours with the custom properties `--courser-background`,
/// `--courser-text`, `--courser-dim`, `--courser-grid`, `--courser-1` to `--courser-8`,
/// `--courser-bad`, `--courser-good` and `--courser-muted`.
pub fn stylesheet() -> &'static str {
    STYLESHEET
}

/// The stylesheet of all charts.
///
/// It has each light colour twice: as a plain value for programs without custom properties, and as
/// the fallback of a property. A search chose the palette with the largest distance between any two
/// colours, as seen with full colour vision and with each of the three dichromacies. Every colour
/// has a contrast of at least 3:1 to the background. The tests measure both.
pub(crate) const STYLESHEET: &str = "\
.courser-plot{max-width:100%;height:auto;font-family:system-ui,-apple-system,'Segoe UI',Roboto,\
'DejaVu Sans',sans-serif;font-size:11px}\
.courser-plot .bg{fill:#ffffff;fill:var(--courser-background,#ffffff)}\
.courser-plot text{fill:#1b1f24;fill:var(--courser-text,#1b1f24)}\
.courser-plot .dim{fill:#59636e;fill:var(--courser-dim,#59636e)}\
.courser-plot .title{font-size:15px;font-weight:600}\
.courser-plot .sub{font-size:12px}\
.courser-plot .mark{font-size:10px}\
.courser-plot .mid{text-anchor:middle}\
.courser-plot .end{text-anchor:end}\
.courser-plot .num{font-variant-numeric:tabular-nums}\
.courser-plot .grid{stroke:#e3e6ea;stroke:var(--courser-grid,#e3e6ea);fill:none}\
.courser-plot .axis{stroke:#59636e;stroke:var(--courser-dim,#59636e);fill:none}\
.courser-plot .line{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round}\
.courser-plot .area{fill:currentColor;fill-opacity:.2;stroke:none}\
.courser-plot .stack{fill:currentColor;fill-opacity:.8;stroke:#ffffff;\
stroke:var(--courser-background,#ffffff);stroke-width:.6}\
.courser-plot .dots{fill:none;stroke:currentColor;stroke-width:2.2;stroke-linecap:round}\
.courser-plot .sign{fill:currentColor;stroke:currentColor;stroke-width:1}\
.courser-plot .tick{fill:none;stroke:currentColor;stroke-width:1.2}\
.courser-plot .rule{fill:none;stroke:currentColor;stroke-width:1.2;stroke-dasharray:3 3}\
.courser-plot .level{fill:none;stroke:currentColor;stroke-width:1.3;stroke-dasharray:8 4}\
.courser-plot .inside{font-weight:600;stroke:#ffffff;stroke:var(--courser-background,#ffffff);\
stroke-width:3px;stroke-linejoin:round;paint-order:stroke}\
.courser-plot .hit{fill:#808080;fill-opacity:0}\
.courser-plot .hit:hover{fill-opacity:.14}\
.courser-plot .c1{color:#0996f1;color:var(--courser-1,#0996f1)}\
.courser-plot .c2{color:#d67b0d;color:var(--courser-2,#d67b0d)}\
.courser-plot .c3{color:#1d7468;color:var(--courser-3,#1d7468)}\
.courser-plot .c4{color:#542056;color:var(--courser-4,#542056)}\
.courser-plot .c5{color:#7f5c05;color:var(--courser-5,#7f5c05)}\
.courser-plot .c6{color:#3e27ac;color:var(--courser-6,#3e27ac)}\
.courser-plot .c7{color:#7c0418;color:var(--courser-7,#7c0418)}\
.courser-plot .c8{color:#949085;color:var(--courser-8,#949085)}\
.courser-plot .cb{color:#c4161c;color:var(--courser-bad,#c4161c)}\
.courser-plot .cg{color:#1a7f37;color:var(--courser-good,#1a7f37)}\
.courser-plot .cm{color:#6b7480;color:var(--courser-muted,#6b7480)}\
@media (prefers-color-scheme:dark){.courser-plot{--courser-background:#14171b;\
--courser-text:#e8ebef;--courser-dim:#a3adb8;--courser-grid:#2b3138;\
--courser-1:#4cacfd;--courser-2:#fe9a18;--courser-3:#a9f6ea;--courser-4:#945a8f;\
--courser-5:#faf177;--courser-6:#6167ea;--courser-7:#d85f4b;--courser-8:#b7b1a8;\
--courser-bad:#ff6b62;--courser-good:#4cc26b;--courser-muted:#8b95a1}}";

#[cfg(test)]
mod tests;
