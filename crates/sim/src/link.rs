//! Links made of stacked effects.
