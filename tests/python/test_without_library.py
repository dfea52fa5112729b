# SPDX-License-Identifier: Apache-2.0
"""A choice of the tests, and some of its own, without the library for the installed PyTorch: ATP_TORCH_LIBRARY=off."""

from __future__ import annotations

import gc
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, values_of
from test_backend import (  # noqa: F401
    test_averages_of_integers_are_truncated_toward_zero,
    test_callback_may_destroy_the_group,
    test_callback_may_wait_for_futures_of_operations_that_it_starts,
    test_ddp_learns_with_equal_bits_on_all_ranks,
    test_operation_completes_after_a_wait_times_out,
    test_works_end_without_the_wait_that_was_announced,
)
from test_failure import (  # noqa: F401
    test_ctrl_c_ends_a_wait,
    test_timeout_names_the_missing_ranks_once,
)
from test_fold import (  # noqa: F401
    test_every_operation_and_type_has_the_bits_of_a_fold_and_of_gloo_on_every_path,
    test_fsdp2_divides_gradients_by_its_factor,
    test_premul_sum_multiplies_floats_of_any_size,
)
from test_sharded import (  # noqa: F401
    test_an_all_gather_copies_every_type,
    test_fsdp2_trains_without_gloo,
    test_functional_and_coalesced_forms_use_the_network,
)
from test_training import test_compiled_ddp_learns  # noqa: F401

import atp
from atp._backends import has_library

if has_library():
    pytest.skip("atp has the library: set ATP_TORCH_LIBRARY=off", allow_module_level=True)


def lose_a_rank(rank, size):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(torch.ones(1000))
    except atp.Error as error:
        return (
            error.reason,
            error.ranks,
            error.address,
            error.operation,
            atp.error_of(dist.group.WORLD) == error.failure,
        )
    return "no error"


def test_an_error_has_the_parts_of_its_failure():
    outcomes = run_ranks(lose_a_rank, 3, {"ATP_HOST_LEVEL": "on"})
    assert [outcomes[rank].value for rank in (0, 2)] == [("closed", [1], None, "all_reduce", True)] * 2


def ask_for_what_is_missing(rank, size):
    texts = []
    try:
        atp.flight_records()
    except RuntimeError as error:
        texts.append(str(error))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    model.register_comm_hook(atp.ErrorFeedback(), atp.error_feedback_hook)
    try:
        model(torch.ones(3, 4)).sum().backward()
    except Exception as error:
        texts.append(str(error))
    return texts


def test_missing_features_say_why():
    for recorder, hook in values_of(run_ranks(ask_for_what_is_missing, 2)):
        assert "no Flight Recorder: the package has no libatp_torch_" in recorder
        assert "error_feedback_hook: the package has no libatp_torch_" in hook


def sum_after_the_end(rank, size):
    group = dist.group.WORLD
    group.abort()
    try:
        dist.all_reduce(torch.ones(1))
    except dist.DistBackendError as error:
        return str(error), atp.error_of(group).reason
    return "no error"


def test_an_aborted_group_refuses_operations():
    assert values_of(run_ranks(sum_after_the_end, 2)) == [("atp: this process group was shut down", "closed")] * 2


def wait_when_only_cpp_holds_the_works(rank, size):
    import torch.distributed._functional_collectives as functional

    from atp._works import NetworkWork

    sums = [functional.all_reduce(torch.full((4,), float(rank + at)), "sum", list(range(size))) for at in range(20)]
    time.sleep(0.3)  # the operations end, and with them the group's references
    totals = [functional.wait_tensor(each)[0].item() for each in sums]
    dist.all_reduce(torch.ones(1))  # the end of a work releases those that C++ no longer needs
    gc.collect()
    return totals, sum(isinstance(each, NetworkWork) for each in gc.get_objects())


def test_works_live_as_long_as_cpp_needs_them_and_no_longer():
    for totals, works in values_of(run_ranks(wait_when_only_cpp_holds_the_works, 2)):
        assert totals == [2.0 * at + 1 for at in range(20)]
        assert works < 10
