# SPDX-License-Identifier: Apache-2.0
"""Accepted values of the environment and of atp.Options, and the errors for other values."""

from datetime import timedelta
from pathlib import Path

import pytest

from atp.options import Options, misspelt
from atp.options import settle as settle_at
from atp.topology import Place, Topology

HALF_AN_HOUR = timedelta(minutes=30)
HERE = Place(rank=5, host="Node-17.example.org", address_towards=lambda switch: "10.0.1.17")

TWO_RACKS = """
[[switch]]
address = "10.0.1.1:4790"
hosts = ["node-1?", "10.0.7.0/24"]

[[switch]]
address = "10.0.2.1:4790"
ranks = ["6-9", 12]
"""


def settle(options, timeout, environment):
    return settle_at(options, timeout, HERE, environment)


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "topology.toml"
        path.write_text(text)
        return str(path)

    return write


def test_unset_options_have_the_defaults():
    settings = settle(Options(), HALF_AN_HOUR, {})
    assert settings.switch is None
    assert (settings.server, settings.dedicated_servers) == ("auto", ())
    assert (settings.scaling, settings.lanes) == ("dynamic", "auto")
    assert (settings.rack, settings.multicast) == ("", "off")
    assert settings.channels == 1
    assert settings.timeout_s == 1800


def test_variables_of_the_environment_set_the_options():
    environment = {
        "ATP_SWITCH": "[::1]:4791",
        "ATP_SERVER": "dedicated:a:1,b:2",
        "ATP_SCALING": "fixed",
        "ATP_LANES": "int16",
        "ATP_RACK": "row-7",
        "ATP_MULTICAST": "239.0.0.0/8",
        "ATP_CHANNELS": "4",
        "ATP_TIMEOUT": "2.5",
    }
    settings = settle(Options(), HALF_AN_HOUR, environment)
    assert settings.switch == "[::1]:4791"
    assert (settings.server, settings.dedicated_servers) == ("dedicated", ("a:1", "b:2"))
    assert (settings.scaling, settings.lanes) == ("fixed", "int16")
    assert (settings.rack, settings.multicast) == ("row-7", "239.0.0.0/8")
    assert settings.channels == 4
    assert settings.timeout_s == 2.5


def test_options_override_the_environment():
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
        ("ATP_MULTICAST", "yes", "'on'"),
        ("ATP_MULTICAST", "10.0.0.0/8", "'239.192.0.0/16'"),
        ("ATP_SERVER", "elsewhere", "'colocated'"),
        ("ATP_SERVER", "dedicated", "'dedicated:host:port"),
        ("ATP_SERVER", "dedicated:host", "'dedicated:host:port"),
        ("ATP_SCALING", "static", "'fixed' or 'dynamic'"),
        ("ATP_LANES", "16", "'int32' or 'int16' or 'auto'"),
        ("ATP_CHANNELS", "0", "from 1 to 64"),
        ("ATP_CHANNELS", "65", "from 1 to 64"),
        ("ATP_CHANNELS", "two", "from 1 to 64"),
        ("ATP_LINK_RATE", "fast", "Mbit or Gbit"),
        ("ATP_UPLINK_RATE", "0gbit", "Mbit or Gbit"),
        ("ATP_LISTEN", "host", "host:first-last"),
        ("ATP_LISTEN", "::1:4791", "host:first-last"),
        ("ATP_TIMEOUT", "0", "a number of seconds from 0.001 to 31536000"),
        ("ATP_TIMEOUT", "soon", "a number of seconds from 0.001 to 31536000"),
        ("ATP_TIMEOUT", "inf", "a number of seconds from 0.001 to 31536000"),
    ],
)
def test_error_for_a_wrong_variable_names_the_accepted_values(variable, value, accepted):
    with pytest.raises(ValueError) as raised:
        settle(Options(), HALF_AN_HOUR, {variable: value})
    assert f"{variable}={value!r}" in str(raised.value)
    assert accepted in str(raised.value)


@pytest.mark.parametrize("rate", ["25gbit", "25Gbit", "2.5Gbps", "400mbit/s", "100000000", "0"])
def test_rates_are_those_of_the_library(rate):
    assert settle(Options(link_rate=rate), HALF_AN_HOUR, {}).link_rate == rate


@pytest.mark.parametrize("address", ["10.0.0.1:0", "[::1]:4800", "host:4800-4899"])
def test_address_to_listen_at_may_have_several_ports(address):
    assert settle(Options(), HALF_AN_HOUR, {"ATP_LISTEN": address}).listen == address


def test_error_for_a_wrong_option_names_the_option():
    with pytest.raises(ValueError, match=r"atp\.Options\(channels=0\): use"):
        settle(Options(channels=0), HALF_AN_HOUR, {})


@pytest.mark.parametrize(
    ("rank", "host", "address", "switch"),
    [
        (0, "node-17", "10.0.9.9", "10.0.1.1:4790"),
        (0, "NODE-17.example.org", "10.0.9.9", "10.0.1.1:4790"),
        (0, "elsewhere", "10.0.7.200", "10.0.1.1:4790"),
        (6, "elsewhere", "10.0.9.9", "10.0.2.1:4790"),
        (9, "elsewhere", "10.0.9.9", "10.0.2.1:4790"),
        (12, "elsewhere", "10.0.9.9", "10.0.2.1:4790"),
    ],
)
def test_topology_gives_each_rank_its_switch(file, rank, host, address, switch):
    assert Topology.read(file(TWO_RACKS)).position_of(Place(rank, host, lambda _: address)).switch == switch


def test_file_of_a_plan_is_accepted_as_a_topology():
    path = Path(__file__).parents[2] / "examples" / "cluster.toml"
    topology = Topology.read(str(path))
    assert topology.position_of(Place(0, "node-17", lambda _: "10.9.9.9")).switch == "10.0.1.1:4790"
    assert topology.position_of(Place(0, "elsewhere", lambda _: "10.0.2.9")).switch == "10.0.2.1:4790"


RACKS_WITH_RATES = """
[[switch]]
name = "core"
aggregates = false

[[switch]]
name = "with"
parent = "core"
address = "10.0.1.1:4790"
ranks = ["0-1"]
host_rate = "25gbit"

[[switch]]
name = "without"
parent = "core"
aggregates = false
ranks = ["2-3"]
host_rate = "10gbit"
uplink_rate = "40gbit"
"""


def test_rank_of_a_rack_without_a_switch_has_its_uplink_and_rates(file):
    path = file(RACKS_WITH_RATES)
    with_switch = settle_at(Options(topology=path), HALF_AN_HOUR, Place(0, "h", lambda _: "10.0.9.9"), {})
    assert (with_switch.switch, with_switch.uplink, with_switch.link_rate) == ("10.0.1.1:4790", "with", "25gbit")
    without = settle_at(Options(topology=path), HALF_AN_HOUR, Place(3, "h", lambda _: "10.0.9.9"), {})
    assert (without.switch, without.uplink) == ("none", "without")
    assert (without.link_rate, without.uplink_rate) == ("10gbit", "40gbit")
    own_rate = Options(topology=path, link_rate="1gbit")
    assert settle_at(own_rate, HALF_AN_HOUR, Place(3, "h", lambda _: "10.0.9.9"), {}).link_rate == "1gbit"


def test_rack_that_aggregates_nothing_uses_the_switch_above(file):
    path = file(RACKS_WITH_RATES.replace("aggregates = false", 'address = "10.0.0.1:4790"', 1))
    settings = settle_at(Options(topology=path), HALF_AN_HOUR, Place(3, "h", lambda _: "10.0.9.9"), {})
    assert (settings.switch, settings.uplink) == ("10.0.0.1:4790", "without")


def test_rank_may_name_no_switch():
    assert settle(Options(), HALF_AN_HOUR, {"ATP_SWITCH": "none"}).switch == "none"


@pytest.mark.parametrize(
    ("rank", "host", "which"),
    [(10, "elsewhere", "no switch has"), (7, "node-11", "10.0.1.1:4790, 10.0.2.1:4790 all have")],
)
def test_error_names_a_rank_with_no_switch_or_with_two(file, rank, host, which):
    with pytest.raises(ValueError) as raised:
        Topology.read(file(TWO_RACKS)).position_of(Place(rank, host, lambda _: "10.0.9.9"))
    assert which in str(raised.value)
    assert f"rank {rank} on host '{host}'" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("switch = ", "invalid TOML"),
        ("", "use [[switch]]"),
        ("[switch]\naddress = 'a:1'", "use [[switch]]"),
        ("[[switch]]\naddress = 'a'\nranks = [0]", "'host:port'"),
        ("[[switch]]\naddress = 'a:1'", "'hosts' and 'ranks' are missing"),
        ("[[switch]]\naddress = 'a:1'\nhost = ['b']", "use 'address', 'hosts', 'ranks'"),
        ("[[switch]]\naddress = 'a:1'\nname = 'root'", "'hosts' and 'ranks' are missing"),
        ("[[switch]]\naddress = 'a:1'\nhosts = 'b'", "a list of names"),
        ("[[switch]]\naddress = 'a:1'\nranks = ['1-']", "a range such as"),
        ("[[switch]]\naddress = 'a:1'\nranks = ['7-4']", "a range such as"),
        ("[[switch]]\naddress = 'a:1'\nranks = [true]", "a range such as"),
    ],
)
def test_error_for_a_wrong_topology_names_the_accepted_values(file, text, complaint):
    path = file(text)
    with pytest.raises(ValueError) as raised:
        settle(Options(), HALF_AN_HOUR, {"ATP_TOPOLOGY": path})
    assert str(raised.value).startswith(f"ATP_TOPOLOGY={path!r}: {path}: ")
    assert complaint in str(raised.value)


def test_error_names_a_missing_topology_file():
    with pytest.raises(ValueError, match="ATP_TOPOLOGY='/nowhere.toml': /nowhere.toml: No such file"):
        settle(Options(), HALF_AN_HOUR, {"ATP_TOPOLOGY": "/nowhere.toml"})


def test_switch_and_topology_together_are_refused(file):
    path = file(TWO_RACKS)
    with pytest.raises(ValueError, match="set only one of them"):
        settle(Options(), HALF_AN_HOUR, {"ATP_SWITCH": "a:1", "ATP_TOPOLOGY": path})
    with pytest.raises(ValueError, match="set only one of them"):
        settle(Options(switch="a:1", topology=path), HALF_AN_HOUR, {})


def test_switch_of_the_program_overrides_a_topology_of_the_environment(file):
    environment = {"ATP_SWITCH": "b:2", "ATP_TOPOLOGY": file(TWO_RACKS)}
    assert settle(Options(switch="a:1"), HALF_AN_HOUR, environment).switch == "a:1"
    assert settle(Options(topology=file(TWO_RACKS)), HALF_AN_HOUR, environment).switch == "10.0.1.1:4790"


def test_misspelt_variables_are_named_with_the_setting_that_is_meant():
    environment = {"ATP_LANES": "int8", "ATP_LOG": "info", "ATP_TESTS": "x", "PATH": "/bin", "ATP_LANE_TYPE": "int8"}
    assert misspelt(environment) == {"ATP_LANE_TYPE": "ATP_LANES"}
    others = {"ATP_SWICH": "ATP_SWITCH", "ATP_HOSTLEVEL": "ATP_HOST_LEVEL", "ATP_CHANNEL": "ATP_CHANNELS"}
    others["ATP_LOG_LEVEL"] = "ATP_LOG"
    assert misspelt(dict.fromkeys(others, "")) == others
