"""The text an engine answers on `/metrics`: SGLang 0.5.16's families, in its order.

A family's kind is `g`auge, `c`ounter or `h`istogram; a dash marks one that has no sample until
something of its kind has happened.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_FAMILIES = (
    "num_running_reqs/g num_queue_reqs/g num_grammar_queue_reqs/g gen_throughput/g "
    "cache_hit_rate/g decode_sum_seq_lens/g token_usage/g full_token_usage/g swa_token_usage/g "
    "mamba_usage/g num_used_tokens/g kv_available_tokens/g kv_evictable_tokens/g "
    "kv_used_tokens/g swa_available_tokens/g swa_evictable_tokens/g swa_used_tokens/g "
    "mamba_available_tokens/g mamba_evictable_tokens/g mamba_used_tokens/g "
    "weight_load_duration_seconds/g- spec_accept_length/g spec_accept_rate/g spec_cap_length/g "
    "spec_block_accept_length/g spec_num_steps/g spec_num_draft_tokens/g num_retracted_reqs/g "
    "num_retracted_requests_total/c- num_retracted_input_tokens_total/c- "
    "num_retracted_output_tokens_total/c- num_paused_reqs/g num_prefill_bootstrap_queue_reqs/g "
    "num_prefill_inflight_queue_reqs/g num_decode_prealloc_queue_reqs/g "
    "num_decode_transfer_queue_reqs/g kv_transfer_speed_gb_s/h- kv_transfer_latency_ms/h- "
    "pending_prealloc_token_usage/g num_bootstrap_failed_reqs_total/c- "
    "num_transfer_failed_reqs_total/c- num_prefill_retries_total/c- kv_transfer_bootstrap_ms/h- "
    "kv_transfer_alloc_ms/h- kv_transfer_total_mb/h- utilization/g fwd_occupancy/g "
    "new_token_ratio/g is_cuda_graph/g cuda_graph_passes_total/c- "
    "num_unique_running_routing_keys/g routing_key_running_req_count/g "
    "routing_key_all_req_count/g queue_time_seconds/h- per_stage_req_latency_seconds/h- "
    "grammar_compilation_time_seconds/h- num_grammar_cache_hit_total/c- "
    "num_grammar_aborted_total/c- num_grammar_timeout_total/c- num_grammar_total/c- "
    "grammar_schema_count/h- grammar_ebnf_size/h- grammar_tree_traversal_time_avg/h- "
    "grammar_tree_traversal_time_max/h- realtime_tokens_total/c- "
    "forward_execution_seconds_total/c- estimated_flops_per_gpu_total/c- "
    "estimated_read_bytes_per_gpu_total/c- estimated_write_bytes_per_gpu_total/c- "
    "dp_cooperation_realtime_tokens_total/c- dp_cooperation_forward_execution_seconds_total/c- "
    "prefill_delayer_wait_forward_passes/h- prefill_delayer_wait_seconds/h- "
    "prefill_delayer_outcomes_total/c- max_total_num_tokens/g- "
    "max_running_requests_under_SLO/g- engine_startup_time/g- engine_load_weights_time/g- "
    "page_size/g- num_pages/g- context_len/g- startup_available_gpu_memory_gb/g- "
    "prompt_tokens_total/c- generation_tokens_total/c- spec_verify_calls_total/c- "
    "prompt_tokens_histogram/h- uncached_prompt_tokens_histogram/h- "
    "generation_tokens_histogram/h- cached_tokens_total/c- num_requests_total/c- "
    "get_loads_duration_seconds/h- num_so_requests_total/c- num_aborted_requests_total/c- "
    "time_to_first_token_seconds/h- inter_token_latency_seconds/h- "
    "e2e_request_latency_seconds/h-"
)
_KINDS = {"g": "gauge", "c": "counter", "h": "histogram"}
_BUCKETS = ("0", "1", "2", "3", "5", "7", "10", "20", "50", "100", "200", "+Inf")
_STARTED_AT = time.time()


def exposition(
    model: str, gauges: Mapping[str, float], counters: Mapping[str, float], decoded: float
) -> str:
    """The whole answer; gauges that are not given stand at 0."""
    scheduler = _labels(model, moe_ep_rank="0", pp_rank="0", tp_rank="0")
    tokenizer = _labels(model)
    text = [*_process()]
    for family in _FAMILIES.split():
        name, _, kind = family.partition("/")
        text.append(f"# TYPE sglang:{name} {_KINDS[kind[0]]}")
        if name.startswith("routing_key"):
            text += _bucketed(name, model)
        elif kind == "g":
            text.append(f"sglang:{name}{{{scheduler}}} {_number(gauges.get(name, 0.0))}")
        elif name in counters:
            text.append(f"sglang:{name}{{{tokenizer}}} {counters[name]!r}")
        elif name == "realtime_tokens_total" and decoded:
            mode = _labels(model, mode="decode", moe_ep_rank="0", pp_rank="0", tp_rank="0")
            text.append(f"sglang:{name}{{{mode}}} {decoded!r}")
    return "\n".join(text) + "\n"


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)


def _labels(model: str, **more: str) -> str:
    labels = sorted({"engine_type": "unified", "model_name": model, **more}.items())
    return ",".join(f'{name}="{value}"' for name, value in labels)


def _bucketed(name: str, model: str) -> Iterator[str]:
    for above, upto in itertools.pairwise(_BUCKETS):
        labels = _labels(model, gt=above, le=upto, moe_ep_rank="0", pp_rank="0", tp_rank="0")
        yield f"sglang:{name}{{{labels}}} 0.0"


def _process() -> Iterator[str]:
    yield "# TYPE process_start_time_seconds gauge"
    yield f"process_start_time_seconds {_STARTED_AT!r}"
    yield "# TYPE process_cpu_seconds_total counter"
    yield f"process_cpu_seconds_total {time.process_time()!r}"
    yield "# TYPE process_open_fds gauge"
    yield f"process_open_fds {float(sum(1 for _ in Path('/proc/self/fd').iterdir()))!r}"
