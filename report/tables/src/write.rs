//! Writes tables as Parquet files.

pub(crate) mod arg_table;
pub(crate) mod cells;
mod hybrid;
pub(crate) mod read_back;
pub(crate) mod slice_table;
pub(crate) mod table;
pub(crate) mod table_file;
pub(crate) mod text_column;
