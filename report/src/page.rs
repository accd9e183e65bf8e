//! The report as one self-contained HTML page.

mod stacks;

use crate::formats::json;
use crate::screen::{cause_words, request_figures};
use crate::statements::statement;
use crate::table::{IdleCause, Request, RequestStatus, RunReport, Unrecognized};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use stacks::page_stacks;
use std::collections::BTreeMap;
use trace_merge::Error;

/// The page without its styles, scripts and data.
const FRAME: &str = include_str!("../page/page.html");
const STYLES: [&str; 2] = [
    include_str!("../page/uplot/uPlot.min.css"),
    include_str!("../page/page.css"),
];
/// The scripts, each after the ones that it uses.
const SCRIPTS: [&str; 13] = [
    include_str!("../page/amount.js"),
    include_str!("../page/data.js"),
    include_str!("../page/element.js"),
    include_str!("../page/bars.js"),
    include_str!("../page/serving.js"),
    include_str!("../page/charts.js"),
    include_str!("../page/run.js"),
    include_str!("../page/requests.js"),
    include_str!("../page/distribution.js"),
    include_str!("../page/devices.js"),
    include_str!("../page/flame.js"),
    include_str!("../page/names.js"),
    include_str!("../page/page.js"),
];
/// uPlot, after its licence text, which must be included in copies.
const UPLOT: [&str; 2] = [
    include_str!("../page/uplot/LICENSE"),
    include_str!("../page/uplot/uPlot.iife.min.js"),
];
/// Statements for `sa-profile sql` that the page shows next to their figures.
const SQL: [&str; 9] = [
    "recorded",
    "losses",
    "request_summary",
    "request_parts",
    "devices",
    "idle",
    "gaps",
    "steps",
    "names",
];
/// Maximum number of names on a page.
const NAMES: usize = 500;

/// Data that the page's scripts draw.
struct PageData<'a> {
    report: &'a RunReport,
    /// Name of the run, as the user wrote it.
    title: &'a str,
    /// Argument with which `sa-profile open` shows the run, quoted for a shell.
    opens: Option<&'a str>,
}

impl Serialize for PageData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.report;
        let unrecognized = report.unrecognized.iter().map(Unrecognized::sentence);
        let parts = report.request_parts.parts.iter();
        let order = parts.map(|part| part.name.clone()).collect();
        let names = &report.names[..NAMES.min(report.names.len())];
        // Name and description of each cause.
        let causes = IdleCause::ALL.map(|cause| (cause, cause_words(cause)));
        let sql = SQL.map(|name| (name, statement(name)));
        let mut data = serializer.serialize_map(None)?;
        data.serialize_entry("title", self.title)?;
        data.serialize_entry("opens", &self.opens)?;
        data.serialize_entry("version", env!("CARGO_PKG_VERSION"))?;
        data.serialize_entry("verdict", &report.verdict)?;
        data.serialize_entry("recorded", &report.recorded)?;
        data.serialize_entry("run_phases", &report.run_phases)?;
        data.serialize_entry("serving", &report.serving)?;
        data.serialize_entry("start_up", &report.start_up)?;
        data.serialize_entry("settings", &report.settings)?;
        data.serialize_entry("crash", &report.crash)?;
        data.serialize_entry("findings", &report.findings)?;
        data.serialize_entry("unrecognized", &unrecognized.collect::<Vec<_>>())?;
        data.serialize_entry("requests", &report.requests)?;
        data.serialize_entry("request_figures", &request_figures(report))?;
        data.serialize_entry("request_parts", &report.request_parts)?;
        data.serialize_entry("phases", &report.phases)?;
        data.serialize_entry("sizing", &report.sizing)?;
        data.serialize_entry("prefixes", &report.prefixes)?;
        data.serialize_entry("request", &RequestColumns::new(&report.request, order))?;
        data.serialize_entry("load", &report.load)?;
        data.serialize_entry("device", &report.device)?;
        data.serialize_entry("worker", &report.worker)?;
        data.serialize_entry("stream", &report.stream)?;
        data.serialize_entry("idle", &report.idle)?;
        data.serialize_entry("rank", &report.rank)?;
        data.serialize_entry("slow_steps", &report.slow_steps)?;
        data.serialize_entry("long_gaps", &report.long_gaps)?;
        data.serialize_entry("timeline", &report.timeline)?;
        data.serialize_entry("stacks", &page_stacks(&report.stacks))?;
        data.serialize_entry("names", names)?;
        data.serialize_entry("names_of", &report.names.len())?;
        data.serialize_entry("causes", &BTreeMap::from(causes))?;
        data.serialize_entry("sql", &BTreeMap::from(sql))?;
        data.end()
    }
}

/// Returns true if a file that begins with the bytes `front` is an HTML page that any version of this report wrote.
pub(crate) fn is_page(front: &[u8]) -> bool {
    let head = FRAME.split_once("<style>").map_or(FRAME, |(head, _)| head);
    front.starts_with(head.as_bytes())
}

/// Returns the HTML page of a report. `title` names the run. With `opens`, the argument that names the run in commands,
/// the page shows commands that open it in Perfetto.
///
/// # Errors
/// Returns the serializer's error. None is expected, because the text is written to memory.
pub fn page(report: &RunReport, title: &str, opens: Option<&str>) -> Result<String, Error> {
    let data = PageData {
        report,
        title,
        opens,
    };
    // Escaping `<` makes sure that no text of the trace ends the script element.
    let data = json(&data)?.replace('<', "\\u003c");
    let script = format!("(() => {{\n'use strict';\n{}}})();", SCRIPTS.join("\n"));
    let parts = [
        ("/* styles */", STYLES.join("\n")),
        ("/* uPlot */", format!("/*!\n{}*/\n{}", UPLOT[0], UPLOT[1])),
        ("/* data */", data),
        ("/* scripts */", script),
    ];
    let (mut page, mut rest) = (String::new(), FRAME);
    for (mark, text) in parts {
        if let Some((before, after)) = rest.split_once(mark) {
            page.extend([before, &text]);
            rest = after;
        }
    }
    page.push_str(rest);
    Ok(page)
}

/// Requests in columns. Times are in µs.
#[derive(Debug, Default, Serialize)]
struct RequestColumns<'a> {
    id: Vec<&'a str>,
    status: Vec<RequestStatus>,
    arrival_us: Vec<Option<i64>>,
    ttft_us: Vec<Option<i64>>,
    tpot_us: Vec<Option<i64>>,
    e2e_us: Vec<Option<i64>>,
    output_tokens: Vec<Option<u64>>,
    /// Names of the parts, in the order in which a request goes through them.
    part_names: Vec<String>,
    /// Parts of each request: index into `part_names`, and duration.
    parts_us: Vec<Vec<(usize, i64)>>,
}

impl<'a> RequestColumns<'a> {
    /// Collects the requests as columns, in the order of `requests`. `order` lists the names of parts in the order in
    /// which a request goes through them. Other names are added at the end.
    fn new(requests: &'a [Request], order: Vec<String>) -> RequestColumns<'a> {
        let numbers = order.iter().cloned().zip(0..);
        let mut numbers: BTreeMap<String, usize> = numbers.collect();
        let mut columns = RequestColumns {
            part_names: order,
            ..RequestColumns::default()
        };
        let us = |ns: Option<i64>| ns.map(|ns| ns / 1_000);
        for request in requests {
            columns.id.push(&request.request_id);
            columns.status.push(request.status);
            columns.arrival_us.push(us(request.begin_ns()));
            columns.ttft_us.push(us(request.ttft_ns()));
            columns.tpot_us.push(us(request.tpot_ns()));
            columns.e2e_us.push(us(request.e2e_ns()));
            columns.output_tokens.push(request.output_tokens);
            let mut parts = Vec::new();
            for (name, ns) in request.parts().unwrap_or_default() {
                let names = &mut columns.part_names;
                let number = *numbers.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    names.len() - 1
                });
                parts.push((number, ns / 1_000));
            }
            columns.parts_us.push(parts);
        }
        columns
    }
}
