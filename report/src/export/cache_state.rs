//! How full the cache of an engine was.

use trace_merge::events::PlacedEvent;

/// What a counter of an engine said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CacheState {
    pub(super) process: usize,
    pub(super) at_ns: i64,
    /// Used and free blocks, where they are counted.
    pub(super) blocks: Option<(u64, u64)>,
    /// The share of it that was used.
    pub(super) used: f64,
}

impl CacheState {
    /// That of an event, if it is such a counter.
    pub(super) fn of(event: &PlacedEvent<'_>, process: usize) -> Option<CacheState> {
        let value = |series: &str| -> Option<f64> {
            let value = serde_json::from_slice(event.arg(series)?).ok()?;
            (0.0..=f64::from(u32::MAX))
                .contains(&value)
                .then_some(value)
        };
        let (blocks, used) = match &*event.name() {
            "kv_blocks" => {
                let (used, free) = (value("used")?, value("free")?);
                let all = used + free;
                (
                    Some((whole(used), whole(free))),
                    if all > 0.0 { used / all } else { 0.0 },
                )
            }
            "kv_cache" => (None, value("used_percent")? / 100.0),
            _ => return None,
        };
        Some(CacheState {
            process,
            at_ns: event.ts_ns,
            blocks,
            used,
        })
    }

    /// How many blocks were taken since an earlier state; negative if more were given back.
    pub(super) fn taken_since(&self, before: &CacheState) -> Option<i64> {
        let free = |state: &CacheState| i64::try_from(state.blocks?.1).ok();
        Some(free(before)? - free(self)?)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is within the bounds of the type"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
