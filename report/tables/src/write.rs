//! Tables as Parquet files.

pub(crate) mod arg_table;
mod cells;
mod hybrid;
mod lazy_file;
pub(crate) mod plain_table;
pub(crate) mod read_back;
pub(crate) mod row_table;
pub(crate) mod slice_table;
pub(crate) mod small_table;
pub(crate) mod table_file;
pub(crate) mod text_column;
