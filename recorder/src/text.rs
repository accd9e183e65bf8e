//! The text of events and records: numbers, strings and args as JSON, the names of call sites, and
//! whole lines.

pub(crate) mod encode;
pub(crate) mod line;
pub(crate) mod name;
pub(crate) mod record;
pub(crate) mod series;
pub(crate) mod site;
pub(crate) mod value;
