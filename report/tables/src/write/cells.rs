//! The cells of a column while a row group is gathered.

use super::table_file::{Column, Nullable, Values};
use super::text_column::TextColumn;
use parquet::basic::Type;
use trace_report::FigureValue;

/// The cells of a column of any type.
pub(super) enum Cells {
    Longs(Nullable<i64>),
    Doubles(Nullable<f64>),
    Texts(TextColumn),
}

impl Cells {
    pub(super) fn of(column: &Column) -> Cells {
        match column.kind {
            Type::INT64 => Cells::Longs(Nullable::default()),
            Type::DOUBLE => Cells::Doubles(Nullable::default()),
            _ => Cells::Texts(TextColumn::default()),
        }
    }

    /// Adds a cell, which is null if its value has another type than the column.
    pub(super) fn push(&mut self, value: FigureValue<'_>) {
        match (self, value) {
            (Cells::Longs(longs), FigureValue::Int(value)) => longs.push(Some(value)),
            (Cells::Longs(longs), _) => longs.push(None),
            (Cells::Doubles(doubles), FigureValue::Real(value)) => doubles.push(Some(value)),
            (Cells::Doubles(doubles), _) => doubles.push(None),
            (Cells::Texts(texts), FigureValue::Text(text)) => {
                texts.push_text(Some(text.as_bytes()));
            }
            (Cells::Texts(texts), _) => texts.push_text(None),
        }
    }

    pub(super) fn values(&mut self) -> Values<'_> {
        match self {
            Cells::Longs(longs) => Values::SomeLongs(longs),
            Cells::Doubles(doubles) => Values::SomeDoubles(doubles),
            Cells::Texts(texts) => Values::Texts(texts),
        }
    }

    pub(super) fn text_bytes(&self) -> usize {
        match self {
            Cells::Texts(texts) => texts.bytes(),
            _ => 0,
        }
    }

    /// Empties it after its values were written. Columns of texts are empty then.
    pub(super) fn clear(&mut self) {
        match self {
            Cells::Longs(longs) => longs.clear(),
            Cells::Doubles(doubles) => doubles.clear(),
            Cells::Texts(_) => {}
        }
    }
}
