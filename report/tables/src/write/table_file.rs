//! A table as a file: row groups of columns, each with the encoding that suits it.

use super::text_column::TextColumn;
use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type, ZstdLevel,
};
use parquet::column::writer::ColumnWriter;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use zstd::bulk::Compressor;

/// Rows of a row group.
pub(crate) const ROWS: usize = 128 << 10;
/// What says of a file that this program wrote it.
pub(crate) const CREATED_BY: &str = concat!("trace-tables ", env!("CARGO_PKG_VERSION"));
const ZSTD_LEVEL: i32 = 1;
/// Values that are encoded at once.
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

/// Values, some of them null.
#[derive(Default)]
pub(crate) struct Nullable<T> {
    values: Vec<T>,
    /// For each row 1 if it has a value, and 0 if it has none.
    levels: Vec<i16>,
}

impl<T> Nullable<T> {
    pub(super) fn push(&mut self, value: Option<T>) {
        self.levels.push(value.is_some().into());
        self.values.extend(value);
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.levels.clear();
    }
}

/// The values of a column in a row group. Where some are null, levels say of each row whether it has one: 1, or 0.
pub(crate) enum Values<'a> {
    Longs(&'a [i64]),
    SomeLongs(&'a Nullable<i64>),
    Words(&'a [i32]),
    Doubles(&'a [f64]),
    SomeDoubles(&'a Nullable<f64>),
    Texts(&'a mut TextColumn),
}

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

    /// Writes a row group of so many rows. Columns of texts are empty then.
    pub(crate) fn write(&mut self, rows: usize, values: Vec<Values<'_>>) -> Result<()> {
        if rows == 0 {
            return Ok(()); // not every reader takes a row group without rows
        }
        let kinds = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for ((column, kind), values) in self.columns.iter().zip(&kinds).zip(values) {
            let values = match values {
                Values::Texts(texts) => {
                    let (pages, closed) = texts.write(kind, &mut self.compressor)?;
                    group.append_column(&pages, closed)?;
                    continue;
                }
                others => others,
            };
            let next = group.next_column()?;
            let mut writer = next.ok_or_else(|| ParquetError::General("no column".to_owned()))?;
            put(writer.untyped(), column, &values)?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.writer.close().map(drop)
    }
}

fn put(writer: &mut ColumnWriter<'_>, column: &Column, values: &Values<'_>) -> Result<()> {
    match (writer, values) {
        (ColumnWriter::Int64ColumnWriter(writer), Values::Longs(values)) => {
            writer.write_batch(values, None, None)?
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::SomeLongs(longs)) => {
            writer.write_batch(&longs.values, Some(&longs.levels), None)?
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::Words(values)) => {
            writer.write_batch(values, None, None)?
        }
        (ColumnWriter::DoubleColumnWriter(writer), Values::Doubles(values)) => {
            writer.write_batch(values, None, None)?
        }
        (ColumnWriter::DoubleColumnWriter(writer), Values::SomeDoubles(doubles)) => {
            writer.write_batch(&doubles.values, Some(&doubles.levels), None)?
        }
        _ => {
            let why = format!("column {}: values of another type", column.name);
            return Err(ParquetError::General(why));
        }
    };
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

/// That of all columns.
pub(super) fn compression() -> Result<Compression> {
    ZstdLevel::try_new(ZSTD_LEVEL).map(Compression::ZSTD)
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
