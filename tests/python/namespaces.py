# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces as hosts, for tests that skip where they are not allowed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=20)


@pytest.fixture
def two_hosts() -> Iterator[dict[str, str]]:
    """The network device of each of two namespaces on one link, 10.193.77.1 and 10.193.77.2, by their names."""
    hosts = {f"atp-test-{os.getpid()}-{side}": f"atp{os.getpid() % 100_000}{side}" for side in "ab"}
    (first, end), (second, far_end) = hosts.items()
    try:
        for name in hosts:
            ip("netns", "add", name)
        ip("-n", first, "link", "add", end, "type", "veth", "peer", "name", far_end, "netns", second)
        for number, (name, device) in enumerate(hosts.items(), start=1):
            ip("-n", name, "address", "add", f"10.193.77.{number}/24", "dev", device)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", device, "up")
        yield hosts
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"network namespaces are not allowed here: {getattr(error, 'stderr', None) or error}")
    finally:
        for name in hosts:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=20, check=False)
