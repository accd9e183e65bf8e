//! What to report.

/// By what names are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamesBy {
    /// A name is one, whatever process it is of.
    #[default]
    Run,
    /// Each process by itself.
    Process,
}

/// What to report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// By what names are told apart.
    pub names_by: NamesBy,
    /// Make none of more events than this: a report takes several times as long as a merge, and temporary files.
    pub most_events: Option<u64>,
}
