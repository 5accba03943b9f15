"""What engines and routers answer: SGLang's own output, several ranks, and hostile text."""

from __future__ import annotations

import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.miles.sglang_metrics import base_url, parse_metrics, parse_weight_version, parse_workers
from tui.model.engine import EngineMetrics


def test_what_sglang_exports(data: pathlib.Path) -> None:
    text = (data / "captures" / "sglang-metrics.txt").read_text()
    assert parse_metrics(text) == EngineMetrics(
        running_requests=64.0,
        queued_requests=3.0,
        token_usage_ratio=0.41,
        throughput_tokens_per_s=3120.55,
        cache_hit_ratio=0.62,
    )


def test_the_names_a_router_gives(data: pathlib.Path) -> None:
    text = (data / "captures" / "sglang-metrics.txt").read_text()
    assert parse_metrics(text.replace("sglang:", "sglang_")) == parse_metrics(text)


def test_replicas_add_up_and_their_ranks_do_not() -> None:
    lines = [
        f'sglang:num_running_reqs{{dp_rank="{dp}",tp_rank="{tp}",pp_rank="0"}} {running}'
        for dp, tp, running in ((0, 0, 4.0), (0, 1, 4.0), (1, 0, 6.0), (1, 1, 5.0))
    ]
    lines += [
        'sglang:token_usage{dp_rank="0",tp_rank="0"} 0.2',
        'sglang:token_usage{dp_rank="0",tp_rank="1"} 0.2',
        'sglang:token_usage{dp_rank="1",tp_rank="0"} 0.6',
        'sglang:gen_throughput{dp_rank="0",moe_ep_rank="0"} 100',
        'sglang:gen_throughput{dp_rank="0",moe_ep_rank="1"} 100',
        'sglang:gen_throughput{dp_rank="1",moe_ep_rank="0"} 50',
        'sglang:generation_tokens_total{model_name="a"} 7',
        'sglang:generation_tokens_total{model_name="b"} 8',
    ]
    metrics = parse_metrics("\n".join(lines))
    assert metrics is not None
    assert metrics.running_requests == 10.0
    assert metrics.token_usage_ratio == pytest.approx(0.4)
    assert metrics.throughput_tokens_per_s == 150.0
    assert metrics.generation_tokens_total == 15.0


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "x", "1e300"])
def test_a_value_that_is_no_measurement_is_left_out(value: str) -> None:
    metrics = parse_metrics(
        f'sglang:token_usage{{dp_rank="0"}} {value}\nsglang:token_usage{{dp_rank="1"}} 0.5\n'
        f"sglang:num_running_reqs {value}\n"
    )
    assert metrics == EngineMetrics(token_usage_ratio=0.5)


def test_label_values_may_hold_anything() -> None:
    text = 'sglang:num_queue_reqs{model_name="a \\"} 9\\" b} 1",tp_rank="0"} 3.0 1795956200\n'
    assert parse_metrics(text) == EngineMetrics(queued_requests=3.0)


def test_names_that_only_begin_alike_do_not_count() -> None:
    text = "sglang:num_running_reqs_offline 4\nxsglang:num_queue_reqs 4\n# sglang:token_usage 1\n"
    assert parse_metrics(text) is None


@pytest.mark.parametrize("text", ["", "<html>not found</html>", "# TYPE sglang:token_usage gauge"])
def test_text_without_metrics_is_told_from_an_idle_engine(text: str) -> None:
    assert parse_metrics(text) is None


@given(st.text() | st.text('sglang:token_usage{}=",\\\n 01.eN', max_size=300))
def test_any_text_is_read_without_complaint(text: str) -> None:
    parse_metrics(text)
    parse_metrics(f"sglang:token_usage{{{text}}} {text}")
    parse_workers(text)
    parse_weight_version(text)
    base_url(text)


@pytest.mark.parametrize(
    "piece",
    ["sglang:token_usage{", "sglang:token_usage 1\n", 'sglang:token_usage{a="', "[", '{"workers":'],
)
def test_huge_text_is_bounded(piece: str) -> None:
    huge = piece * (4_000_000 // len(piece))
    metrics = parse_metrics(huge)
    assert metrics is None or metrics.token_usage_ratio == 1.0
    assert parse_workers(huge) is None


def test_workers_of_sglangs_router(data: pathlib.Path) -> None:
    text = (data / "captures" / "router-workers.json").read_text()
    assert parse_workers(text) == ("http://127.0.0.1:15001", "http://127.0.0.1:15002")


def test_workers_of_the_older_list() -> None:
    text = json.dumps({"urls": ["http://10.0.0.5:15000/", "http://10.0.0.5:15000@1", "junk:x"]})
    assert parse_workers(text) == ("http://10.0.0.5:15000",)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"workers": 3}', '{"urls": null}', "nonsense"])
def test_no_list_is_told_from_an_empty_one(text: str) -> None:
    assert parse_workers(text) is None
    assert parse_workers('{"urls": []}') == ()


def test_odd_members_are_left_out() -> None:
    assert parse_workers('{"workers": [null, 3, {}, {"url": 5}, {"url": "http://h:1"}]}') == (
        "http://h:1",
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('{"weight_version": "12"}', "12"),
        ('{"weight_version": 12}', "12"),
        ('{"weight_version": null}', None),
        ("{}", None),
        ("no json", None),
    ],
)
def test_weight_version(text: str, version: str | None) -> None:
    assert parse_weight_version(text) == version


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://10.0.0.5:15000", "http://10.0.0.5:15000"),
        (" 10.0.0.5:15000/ ", "http://10.0.0.5:15000"),
        ("http://10.0.0.5:15000@3", "http://10.0.0.5:15000"),
        ("http://10.0.0.5:15000/metrics?x=1", "http://10.0.0.5:15000"),
        ("http://user:word@host:1", "http://host:1"),
        ("[::1]:3000", "http://[::1]:3000"),
        ("https://host", "https://host"),
        ("localhost", "http://localhost"),
        ("host:99999", ""),
        ("ftp://host:1", ""),
        ("a b:1", ""),
        ("", ""),
    ],
)
def test_addresses_as_people_write_them(text: str, url: str) -> None:
    assert base_url(text) == url
