#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the units of the packages under systemd, which starts as the first process of an empty system.

A job of two ranks sums in their own switch while the service is reloaded, restarted and killed. The other lines show
that the watchdog restarts a switch that hangs, that wrong settings end it for good, that a drained one stays away, that
a packet at the socket starts it, and that the kernel switch and the exporter serve.

usage: systemd_test.py FOLDER_OF_PACKAGES
Exit status: 0 all works, 1 not, 77 this machine cannot do that. Needs root and 2 minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from empty_systems import NOTHING_STARTS, EmptySystems, status_of

LIMIT_S = 240
INSTALL = f"""
{NOTHING_STARTS}
apt-get update -qq
apt-get install --yes -qq --no-install-recommends systemd-sysv iproute2 /packages/atp_*.deb /packages/libatp0_*.deb >/dev/null
touch /etc/machine-id
"""
# The watchdog's times are short here, so that nobody waits for them. `systemctl status` fails for a unit that does not
# run, and the journal is wanted then too.
LINES = r"""
trap 'echo "failed: $BASH_COMMAND"; systemctl --no-pager status "atp-*" || true; journalctl --no-pager --lines=60' ERR
set -E
property() { systemctl show --value --property "$2" "$1"; }
fails() { ! "$@" >/dev/null || { echo "does not fail: $*"; return 1; }; }
await() { for tenth in $(seq 100); do ! "$@" || return 0; sleep 0.1; done; echo "waited for: $*"; return 1; } 2>/dev/null
has_restarted() { [ "$(property atp-switch NRestarts)" -gt "$1" ]; }
answers() { atp stats "$1" --timeout 1s >/dev/null 2>&1; }
runs_xdp() { ip link show node | grep 'prog/xdp'; }
is_gone() { [ "$(property "$1" ActiveState)" != active ]; }

mkdir -p /etc/systemd/system/atp-switch.service.d
printf '[Service]\nWatchdogSec=2\nTimeoutAbortSec=1\n' >/etc/systemd/system/atp-switch.service.d/test.conf
systemctl daemon-reload

: == starts, as the user atp and confined
systemctl enable --now atp-switch.service
atp stats 127.0.0.1:4790
for task in /proc/"$(property atp-switch MainPID)"/task/*; do
    [ "$(stat --format %U "$task")" = atp ]
    grep --quiet '^CapEff:\s*0000000000000000$' "$task/status"
    grep --quiet '^Seccomp:\s*2$' "$task/status"
done
[ "$(stat --format %U:%a /run/atp/control)" = atp:600 ]
journalctl --unit atp-switch --no-pager | grep 'switch started'

: == reload, restart and a kill under a running job
for rank in 0 1; do
    atp bench --rank $rank --world 2 --rendezvous 127.0.0.1:4801 --host-name host$rank --switch 127.0.0.1:4790 \
        --server colocated --bytes 64kB --rounds 20000 >/tmp/rank$rank 2>&1 &
    ranks[$rank]=$!
done
completed() { atp stats 127.0.0.1:4790 --json | grep --quiet '"completed": *[1-9]'; }
await completed
pid=$(property atp-switch MainPID)
systemctl reload atp-switch
[ "$(property atp-switch MainPID)" = "$pid" ]
systemctl restart atp-switch
[ "$(property atp-switch MainPID)" != "$pid" ]
await completed
kill -KILL "$(property atp-switch MainPID)"
await has_restarted 0
await completed
kill -0 "${ranks[@]}"
wait "${ranks[0]}" && wait "${ranks[1]}" || { cat /tmp/rank*; false; }
tail -n 3 /tmp/rank0

: == the watchdog ends a switch that hangs
restarts=$(property atp-switch NRestarts)
kill -STOP "$(property atp-switch MainPID)"
await has_restarted "$restarts"
await answers 127.0.0.1:4790
journalctl --unit atp-switch --no-pager | grep 'Watchdog timeout'

: == a drained switch stays away
atp drain /run/atp/control
await is_gone atp-switch
[ "$(property atp-switch Result)" = success ]
sleep 0.5
fails answers 127.0.0.1:4790

: == wrong settings end it for good, and say why
echo 'memroy = "64MB"' >/etc/atp/switch.toml
fails systemctl start atp-switch
[ "$(property atp-switch ExecMainStatus)" = 2 ]
sleep 0.5
[ "$(property atp-switch ActiveState)" = failed ]
journalctl --unit atp-switch --no-pager | grep "did you mean 'memory'"
: >/etc/atp/switch.toml

: == a packet at the socket starts it
systemctl reset-failed atp-switch
systemctl start atp-switch.socket
[ "$(property atp-switch ActiveState)" = inactive ]
atp stats 127.0.0.1:4790 | head -n 1
[ "$(property atp-switch ActiveState)" = active ]

: == the exporter
systemctl start atp-metrics
get() { exec 3<>/dev/tcp/127.0.0.1/9790 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3; }
serves() { get 2>/dev/null | grep --quiet '^atp_switch_up{.*} 1$'; }
await serves
systemctl stop atp-metrics

: == the kernel switch
printf 'listen = "10.77.0.1:4790"\nxdp = ["node"]\n' >/etc/atp/kernel-switch.toml
systemctl stop atp-switch.socket atp-switch.service
systemctl start atp-kernel-switch
atp stats 10.77.0.1:4790
runs_xdp
systemctl restart atp-kernel-switch
systemctl stop atp-kernel-switch
fails runs_xdp
[ "$(property atp-kernel-switch Result)" = success ]
: == all works
"""


def run(systems: EmptySystems) -> None:
    also = {str(Path(sys.argv[1]).resolve()): "/packages"}
    root = systems.copy("host")
    systems.run(root, INSTALL, also=also)
    systems.boot(root, LINES, also, LIMIT_S)


if __name__ == "__main__":
    sys.exit(status_of(run, "systemd"))
