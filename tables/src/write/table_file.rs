//! A table as a file: row groups of columns, each with the encoding that suits it.

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type, ZstdLevel,
};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group.
pub(crate) const ROWS: usize = 128 << 10;
/// What says of a file that this program wrote it.
pub(crate) const CREATED_BY: &str = concat!("trace-tables ", env!("CARGO_PKG_VERSION"));
/// Texts that are handed over at once.
const BATCH: usize = 4 << 10;

/// How a column is encoded before it is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Differences from row to row.
    Delta,
    /// Numbers of values that come again.
    Dictionary,
}

/// A column: its name, its type, whether it may be null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) coding: Coding,
    pub(crate) is_null: bool,
}

impl Column {
    pub(crate) const fn long(name: &'static str, coding: Coding) -> Column {
        Column {
            name,
            kind: Type::INT64,
            coding,
            is_null: false,
        }
    }

    pub(crate) const fn word(name: &'static str) -> Column {
        Column {
            kind: Type::INT32,
            ..Column::long(name, Coding::Dictionary)
        }
    }

    pub(crate) const fn double(name: &'static str) -> Column {
        Column {
            kind: Type::DOUBLE,
            ..Column::long(name, Coding::Dictionary)
        }
    }

    pub(crate) const fn text(name: &'static str) -> Column {
        Column {
            kind: Type::BYTE_ARRAY,
            ..Column::long(name, Coding::Dictionary)
        }
    }

    pub(crate) const fn or_null(self) -> Column {
        Column {
            is_null: true,
            ..self
        }
    }
}

/// The values of a column in a row group. Where some are null, levels say of each row whether it has one: 1, or 0.
pub(crate) enum Values<'a> {
    Longs(&'a [i64]),
    SomeLongs(&'a [i64], &'a [i16]),
    Words(&'a [i32]),
    Doubles(&'a [f64]),
    SomeDoubles(&'a [f64], &'a [i16]),
    /// Of each row, by its number.
    Texts(&'a dyn Fn(usize) -> Option<ByteArray>),
}

/// A table that is being written.
pub(crate) struct TableFile {
    writer: SerializedFileWriter<File>,
    columns: &'static [Column],
}

impl TableFile {
    pub(crate) fn create(path: &Path, columns: &'static [Column]) -> Result<TableFile> {
        let writer =
            SerializedFileWriter::new(File::create(path)?, schema(columns)?, properties(columns)?)?;
        Ok(TableFile { writer, columns })
    }

    /// Writes a row group of so many rows.
    pub(crate) fn write(&mut self, rows: usize, values: &[Values<'_>]) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for (column, values) in self.columns.iter().zip(values) {
            let next = group.next_column()?;
            let mut writer = next.ok_or_else(|| ParquetError::General("no column".to_owned()))?;
            put(writer.untyped(), column, rows, values)?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.writer.close().map(drop)
    }
}

fn put(
    writer: &mut ColumnWriter<'_>,
    column: &Column,
    rows: usize,
    values: &Values<'_>,
) -> Result<()> {
    match (writer, values) {
        (ColumnWriter::Int64ColumnWriter(writer), Values::Longs(values)) => {
            let levels = column.is_null.then(|| vec![1; rows]);
            writer.write_batch(values, levels.as_deref(), None)?;
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::SomeLongs(values, levels)) => {
            writer.write_batch(values, Some(levels), None)?;
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::Words(values)) => {
            writer.write_batch(values, None, None)?;
        }
        (ColumnWriter::DoubleColumnWriter(writer), Values::Doubles(values)) => {
            writer.write_batch(values, None, None)?;
        }
        (ColumnWriter::DoubleColumnWriter(writer), Values::SomeDoubles(values, levels)) => {
            writer.write_batch(values, Some(levels), None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts(text)) => {
            let (mut texts, mut levels) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
            for start in (0..rows).step_by(BATCH) {
                texts.clear();
                levels.clear();
                for row in start..rows.min(start + BATCH) {
                    let text = text(row);
                    levels.push(i16::from(text.is_some()));
                    texts.extend(text);
                }
                let levels = column.is_null.then_some(levels.as_slice());
                writer.write_batch(&texts, levels, None)?;
            }
        }
        _ => {
            let why = format!("column {}: values of another type", column.name);
            return Err(ParquetError::General(why));
        }
    }
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
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_created_by(CREATED_BY.to_owned())
        .set_max_row_group_row_count(Some(usize::MAX))
        .set_data_page_row_count_limit(ROWS)
        .set_write_batch_size(BATCH)
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    Ok(Arc::new(columns.iter().fold(builder, coded).build()))
}

fn coded(builder: WriterPropertiesBuilder, column: &Column) -> WriterPropertiesBuilder {
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
