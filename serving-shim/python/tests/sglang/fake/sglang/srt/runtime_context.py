"""Settings and ranks of this process. `publish` stores them before anything reads them."""

from dataclasses import dataclass
from types import SimpleNamespace


@dataclass
class SpawnRanks:
    world_rank: int = 0
    dp_rank: int | None = None
    gpu_id: int = 0


_parallel = SimpleNamespace()
_serving = SimpleNamespace()


def get_parallel():
    return _parallel


def get_serving():
    return _serving


def publish(server_args, *, role, hf_config=None, ranks=None):
    ranks = ranks or SpawnRanks()
    tp_rank, tp_size = ranks.world_rank % server_args.tp_size, server_args.tp_size
    vars(_parallel).update(
        tp_rank=tp_rank, tp_size=tp_size, attn_tp_rank=tp_rank, attn_tp_size=tp_size, attn_cp_rank=0, attn_cp_size=1,
        pp_rank=ranks.world_rank // tp_size, pp_size=server_args.pp_size, dp_rank=ranks.dp_rank, num_dp_ranks=server_args.dp_size,
        ep_size=server_args.ep_size, moe_ep_rank=0, moe_dp_rank=0, moe_dp_size=1,
    )
    vars(_serving).update(served_model_name=server_args.served_model_name, stream_interval=server_args.stream_interval)
