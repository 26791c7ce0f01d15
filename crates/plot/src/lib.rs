//! Charts as SVG that look right on light and dark pages.
