# SPDX-License-Identifier: Apache-2.0
"""ATP_METRICS: each process of a job serves the counters of its groups."""

from __future__ import annotations

import logging
import socket
import urllib.error
import urllib.request

import pytest
import torch
import torch.distributed as dist
from log_lines import Lines
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from ranks import init_group, run_ranks, values_of

from atp import _metrics

RANKS = 2
OPEN = {"Accept": "application/openmetrics-text; version=1.0.0"}


def started(rank, size, store_file):
    lines = Lines()
    logging.getLogger("atp").addHandler(lines)
    init_group(rank, size, store_file)
    return lines


def get(address, path="/metrics", **headers):
    request = urllib.request.Request(f"http://{address}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def scraped(rank, size, store_file):
    """The served address, what a scraper gets while two groups run, and after the end of the job."""
    lines = started(rank, size, store_file)
    dist.new_group(backend="atp")
    dist.all_reduce(torch.ones(1000))
    dist.all_reduce(torch.ones(1000))
    (served,) = lines.with_begin("INFO metrics served address=")
    address = served.rpartition("=")[2]
    kind, text = get(address, **OPEN)
    plain, _ = get(address)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(address, "/")
    dist.destroy_process_group()
    return address, kind, plain, text, get(address)[1]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def test_each_process_serves_its_groups_at_a_port_of_its_own():
    environment = {"ATP_METRICS": f"127.0.0.1:{free_port()}", "ATP_LOG": "info", "ATP_JOB_NAME": "resnet-50"}
    found = values_of(run_ranks(scraped, RANKS, environment, in_group=False))
    assert len({address for address, *_ in found}) == RANKS
    for rank, (_, kind, plain, text, after) in enumerate(found):
        assert kind.startswith("application/openmetrics-text; version=1.0.0")
        assert plain.startswith("text/plain; version=0.0.4")
        families = {family.name: family for family in text_string_to_metric_families(text)}
        infos = [sample.labels for sample in families["atp_rank"].samples]
        assert {(labels["name"], labels["rank"], labels["world"]) for labels in infos} == {
            ("resnet-50", str(rank), str(RANKS))
        }
        assert len({labels["job"] for labels in infos}) == len(infos) == 2
        operations = {sample.labels["job"]: sample.value for sample in families["atp_rank_operations"].samples}
        assert sorted(operations.values())[-1] >= 2
        assert [sample.value for sample in families["atp_rank_failed"].samples] == [0, 0]
        assert after == ""


def not_served(rank, size, store_file):
    lines = started(rank, size, store_file)
    total = torch.ones(1)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return total.item(), lines.with_begin("WARNING metrics unavailable")


@pytest.mark.parametrize("address", ["192.0.2.1:9400", "nowhere", "127.0.0.1:port"])
def test_job_goes_on_where_nothing_can_be_served(address):
    for total, lines in values_of(run_ranks(not_served, RANKS, {"ATP_METRICS": address}, in_group=False)):
        assert total == RANKS
        assert len(lines) == 1
        assert address in lines[0]


def test_next_ports_are_tried():
    taken = _metrics._bind("127.0.0.1:0")
    port = taken.server_address[1]
    other = _metrics._bind(f"127.0.0.1:{port}")
    assert port < other.server_address[1] < port + _metrics.MOST_PORTS
    taken.server_close()
    other.server_close()
