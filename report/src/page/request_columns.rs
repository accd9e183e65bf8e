//! The requests of a page: columns, so that 100,000 of them are a few MB.

use crate::table::{Request, RequestStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// Requests, a column each. Times are in µs.
#[derive(Debug, Default, Serialize)]
pub(super) struct RequestColumns<'a> {
    id: Vec<&'a str>,
    status: Vec<RequestStatus>,
    arrival_us: Vec<Option<i64>>,
    ttft_us: Vec<Option<i64>>,
    tpot_us: Vec<Option<i64>>,
    e2e_us: Vec<Option<i64>>,
    output_tokens: Vec<Option<u64>>,
    /// What the parts of each request are called, by number, in the order of the way.
    part_names: Vec<String>,
    /// Each request's parts: the number of a name, and a time.
    parts_us: Vec<Vec<(usize, i64)>>,
}

impl<'a> RequestColumns<'a> {
    /// `order` are the names of parts in the order of the way; those of other requests follow.
    pub(super) fn of(requests: &'a [Request], order: Vec<String>) -> RequestColumns<'a> {
        let numbers = order.iter().cloned().zip(0..);
        let mut numbers: BTreeMap<String, usize> = numbers.collect();
        let mut columns = RequestColumns {
            part_names: order,
            ..RequestColumns::default()
        };
        let us = |ns: Option<i64>| ns.map(|ns| ns / 1_000);
        for request in requests {
            columns.id.push(request.request_id());
            columns.status.push(request.status());
            columns.arrival_us.push(us(request.begin_ns()));
            columns.ttft_us.push(us(request.ttft_ns()));
            columns.tpot_us.push(us(request.tpot_ns()));
            columns.e2e_us.push(us(request.e2e_ns()));
            columns.output_tokens.push(request.output_tokens());
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
