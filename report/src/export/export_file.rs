//! A file of an export.

/// A file, before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Its name in the folder of the export.
    pub name: &'static str,
    /// All of it.
    pub text: String,
}

impl ExportFile {
    pub(super) fn new(name: &'static str, text: String) -> ExportFile {
        ExportFile { name, text }
    }
}
