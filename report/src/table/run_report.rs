//! Everything that a report has.

use super::device_idle::DeviceIdle;
use super::device_time::DeviceTime;
use super::finding::Finding;
use super::load_level::LoadLevel;
use super::name_time::NameTime;
use super::rank_time::RankTime;
use super::recorded::Recorded;
use super::request::Request;
use super::request_parts::RequestParts;
use super::request_summary::RequestSummary;
use serde::Serialize;

/// Everything that a report has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// Version of the schema of this: it changes when a field changes its meaning or goes.
    pub schema: u32,
    /// What was recorded, and what is missing.
    pub recorded: Recorded,
    /// What stands out, the costliest first.
    pub findings: Vec<Finding>,
    /// All requests in a few figures.
    pub requests: RequestSummary,
    /// Where their time goes.
    pub request_parts: RequestParts,
    /// Each request, in the order of their arrival.
    pub request: Vec<Request>,
    /// How much there was to do.
    pub load: Vec<LoadLevel>,
    /// How busy each device was.
    pub device: Vec<DeviceTime>,
    /// Why each of them was idle, in the same order.
    pub idle: Vec<DeviceIdle>,
    /// How the devices came to collectives.
    pub rank: Vec<RankTime>,
    /// The time of each name, that with the most time by itself first.
    pub names: Vec<NameTime>,
}
