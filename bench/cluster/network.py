# SPDX-License-Identifier: Apache-2.0
"""Builds a topology of network namespaces, bridges and veth pairs with limited rates, and removes it."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Optional

import receivers
import topology as topologies

# Size of the token bucket: the largest burst of a link after a pause. The kernel gives a veth up to 64 KiB of TCP or
# UDP as one packet. With the headers of all its segments, this packet counts as 68.5 kB. A smaller bucket would cut
# each such packet into its segments, at ten times the processor time. Four ranks on links of 500 Mbit/s would then
# saturate two cores, and the benchmark would measure the cores. The bucket is therefore a little larger than the
# largest packet, and offloads stay on. The average rate is exact: only transfers that fit the bucket exceed the rate.
BURST_BYTES = 72 * 1024
# Of the class in which delayed frames wait: a frame of 1,500 bytes takes 47 ms, and a packet of few lanes 4 ms.
SLOW_BPS = 256_000
SLOW_HANDLE = "4154:"  # ATP_LINK_SLOW_CLASS is its class 2
FAST_BPS = 100_000_000_000
HOST_DEVICE = "eth0"
WIRE_DEVICE = "wire0"  # of a host whose HOST_DEVICE is a bridge
UPLINK_DEVICE = topologies.UPLINK_DEVICE
BRIDGE = "br0"
# The two ends of the link between a switch in P4 and its agent.
MODEL_DEVICE = "to-agent"
AGENT_DEVICE = "agent"


@dataclass(frozen=True)
class Links:
    """Rates of each direction; None: no limit. The link of the server's host has the rate of a host, unless `server_bps`
    says otherwise. `queue_bytes` limits the queue at each end of a link. Without `offloads`, no frame is longer than a wire carries, and switches merge frames that arrive.

    `faulty`: packets are cut into frames of wire size before they reach a link, and no node merges frames, so that a
    fault of the link affects single frames. Each host then has a bridge between its programs and its link, and the
    bridge cuts the packets. The device of the link would cut the packets only after the fault."""

    host_bps: Optional[int]
    uplink_bps: Optional[int]
    queue_bytes: int
    offloads: bool = True
    faulty: bool = False
    server_bps: Optional[int] = None


class Unavailable(Exception):
    """This host or user cannot create such a network. The benchmark is skipped and does not fail."""


class Broken(Exception):
    """A command failed while the network was built, read or removed."""


def build(topology, links):
    """Returns the network for a `with` block: a Network, or for a local topology a Loopback without links."""
    return Loopback(topology) if topology.is_local else Network(topology, links)


class Network:
    """A topology that exists while the `with` block runs, and a folder for the files of the run.

    All its namespaces and folders have names that begin with `atp-PID-BIRTH-` of this process. Before it is built, the
    namespaces and folders of killed runs are removed: those whose process no longer exists. Raises Unavailable if this
    host cannot create the network, and Broken if a command fails while the network is built.
    """

    def __init__(self, topology, links):
        self.topology = topology
        self._links = links
        self._prefix = _own_prefix()
        self.folder = None
        self._port_threads = []

    def __enter__(self):
        _require_privilege_and_tools(self._links)
        remove_leftovers()
        try:
            self._probe()
            self.folder = tempfile.mkdtemp(prefix=self._prefix)
            others = receivers.threads()
            self._build()
            self._port_threads = [
                pid
                for pid, device in receivers.threads().items()
                if pid not in others and not device.startswith(HOST_DEVICE)
            ]
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def entry(self, node):
        """Prefix of a command that runs at a node. `ip netns exec` replaces itself by the command, so the process id stays
        the same."""
        return ["ip", "netns", "exec", self._namespace(node)]

    @property
    def host_device(self):
        return HOST_DEVICE

    def traffic(self):
        """Packets that each end of a link sent since the network was built: {(from, to): (bytes, dropped packets)}."""
        sent = {}
        for below, above in self.topology.links():
            up_device, down_device = self._devices_of(below)
            sent[below.name, above.name] = self._sent(below, up_device)
            sent[above.name, below.name] = self._sent(above, down_device)
        return sent

    def end_of_link(self, below, direction):
        """The end that sends in `direction` (`up` or `down`) on the link above a node: (node, device, (from, to))."""
        [above] = [above for node, above in self.topology.links() if node == below]
        up_device, down_device = self._devices_of(below)
        if direction == "up":
            return below, up_device, (below.name, above.name)
        return above, down_device, (above.name, below.name)

    @contextlib.contextmanager
    def free_ports(self):
        """While the `with` block runs, no bridge has ports: programs at the switches take them, which need whole frames
        with checksums from the hosts. Each switch has a link to an agent on the same node."""
        hosts = [(host, self._devices_of(host)[0]) for host in self.topology.ends]
        try:
            for node, device in self._ports():
                self._ip(node, "link", "set", device, "nomaster")
            for host, device in hosts:
                _call(*self.entry(host), "ethtool", "-K", device, "tx", "off")
            for switch in self.topology.switches:
                self._ip(switch, "link", "add", AGENT_DEVICE, "type", "veth", "peer", "name", MODEL_DEVICE)
                self._set_up(switch, AGENT_DEVICE)
                self._set_up(switch, MODEL_DEVICE)
            yield
        finally:
            for switch in self.topology.switches:
                self._ip(switch, "link", "delete", AGENT_DEVICE)
            for host, device in hosts:
                _call(*self.entry(host), "ethtool", "-K", device, "tx", "on")
            for node, device in self._ports():
                self._ip(node, "link", "set", device, "master", BRIDGE)

    def _ports(self):
        """All ports of the bridges of the switches, as (switch, device)."""
        ports = [(above, self._devices_of(below)[1]) for below, above in self.topology.links()]
        return ports + [(switch, UPLINK_DEVICE) for switch in self.topology.switches if switch.parent]

    def ports_cpu_seconds(self):
        """Processor time for all packets received at the ports of the switches; None: it cannot be separated from the
        time of other work."""
        return None if self._links.offloads or self._links.faulty else receivers.cpu_seconds(self._port_threads)

    def add_slow_class(self, node, device):
        """Gives a device a class in which link_fault lets frames wait, behind the token bucket if it has one."""
        present = json.loads(_call("tc", "-n", self._namespace(node), "-j", "qdisc", "show", "dev", device))
        if any(qdisc["handle"] == SLOW_HANDLE for qdisc in present):
            return
        bucket = [qdisc["handle"] for qdisc in present if qdisc["kind"] == "tbf"]
        place = ["parent", f"{bucket[0]}1"] if bucket else ["root"]
        add_slow_class(["tc", "-n", self._namespace(node)], device, place, self._links.queue_bytes)

    def up_bytes(self, below):
        """Bytes that a node has sent to the switch above."""
        return self._sent(below, self._devices_of(below)[0])[0]

    def down_bytes(self, below):
        """Bytes that the switch above a node has sent to the node."""
        return self._sent(below.switch, self._devices_of(below)[1])[0]

    def _probe(self):
        """Creates one device of each kind, to detect a missing feature of the kernel before the network is built."""
        namespace = self._prefix + "probe"
        try:
            _call("ip", "netns", "add", namespace)
            _call("ip", "-n", namespace, "link", "add", BRIDGE, "type", "bridge")
            _call("ip", "-n", namespace, "link", "add", "left", "type", "veth", "peer", "name", "right")
            _call("ip", "-n", namespace, "link", "set", "left", "up")
            self._shape(namespace, "left", self._links.host_bps)
        except Broken as error:
            raise Unavailable(f"this machine cannot create the network: {error}") from error
        finally:
            _remove_namespace(namespace)

    def _build(self):
        for switch in self.topology.switches:
            self._add_namespace(switch)
            self._add_bridge(switch, BRIDGE)
        for host in self.topology.ends:
            self._add_namespace(host)
            if self._links.faulty:
                self._add_bridge(host, HOST_DEVICE, "mcast_snooping", "0")
        for below, above in self.topology.links():
            self._connect(below, above)

    def _add_bridge(self, node, device, *settings):
        self._ip(node, "link", "add", device, "type", "bridge", "forward_delay", "0", *settings)
        if self._links.faulty:
            _cut_packets(self._namespace(node), device)
        self._set_up(node, device, node.address)

    def _devices_of(self, below):
        """The names of the two devices of the link from a node up to its switch: at the node, and at the switch."""
        of_host = WIRE_DEVICE if self._links.faulty else HOST_DEVICE
        return (of_host if isinstance(below, topologies.Host) else UPLINK_DEVICE), topologies.port_to(below)

    def _connect(self, below, above):
        up_device, down_device = self._devices_of(below)
        self._ip(
            below,
            "link",
            "add",
            up_device,
            "type",
            "veth",
            "peer",
            "name",
            down_device,
            "netns",
            self._namespace(above),
        )
        is_host = isinstance(below, topologies.Host)
        self._set_up(below, up_device, below.address if up_device == HOST_DEVICE else None)
        if up_device != HOST_DEVICE:
            self._ip(below, "link", "set", up_device, "master", HOST_DEVICE if is_host else BRIDGE)
        self._set_up(above, down_device)
        self._ip(above, "link", "set", down_device, "master", BRIDGE)
        rate_bps = self._links.host_bps if is_host else self._links.uplink_bps
        if below == self.topology.server:
            rate_bps = self._links.server_bps or rate_bps
        self._shape(self._namespace(below), up_device, rate_bps)
        self._shape(self._namespace(above), down_device, rate_bps)

    def _shape(self, namespace, device, rate_bps):
        if rate_bps is not None:
            _limit(namespace, device, rate_bps, self._links.queue_bytes)
        if not self._links.offloads and not self._links.faulty:
            _send_single_frames(namespace, device)

    def _namespace(self, node):
        return self._prefix + node.name

    def _add_namespace(self, node):
        _call("ip", "netns", "add", self._namespace(node))
        # Neighbour and router discovery of IPv6 would add traffic to the links.
        _call(
            "ip",
            "netns",
            "exec",
            self._namespace(node),
            "sh",
            "-c",
            "for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e $file ] || echo 1 >$file; done",
        )
        self._set_up(node, "lo")

    def _set_up(self, node, device, address=None):
        if address:
            self._ip(node, "address", "add", f"{address}/{topologies.PREFIX_BITS}", "dev", device)
        self._ip(node, "link", "set", device, "up")

    def _ip(self, node, *arguments):
        return _call("ip", "-n", self._namespace(node), *arguments)

    def _sent(self, node, device):
        shown = json.loads(_call("tc", "-n", self._namespace(node), "-s", "-j", "qdisc", "show", "dev", device, "root"))
        return shown[0]["bytes"], shown[0]["drops"]

    def _remove(self):
        with _undisturbed():
            for namespace in _namespaces():
                if namespace.startswith(self._prefix):
                    _remove_namespace(namespace)
            if self.folder:
                shutil.rmtree(self.folder, ignore_errors=True)


class Loopback:
    """A local topology: all nodes are processes of this host, and only a folder is created."""

    host_device = "lo"

    def __init__(self, topology):
        self.topology = topology
        self.folder = None

    def __enter__(self):
        if shutil.which("setpriv") is None:
            raise Unavailable("`setpriv` is missing: install util-linux")
        _remove_leftover_folders()
        self.folder = tempfile.mkdtemp(prefix=_own_prefix())
        return self

    def __exit__(self, *_):
        with _undisturbed():
            shutil.rmtree(self.folder, ignore_errors=True)

    def entry(self, _node):
        """Prefix of a command. The kernel kills the command when this process ends, even if this process is killed."""
        return ["setpriv", "--pdeathsig", "KILL"]

    def traffic(self):
        return {}

    def ports_cpu_seconds(self):
        return None


def remove_leftovers():
    """Removes the namespaces, processes and folders of runs that were killed before they removed them."""
    for namespace in _namespaces():
        if _is_leftover(namespace):
            _remove_namespace(namespace)
    _remove_leftover_folders()


def _remove_leftover_folders():
    for entry in os.scandir(tempfile.gettempdir()):
        if entry.is_dir(follow_symlinks=False) and _is_leftover(entry.name):
            shutil.rmtree(entry.path, ignore_errors=True)


def _own_prefix():
    return f"atp-{os.getpid()}-{_birth_of(os.getpid())}-"


def _is_leftover(name):
    owner = re.match(r"atp-(\d+)-(\d+)-", name)
    return owner is not None and _birth_of(owner[1]) != owner[2]


def _birth_of(pid):
    """Start time of a process in the kernel's unit; '' if no process has this pid. Pid and start time together identify
    a process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except FileNotFoundError:
        return ""


def _require_privilege_and_tools(links):
    if os.geteuid() != 0:
        raise Unavailable("network namespaces need root: run as root, or use --topology local:N")
    require_tools("iproute2", "ip", "tc")
    if not links.offloads or links.faulty:
        require_tools("ethtool", "ethtool")


def require_tools(package, *tools):
    for tool in tools:
        if shutil.which(tool) is None:
            raise Unavailable(f"`{tool}` is missing: install {package}")


def _namespaces():
    return [line.split()[0] for line in _call("ip", "netns", "list").splitlines()]


def _remove_namespace(namespace):
    """Removes a namespace and its processes. Its devices and their peers are removed with it."""
    if namespace not in _namespaces():
        return
    for pid in _call("ip", "netns", "pids", namespace).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass  # the process has ended meanwhile
    _call("ip", "netns", "delete", namespace)


def _limit(namespace, device, rate_bps, queue_bytes):
    """Limits outgoing packets with a token bucket (tbf). netem could also lose packets on purpose, but not every kernel
    has it."""
    _call(
        "tc",
        "-n",
        namespace,
        "qdisc",
        "add",
        "dev",
        device,
        "root",
        "tbf",
        "rate",
        f"{rate_bps}bit",
        "burst",
        str(BURST_BYTES),
        "limit",
        str(queue_bytes),
    )


def add_slow_class(tc, device, place, queue_bytes):
    """Adds the classes of fast and slow frames at a place of a device. `tc` is the command with its namespace."""
    _call(*tc, "qdisc", "add", "dev", device, *place, "handle", SLOW_HANDLE, "htb", "default", "1")
    for number, rate_bps in ((1, FAST_BPS), (2, SLOW_BPS)):
        own = f"{SLOW_HANDLE}{number}"
        limits = ("rate", f"{rate_bps}bit", "burst", "16b", "cburst", "16b", "quantum", "1514")
        _call(*tc, "class", "add", "dev", device, "parent", SLOW_HANDLE, "classid", own, "htb", *limits)
        _call(*tc, "qdisc", "add", "dev", device, "parent", own, "bfifo", "limit", str(queue_bytes))


def _send_single_frames(namespace, device):
    """Segments outgoing packets to wire size, as a network card does. Arriving packets are merged if possible. A kernel
    thread receives them, so that their processor time is known. The kernel would charge the time of an interrupt to the
    interrupted program."""
    flags = ("tso", "off", "tx-udp-segmentation", "off", "gro", "on")
    _call("ip", "netns", "exec", namespace, "ethtool", "-K", device, *flags)
    threaded = f"/sys/class/net/{device}/threaded"
    _call("ip", "netns", "exec", namespace, "sh", "-c", f"echo 1 >{threaded}")


def _cut_packets(namespace, device):
    """Makes a bridge cut packets into frames of wire size. This concerns the packets of programs of its host."""
    _call("ip", "netns", "exec", namespace, "ethtool", "-K", device, "tso", "off", "tx-udp-segmentation", "off")


def _call(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(f"{shlex.join(command)}: {done.stderr.strip() or f'status {done.returncode}'}")
    return done.stdout


class _undisturbed:
    """While the `with` block runs, blocks the signals that would end this process. They arrive after the block."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __enter__(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, self.SIGNALS)

    def __exit__(self, *_):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self.SIGNALS)
