//! The page as a file.

use crate::page::page;
use crate::table::run_report::RunReport;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use trace_merge::Error;

/// Writes the page of a report on these paths. It is there as a whole, or not at all. Says where it is.
pub(super) fn write(path: &Path, report: &RunReport, of: &[PathBuf]) -> Result<String, Error> {
    let of: Vec<String> = of.iter().map(|path| path.display().to_string()).collect();
    let page = page(report, &of.join(" "))?;
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    let mut temporary = OsString::from(path);
    temporary.push(".tmp");
    let written = fs::write(&temporary, &page).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&temporary); // what is there is of no use
        failed(source)
    })?;
    let kb = page.len().div_ceil(1_000);
    Ok(format!(
        "{} ({kb} kB): open it in a browser",
        path.display()
    ))
}
