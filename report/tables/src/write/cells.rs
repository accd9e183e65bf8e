//! Columns, and their cells while a row group is collected.

use super::text_column::TextColumn;
use parquet::basic::Type;
use std::borrow::Cow;
use trace_report::FigureValue;

/// Encoding of a column before it is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Differences between consecutive rows.
    Delta,
    /// Numbers of repeated values.
    Dictionary,
}

/// Name and type of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) coding: Coding,
    pub(crate) is_null: bool,
}

impl Column {
    const fn new(name: &'static str, kind: Type, coding: Coding) -> Column {
        Column {
            name,
            kind,
            coding,
            is_null: false,
        }
    }

    pub(crate) const fn long(name: &'static str, coding: Coding) -> Column {
        Column::new(name, Type::INT64, coding)
    }

    pub(crate) const fn int(name: &'static str) -> Column {
        Column::new(name, Type::INT32, Coding::Dictionary)
    }

    pub(crate) const fn double(name: &'static str) -> Column {
        Column::new(name, Type::DOUBLE, Coding::Dictionary)
    }

    pub(crate) const fn text(name: &'static str) -> Column {
        Column::new(name, Type::BYTE_ARRAY, Coding::Dictionary)
    }

    pub(crate) const fn or_null(self) -> Column {
        Column {
            is_null: true,
            ..self
        }
    }
}

/// Value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Long(i64),
    Double(f64),
    Text(Cow<'a, [u8]>),
    /// Number of a text in the column.
    Known(u32),
}

impl<'a> Cell<'a> {
    pub(crate) fn text(text: &'a str) -> Cell<'a> {
        Cell::Text(Cow::Borrowed(text.as_bytes()))
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(long: Option<i64>) -> Self {
        long.map_or(Cell::Null, Cell::Long)
    }
}

impl From<Option<u32>> for Cell<'_> {
    fn from(number: Option<u32>) -> Self {
        number.map_or(Cell::Null, Cell::Known)
    }
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Cell::Null, Cell::text)
    }
}

impl From<Option<String>> for Cell<'_> {
    fn from(text: Option<String>) -> Self {
        text.map_or(Cell::Null, |text| Cell::Text(text.into_bytes().into()))
    }
}

impl<'a> From<FigureValue<'a>> for Cell<'a> {
    fn from(value: FigureValue<'a>) -> Self {
        match value {
            FigureValue::Int(value) => Cell::Long(value),
            FigureValue::Real(value) => Cell::Double(value),
            FigureValue::Text(text) => Cell::text(text),
            FigureValue::Null | FigureValue::Process(_) => Cell::Null,
        }
    }
}

/// Values that may be null.
#[derive(Default)]
pub(crate) struct Nullable<T> {
    pub(super) values: Vec<T>,
    /// Definition level of each row: 1 if it has a value, or 0 if it is null.
    pub(super) levels: Vec<i16>,
}

impl<T> Nullable<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(value.is_some().into());
        self.values.extend(value);
    }
}

/// Cells of a column of any type.
pub(crate) enum Cells {
    Longs(Nullable<i64>),
    Ints(Nullable<i32>),
    Doubles(Nullable<f64>),
    Texts(TextColumn),
}

impl Cells {
    pub(super) fn new(column: &Column) -> Cells {
        match column.kind {
            Type::INT64 => Cells::Longs(Nullable::default()),
            Type::INT32 => Cells::Ints(Nullable::default()),
            Type::DOUBLE => Cells::Doubles(Nullable::default()),
            _ => Cells::Texts(TextColumn::default()),
        }
    }

    /// Adds a cell, which is null if its value has another type than the column.
    #[inline]
    pub(super) fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Cells::Longs(longs), Cell::Long(value)) => longs.push(Some(value)),
            (Cells::Longs(longs), _) => longs.push(None),
            (Cells::Ints(ints), Cell::Long(value)) => ints.push(i32::try_from(value).ok()),
            (Cells::Ints(ints), _) => ints.push(None),
            (Cells::Doubles(doubles), Cell::Double(value)) => doubles.push(Some(value)),
            (Cells::Doubles(doubles), _) => doubles.push(None),
            (Cells::Texts(texts), Cell::Known(number)) => texts.push(Some(number), 1),
            (Cells::Texts(texts), Cell::Text(text)) => texts.push_text(Some(&text)),
            (Cells::Texts(texts), _) => texts.push_text(None),
        }
    }

    pub(super) fn text_bytes(&self) -> usize {
        match self {
            Cells::Texts(texts) => texts.bytes(),
            _ => 0,
        }
    }
}
