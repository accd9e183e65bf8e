//! The file of a table, with row groups of columns. Each column has the encoding that is best for it.

use super::cells::{Cells, Coding, Column, Nullable};
use super::text_column::{ZSTD_LEVEL, compression};
use parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, Type};
use parquet::data_type::{DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use zstd::bulk::Compressor;

/// Name of this program in each file.
pub(crate) const CREATED_BY: &str = concat!("trace-tables ", env!("CARGO_PKG_VERSION"));
/// Maximum number of rows in a row group, unless the table has another limit.
pub(crate) const ROWS: usize = 128 << 10;
/// Number of values that are encoded at once.
const BATCH: usize = 4 << 10;

/// A table that is being written.
pub(crate) struct TableFile {
    writer: SerializedFileWriter<File>,
    columns: Cow<'static, [Column]>,
    compressor: Compressor<'static>,
}

impl TableFile {
    pub(crate) fn create(
        path: &Path,
        columns: impl Into<Cow<'static, [Column]>>,
    ) -> Result<TableFile> {
        let columns = columns.into();
        let (schema, properties) = (schema(&columns)?, properties(&columns)?);
        let writer = SerializedFileWriter::new(File::create(path)?, schema, properties)?;
        Ok(TableFile {
            writer,
            columns,
            compressor: Compressor::new(ZSTD_LEVEL)?,
        })
    }

    /// Writes a row group with this number of rows, and clears the cells.
    pub(super) fn write(&mut self, rows: usize, cells: &mut [Cells]) -> Result<()> {
        if rows == 0 {
            return Ok(()); // Some readers refuse a row group without rows.
        }
        let kinds = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for ((column, kind), cells) in self.columns.iter().zip(&kinds).zip(cells) {
            match cells {
                Cells::Longs(longs) => write_column::<Int64Type>(&mut group, column, longs)?,
                Cells::Ints(ints) => write_column::<Int32Type>(&mut group, column, ints)?,
                Cells::Doubles(doubles) => write_column::<DoubleType>(&mut group, column, doubles)?,
                Cells::Texts(texts) => {
                    let (pages, closed) = texts.write(kind, &mut self.compressor)?;
                    group.append_column(&pages, closed)?;
                }
            }
        }
        group.close()?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.writer.close().map(drop)
    }
}

/// Writes the next column of a row group.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column,
    cells: &mut Nullable<T::T>,
) -> Result<()> {
    let next = group.next_column()?;
    let mut writer = next.ok_or_else(|| ParquetError::General("no column".to_owned()))?;
    let levels = column.is_null.then_some(&cells.levels[..]);
    let column_writer = writer.typed::<T>();
    column_writer.write_batch(&cells.values, levels, None)?;
    writer.close()?;
    cells.values.clear();
    cells.levels.clear();
    Ok(())
}

fn schema(columns: &[Column]) -> Result<TypePtr> {
    let field = |column: &Column| {
        let repetition = match column.is_null {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let field = SchemaType::primitive_type_builder(column.name, column.kind)
            .with_repetition(repetition);
        let field = match column.kind {
            Type::BYTE_ARRAY => field
                .with_logical_type(Some(LogicalType::String))
                .with_converted_type(ConvertedType::UTF8),
            _ => field,
        };
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_>>()?;
    let schema = SchemaType::group_type_builder("schema").with_fields(fields);
    schema.build().map(Arc::new)
}

fn properties(columns: &[Column]) -> Result<WriterPropertiesPtr> {
    let builder = WriterProperties::builder()
        .set_compression(compression()?)
        .set_created_by(CREATED_BY.to_owned())
        .set_max_row_group_row_count(Some(usize::MAX))
        .set_data_page_row_count_limit(ROWS)
        .set_write_batch_size(BATCH)
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    Ok(Arc::new(columns.iter().fold(builder, with_column).build()))
}

fn with_column(builder: WriterPropertiesBuilder, column: &Column) -> WriterPropertiesBuilder {
    let path = || ColumnPath::from(column.name);
    let builder = match column.coding {
        Coding::Dictionary => builder,
        Coding::Delta => builder
            .set_column_dictionary_enabled(path(), false)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED),
    };
    match column.kind {
        Type::BYTE_ARRAY => builder.set_column_statistics_enabled(path(), EnabledStatistics::None),
        _ => builder,
    }
}
