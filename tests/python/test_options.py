# SPDX-License-Identifier: Apache-2.0
"""What the environment and atp.Options may say, and what is answered to anything else."""

from datetime import timedelta

import pytest

from atp.options import Options, settle

HALF_AN_HOUR = timedelta(minutes=30)


def test_nothing_said_means_the_defaults():
    settings = settle(Options(), HALF_AN_HOUR, {})
    assert settings.switch is None
    assert (settings.server, settings.dedicated_servers) == ("switch", ())
    assert settings.channels == 1
    assert settings.timeout_s == 1800


def test_the_environment_is_read():
    environment = {
        "ATP_SWITCH": "[::1]:4791",
        "ATP_SERVER": "dedicated:a:1,b:2",
        "ATP_CHANNELS": "4",
        "ATP_TIMEOUT": "2.5",
    }
    settings = settle(Options(), HALF_AN_HOUR, environment)
    assert settings.switch == "[::1]:4791"
    assert (settings.server, settings.dedicated_servers) == ("dedicated", ("a:1", "b:2"))
    assert settings.channels == 4
    assert settings.timeout_s == 2.5


def test_options_come_before_the_environment():
    options = Options(switch="host:1", server="colocated", channels=2, timeout=timedelta(seconds=3))
    settings = settle(options, HALF_AN_HOUR, {"ATP_SWITCH": "other:2", "ATP_CHANNELS": "nonsense"})
    assert (settings.switch, settings.server, settings.channels, settings.timeout_s) == ("host:1", "colocated", 2, 3)


@pytest.mark.parametrize(
    ("variable", "value", "accepted"),
    [
        ("ATP_SWITCH", "host", "'host:port'"),
        ("ATP_SWITCH", "host:0", "'host:port'"),
        ("ATP_SWITCH", "host:65536", "'host:port'"),
        ("ATP_SWITCH", "::1:4791", "'[host]:port'"),
        ("ATP_SERVER", "elsewhere", "'colocated'"),
        ("ATP_SERVER", "dedicated", "'dedicated:host:port"),
        ("ATP_SERVER", "dedicated:host", "'dedicated:host:port"),
        ("ATP_CHANNELS", "0", "from 1 to 64"),
        ("ATP_CHANNELS", "65", "from 1 to 64"),
        ("ATP_CHANNELS", "two", "from 1 to 64"),
        ("ATP_TIMEOUT", "0", "seconds above zero"),
        ("ATP_TIMEOUT", "soon", "seconds above zero"),
        ("ATP_TIMEOUT", "inf", "seconds above zero"),
    ],
)
def test_wrong_values_are_named_with_what_is_accepted(variable, value, accepted):
    with pytest.raises(ValueError) as raised:
        settle(Options(), HALF_AN_HOUR, {variable: value})
    assert f"{variable}={value!r}" in str(raised.value)
    assert accepted in str(raised.value)


def test_wrong_options_are_named_too():
    with pytest.raises(ValueError, match=r"atp\.Options\(channels=0\): accepted is"):
        settle(Options(channels=0), HALF_AN_HOUR, {})
