from dataclasses import dataclass

from sglang.srt.managers.schedule_batch import ScheduleBatch


@dataclass(kw_only=True, slots=True)
class SchedulerDPAttnAdapter:
    """Gives a rank without requests an idle batch while `has_busy_peers`, which a test sets."""

    token_to_kv_pool_allocator: object
    tree_cache: object
    enable_overlap: bool
    spec_algorithm: object
    has_busy_peers: bool = False

    def maybe_prepare_mlp_sync_batch(self, batch, need_sync=None):
        return self.get_idle_batch() if batch is None and self.has_busy_peers else batch

    def get_idle_batch(self):
        batch = ScheduleBatch.init_new([], None, self.token_to_kv_pool_allocator, self.tree_cache, None, self.enable_overlap, self.spec_algorithm)
        batch.prepare_for_idle()
        return batch
