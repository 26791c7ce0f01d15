use super::*;
use crate::congestion::Algorithm;

mod figures;
mod path;
