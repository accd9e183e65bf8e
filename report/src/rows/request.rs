//! Requests.

use super::column::{FigureColumn, FigureValue, Getter, TableRow, column, count};
use crate::table::request::Request;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

impl TableRow for Request {
    const TABLE: &'static str = "request";
    const COLUMNS: &'static [FigureColumn<Request>] = &[
        column("request_id", Getter::Text(|of| Cow::from(of.request_id()))),
        column("process", Getter::Process("upid", Request::process)),
        column("status", Getter::Text(|of| Cow::from(of.status().name()))),
        column("reason", Getter::OptionalText(Request::reason)),
        column("arrival_ns", Getter::OptionalInt(Request::arrival_ns)),
        column("received_ns", Getter::OptionalInt(Request::received_ns)),
        column("read_ns", Getter::OptionalInt(Request::read_ns)),
        column(
            "preprocessed_ns",
            Getter::OptionalInt(Request::preprocessed_ns),
        ),
        column("queued_ns", Getter::OptionalInt(Request::queued_ns)),
        column("scheduled_ns", Getter::OptionalInt(Request::scheduled_ns)),
        column(
            "engine_first_token_ns",
            Getter::OptionalInt(Request::engine_first_token_ns),
        ),
        column(
            "first_token_ns",
            Getter::OptionalInt(Request::first_token_ns),
        ),
        column(
            "first_chunk_ns",
            Getter::OptionalInt(Request::first_chunk_ns),
        ),
        column("last_token_ns", Getter::OptionalInt(Request::last_token_ns)),
        column("answered_ns", Getter::OptionalInt(Request::answered_ns)),
        column("finished_ns", Getter::OptionalInt(Request::finished_ns)),
        column("queue_us", Getter::OptionalUs(Request::queue_ns)),
        column("prefill_us", Getter::OptionalUs(Request::prefill_ns)),
        column("decode_us", Getter::OptionalUs(Request::decode_ns)),
        column(
            "engine_ttft_us",
            Getter::OptionalUs(Request::engine_ttft_ns),
        ),
        column("ttft_us", Getter::OptionalUs(Request::ttft_ns)),
        column(
            "application_ttft_us",
            Getter::OptionalUs(Request::application_ttft_ns),
        ),
        column("tpot_us", Getter::OptionalUs(Request::tpot_ns)),
        column("e2e_us", Getter::OptionalUs(Request::e2e_ns)),
        column(
            "application_e2e_us",
            Getter::OptionalUs(Request::application_e2e_ns),
        ),
        column(
            "part_socket_us",
            Getter::OptionalUs(|of| of.part_ns("socket")),
        ),
        column("part_http_us", Getter::OptionalUs(|of| of.part_ns("HTTP"))),
        column(
            "part_preprocess_us",
            Getter::OptionalUs(|of| of.part_ns("preprocess")),
        ),
        column("part_ipc_us", Getter::OptionalUs(|of| of.part_ns("IPC"))),
        column(
            "part_frontend_us",
            Getter::OptionalUs(|of| of.part_ns("frontend")),
        ),
        column(
            "part_queue_us",
            Getter::OptionalUs(|of| of.part_ns("queue")),
        ),
        column(
            "part_prefill_us",
            Getter::OptionalUs(|of| of.part_ns("prefill")),
        ),
        column(
            "part_decode_us",
            Getter::OptionalUs(|of| of.part_ns("decode")),
        ),
        column(
            "part_return_us",
            Getter::OptionalUs(|of| of.part_ns("return")),
        ),
        column(
            "part_answer_us",
            Getter::OptionalUs(|of| of.part_ns("answer")),
        ),
        column(
            "prompt_tokens",
            Getter::OptionalInt(|of| of.prompt_tokens().map(count)),
        ),
        column(
            "cached_tokens",
            Getter::OptionalInt(|of| of.cached_tokens().map(count)),
        ),
        column(
            "output_tokens",
            Getter::OptionalInt(|of| of.output_tokens().map(count)),
        ),
        column("preemptions", Getter::Int(|of| count(of.preemptions()))),
        column("preempted_us", Getter::Us(Request::preempted_ns)),
    ];

    fn process(&self) -> Option<usize> {
        Request::process(self)
    }
}

/// The JSON has a member for each column.
impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Request::COLUMNS.len()))?;
        for column in Request::COLUMNS {
            map.serialize_key(column.name)?;
            match column.value(self) {
                FigureValue::Null => map.serialize_value(&())?,
                FigureValue::Int(value) => map.serialize_value(&value)?,
                FigureValue::Real(value) => map.serialize_value(&value)?,
                FigureValue::Text(value) => map.serialize_value(&value)?,
                FigureValue::Process(value) => map.serialize_value(&value)?,
            }
        }
        map.end()
    }
}
