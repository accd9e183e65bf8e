//! Reads existing files, to find out if this program wrote them and for which host.

use super::table_file::CREATED_BY;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs::File;
use std::path::Path;

/// Returns true if a file is a table that this program wrote.
pub(crate) fn is_ours(path: &Path) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let reader = is_file.then(|| reader(path)).flatten();
    reader.is_some_and(|reader| {
        let created_by = reader.metadata().file_metadata().created_by();
        let program = created_by.and_then(|name| name.split(' ').next());
        program == CREATED_BY.split(' ').next()
    })
}

/// Returns the number in the first row and column of a table.
pub(crate) fn first_long(path: &Path) -> Option<i64> {
    let reader = reader(path)?;
    let row = reader.get_row_iter(None).ok()?.next()?.ok()?;
    row.get_long(0).ok()
}

fn reader(path: &Path) -> Option<SerializedFileReader<File>> {
    SerializedFileReader::new(File::open(path).ok()?).ok()
}
