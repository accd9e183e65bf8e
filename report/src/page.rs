//! The report as one HTML page that needs nothing else.

mod request_columns;
mod stacks;

use crate::screen::{cause_words, request_figures};
use crate::statements::statement;
use crate::table::device_idle::LongGap;
use crate::table::device_idle::{DeviceIdle, IdleCause};
use crate::table::device_time::DeviceTime;
use crate::table::device_time::StreamTime;
use crate::table::finding::{Finding, Unrecognized};
use crate::table::load_level::LoadLevel;
use crate::table::name_time::NameTime;
use crate::table::rank_time::RankTime;
use crate::table::recorded::Recorded;
use crate::table::request::prefixes::Prefixes;
use crate::table::request_parts::Phases;
use crate::table::request_parts::RequestParts;
use crate::table::request_summary::{RequestFigure, RequestSummary};
use crate::table::run_report::RunReport;
use crate::table::sizing::Sizing;
use crate::table::slow_step::SlowStep;
use crate::table::timeline::Timeline;
use request_columns::RequestColumns;
use serde::Serialize;
use stacks::{PageStack, page_stacks};
use std::collections::BTreeMap;
use trace_merge::Error;

/// The page without its styles, scripts and data.
const FRAME: &str = include_str!("../page/page.html");
const STYLES: [&str; 2] = [
    include_str!("../page/uplot/uPlot.min.css"),
    include_str!("../page/page.css"),
];
/// In the order in which they use each other.
const SCRIPTS: [&str; 10] = [
    include_str!("../page/amount.js"),
    include_str!("../page/element.js"),
    include_str!("../page/bars.js"),
    include_str!("../page/requests.js"),
    include_str!("../page/distribution.js"),
    include_str!("../page/timeline.js"),
    include_str!("../page/devices.js"),
    include_str!("../page/flame.js"),
    include_str!("../page/names.js"),
    include_str!("../page/page.js"),
];
/// Its licence stands before it, as that asks.
const UPLOT: [&str; 2] = [
    include_str!("../page/uplot/LICENSE"),
    include_str!("../page/uplot/uPlot.iife.min.js"),
];
/// The figures whose SQL it shows, for `sa-profile sql`.
const SQL: [&str; 8] = [
    "recorded",
    "request_summary",
    "request_parts",
    "devices",
    "idle",
    "gaps",
    "steps",
    "names",
];
/// Names that a page has.
const NAMES: usize = 500;

/// What the scripts of the page draw.
#[derive(Serialize)]
struct PageData<'a> {
    /// What was reported on, in the words of the one who asked.
    title: &'a str,
    /// What `sa-profile open` takes for it, as a shell reads it.
    opens: Option<&'a str>,
    version: &'static str,
    recorded: &'a Recorded,
    findings: &'a [Finding],
    /// Sentences about the kinds of events that no name is known for.
    unrecognized: Vec<String>,
    requests: &'a RequestSummary,
    request_figures: Vec<RequestFigure<'a>>,
    request_parts: &'a RequestParts,
    phases: &'a Phases,
    sizing: &'a [Sizing],
    prefixes: &'a Prefixes,
    request: RequestColumns<'a>,
    load: &'a [LoadLevel],
    device: &'a [DeviceTime],
    worker: &'a [DeviceTime],
    stream: &'a [StreamTime],
    idle: &'a [DeviceIdle],
    rank: &'a [RankTime],
    slow_steps: &'a [SlowStep],
    long_gaps: &'a [LongGap],
    timeline: &'a Timeline,
    stacks: Vec<PageStack<'a>>,
    names: &'a [NameTime],
    names_of: usize,
    /// The name of each cause, and what it says.
    causes: BTreeMap<IdleCause, (&'static str, &'static str)>,
    sql: BTreeMap<&'static str, &'static str>,
}

/// Returns true if a file that begins like this is such a page, whichever version wrote it.
pub(crate) fn is_page(front: &[u8]) -> bool {
    let head = FRAME.split_once("<style>").map_or(FRAME, |(head, _)| head);
    front.starts_with(head.as_bytes())
}

/// The whole page of a report on `title`, with commands that open it in Perfetto where one path is `opens`.
///
/// # Errors
/// None that is known of: it is written to memory.
pub fn page(report: &RunReport, title: &str, opens: Option<&str>) -> Result<String, Error> {
    let order = report.request_parts.parts.iter();
    let data = PageData {
        title,
        opens,
        version: env!("CARGO_PKG_VERSION"),
        recorded: &report.recorded,
        findings: &report.findings,
        unrecognized: report
            .unrecognized
            .iter()
            .map(Unrecognized::sentence)
            .collect(),
        requests: &report.requests,
        request_figures: request_figures(report),
        request_parts: &report.request_parts,
        phases: &report.phases,
        sizing: &report.sizing,
        prefixes: &report.prefixes,
        request: RequestColumns::of(
            &report.request,
            order.map(|part| part.name.clone()).collect(),
        ),
        load: &report.load,
        device: &report.device,
        worker: &report.worker,
        stream: &report.stream,
        idle: &report.idle,
        rank: &report.rank,
        slow_steps: &report.slow_steps,
        long_gaps: &report.long_gaps,
        timeline: &report.timeline,
        stacks: page_stacks(&report.stacks),
        names: &report.names[..NAMES.min(report.names.len())],
        names_of: report.names.len(),
        causes: IdleCause::ALL
            .into_iter()
            .map(|cause| (cause, cause_words(cause)))
            .collect(),
        sql: SQL
            .into_iter()
            .filter_map(|name| Some((name, statement(name)?)))
            .collect(),
    };
    let data = serde_json::to_string(&data);
    // No text of the trace ends the script that it stands in.
    let data = data
        .map_err(|error| Error::Usage(format!("JSON: {error}")))?
        .replace('<', "\\u003c");
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
