//! The tables of a report as CSV. The columns are the members of the JSON, with names of processes in place of their
//! numbers.

use crate::formats::{csv, csv_failed, text_cell};
use crate::rows::{DeviceRow, FigureValue, TableRow};
use crate::table::{Metric, Recorded, RunReport, Sizing, SizingFit, SizingPoint, SizingRefusal};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use trace_merge::Error;

/// A table of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// The requests.
    Request,
    /// The time of each name.
    Names,
    /// The findings.
    Findings,
    /// How busy each device was.
    Device,
    /// How busy each stream of a device was.
    Stream,
    /// The idle time of each device by cause.
    Idle,
    /// The activities of the host between the first and the last slice of a device.
    Host,
    /// The time that each device waited for other workers.
    WaitedFor,
    /// How early or late each device joined collectives.
    Rank,
    /// The load.
    Load,
    /// The sequences in which requests went through the engine's phases.
    Phases,
    /// How the times of requests grow with the number in flight.
    Sizing,
    /// The prefixes that prompts share.
    Prefixes,
    /// Times with unusually many requests.
    Spikes,
    /// The longest steps.
    SlowSteps,
    /// The longest gaps.
    LongGaps,
    /// The time of each stack.
    Stacks,
    /// The values of each series over time.
    Timeline,
}

/// Returns one table of a report as CSV text.
///
/// # Errors
/// Returns the writer's error. None is expected, because the text is written to memory.
pub fn table_csv(report: &RunReport, table: Table) -> Result<String, Error> {
    let device_rows = |member| {
        let devices = listed(&report.idle)?;
        let rows = devices.iter().flat_map(|device| within(device, member));
        Ok(rows.collect())
    };
    let rows: serde_json::Result<Vec<Value>> = match table {
        Table::Request => return rows_csv(&report.request, &report.recorded),
        Table::Names => return rows_csv(&report.names, &report.recorded),
        Table::Device => return rows_csv(&DeviceRow::all(report), &report.recorded),
        Table::Findings => listed(&report.findings),
        Table::Stream => listed(&report.stream),
        Table::Idle => device_rows("causes"),
        Table::Host => device_rows("host"),
        Table::WaitedFor => device_rows("waited_for"),
        Table::Rank => listed(&report.rank),
        Table::Load => listed(&report.load),
        Table::Phases => listed(&report.phases.sequences),
        Table::Sizing => listed(report.sizing.iter().flat_map(points)),
        Table::Prefixes => listed(&report.prefixes.prefixes),
        Table::Spikes => listed(&report.spikes.longest),
        Table::SlowSteps => listed(&report.slow_steps),
        Table::LongGaps => listed(&report.long_gaps),
        Table::Stacks => listed(&report.stacks),
        Table::Timeline => Ok(values(report)),
    };
    members_csv(&rows.map_err(csv_failed)?, &report.recorded)
}

/// Formats rows as CSV, with the columns in their order.
fn rows_csv<R: TableRow>(rows: &[R], recorded: &Recorded) -> Result<String, Error> {
    let cell = |value: FigureValue<'_>| match value {
        FigureValue::Null => String::new(),
        FigureValue::Int(value) => value.to_string(),
        FigureValue::Real(value) => value.to_string(),
        FigureValue::Text(text) => text_cell(text).into_owned(),
        FigureValue::Process(number) => text_cell(&recorded.process_name(number)).into_owned(),
    };
    let columns = R::COLUMNS.iter();
    let cells = |row| {
        columns
            .clone()
            .map(move |(_, getter)| cell(getter.value(row)))
    };
    csv(
        columns.clone().map(|(name, _)| name),
        rows.iter().map(cells),
    )
}

/// Converts rows to JSON objects, whose members become the columns.
fn listed(rows: impl IntoIterator<Item: Serialize>) -> serde_json::Result<Vec<Value>> {
    rows.into_iter().map(serde_json::to_value).collect()
}

/// Returns the rows in a list of a device's JSON, such as `causes`, each with the number of the device added.
fn within(device: &Value, member: &str) -> Vec<Value> {
    let rows = device[member].as_array().into_iter().flatten();
    rows.map(|row| {
        let mut row = row.clone();
        row["device"] = device["process"].clone();
        row
    })
    .collect()
}

/// A point of a sizing, with the line through all of its points.
#[derive(Serialize)]
struct PointRow<'a> {
    of: Metric,
    #[serde(flatten)]
    point: &'a SizingPoint,
    #[serde(flatten)]
    fit: Option<SizingFit>,
    refused: Option<SizingRefusal>,
}

/// Returns the rows of a sizing: one for each of its points.
fn points(sizing: &Sizing) -> impl Iterator<Item = PointRow<'_>> {
    sizing.points.iter().map(|point| PointRow {
        of: sizing.of,
        point,
        fit: sizing.fit,
        refused: sizing.refused,
    })
}

/// Returns a row for each value of each time series, with the start of the part of the time that it covers, in ns.
fn values(report: &RunReport) -> Vec<Value> {
    let timeline = &report.timeline;
    let mut rows = Vec::new();
    for series in &timeline.series {
        let parts = series.values.iter().zip(0_i64..);
        rows.extend(parts.map(|(value, nth)| {
            let from_ns = timeline
                .from_ns
                .saturating_add(nth.saturating_mul(timeline.part_ns));
            json!({"of": series.of, "process": series.process, "from_ns": from_ns, "value": value})
        }));
    }
    rows
}

/// Formats rows as CSV with a column for each member that any of them has. Members that are lists or objects are left
/// out.
fn members_csv(rows: &[Value], recorded: &Recorded) -> Result<String, Error> {
    const PROCESSES: [&str; 4] = ["device", "process", "worker", "engine"];
    let rows: Vec<&Map<String, Value>> = rows.iter().filter_map(Value::as_object).collect();
    let is_single = |value: &Value| !value.is_array() && !value.is_object();
    let members = rows.iter().flat_map(|row| row.iter());
    let columns: BTreeSet<&String> = members
        .filter(|(_, value)| is_single(value))
        .map(|(name, _)| name)
        .collect();
    let cell = |row: &Map<String, Value>, name: &String| match row.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text_cell(text).into_owned(),
        Some(value) => {
            let number = value
                .as_u64()
                .and_then(|number| usize::try_from(number).ok());
            let process = number.filter(|_| PROCESSES.contains(&name.as_str()));
            let name = |process| text_cell(&recorded.process_name(process)).into_owned();
            process.map_or_else(|| value.to_string(), name)
        }
    };
    let cells = |row: &Map<String, Value>| {
        let cells = columns.iter().map(|name| cell(row, name));
        cells.collect::<Vec<_>>()
    };
    csv(&columns, rows.into_iter().map(cells))
}
