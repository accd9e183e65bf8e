//! Requests.

use super::column::{FigureColumn, TableRow, count, int, process, text, us};
use crate::table::Request;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

impl TableRow for Request {
    const TABLE: &'static str = "request";
    const COLUMNS: &'static [FigureColumn<Request>] = &[
        text("request_id", |of| Some(of.request_id())),
        process("process", "upid", Request::process),
        text("status", |of| Some(of.status().name())),
        text("reason", Request::reason),
        int("arrival_ns", Request::arrival_ns),
        int("received_ns", Request::received_ns),
        int("read_ns", Request::read_ns),
        int("preprocessed_ns", Request::preprocessed_ns),
        int("queued_ns", Request::queued_ns),
        int("scheduled_ns", Request::scheduled_ns),
        int("engine_first_token_ns", Request::engine_first_token_ns),
        int("first_token_ns", Request::first_token_ns),
        int("first_chunk_ns", Request::first_chunk_ns),
        int("last_token_ns", Request::last_token_ns),
        int("answered_ns", Request::answered_ns),
        int("finished_ns", Request::finished_ns),
        us("queue_us", Request::queue_ns),
        us("prefill_us", Request::prefill_ns),
        us("decode_us", Request::decode_ns),
        us("engine_ttft_us", Request::engine_ttft_ns),
        us("ttft_us", Request::ttft_ns),
        us("application_ttft_us", Request::application_ttft_ns),
        us("tpot_us", Request::tpot_ns),
        us("e2e_us", Request::e2e_ns),
        us("application_e2e_us", Request::application_e2e_ns),
        us("part_socket_us", |of| of.part_ns("socket")),
        us("part_http_us", |of| of.part_ns("HTTP")),
        us("part_preprocess_us", |of| of.part_ns("preprocess")),
        us("part_ipc_us", |of| of.part_ns("IPC")),
        us("part_frontend_us", |of| of.part_ns("frontend")),
        us("part_queue_us", |of| of.part_ns("queue")),
        us("part_prefill_us", |of| of.part_ns("prefill")),
        us("part_decode_us", |of| of.part_ns("decode")),
        us("part_return_us", |of| of.part_ns("return")),
        us("part_answer_us", |of| of.part_ns("answer")),
        count("prompt_tokens", Request::prompt_tokens),
        count("cached_tokens", Request::cached_tokens),
        count("output_tokens", Request::output_tokens),
        count("preemptions", |of| Some(of.preemptions())),
        us("preempted_us", |of| Some(of.preempted_ns())),
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
            map.serialize_entry(column.name, &column.value(self))?;
        }
        map.end()
    }
}
