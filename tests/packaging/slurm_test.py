#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of one node runs share/slurm/train.sbatch with four tasks, which find their switch by the prolog.

An empty system gets Slurm of the distribution and the package `atp`, and then runs both in a network of its own, over
the loopback. The names of Slurm's topology give the tasks their switch; the test reads in its counters
that it added. All processes end with the space of process numbers in which they run.

usage: slurm_test.py FOLDER_WITH_PACKAGES FOLDER_OF_BACKEND
Exit status: 0 all works, 1 not, 77 this machine cannot make such systems.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from empty_systems import HOME, NOTHING_STARTS, EmptySystems, status_of

BACKEND = "/srv/backend"
LIMIT_S = 900
INSTALL = f"""
{NOTHING_STARTS}
apt-get update -qq
apt-get install --yes -qq --no-install-recommends slurm-wlm munge python3 /packages/atp_*.deb >/dev/null
"""
# More tasks than cores: config_overrides makes Slurm believe the number of this file.
CONFIGURE = """
cat >/etc/slurm/slurm.conf <<END
ClusterName=atp
SlurmctldHost=node1(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmdParameters=config_overrides
TopologyPlugin=topology/tree
TaskProlog=/usr/share/atp/slurm/task-prolog
NodeName=node1 NodeAddr=127.0.0.1 CPUs=4
PartitionName=train Nodes=node1 Default=YES MaxTime=10
END
echo 'CgroupPlugin=cgroup/v1' >/etc/slurm/cgroup.conf # unlike autodetect, needs no mount, and nothing here uses it
echo 'SwitchName=leaf1 Nodes=node1' >/etc/slurm/topology.conf
echo 'leaf1 127.0.0.1:4790' >/etc/atp/slurm-switches
mkdir -p /var/spool/slurmctld /var/spool/slurmd
echo '127.0.0.1 localhost node1' >/etc/hosts
"""
START = """
install --directory --owner munge --group munge --mode 755 /run/munge
dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 status=none
chown munge: /etc/munge/munge.key && chmod 400 /etc/munge/munge.key
runuser --user munge -- /usr/sbin/munged
slurmctld
slurmd || { cat /var/log/slurmd.log; exit 1; }
atp switch --listen 127.0.0.1:4790 --quiet &
is_idle() { [ "$(timeout 5 sinfo --noheader --format=%T)" = idle ]; }
for second in $(seq 30); do is_idle && break || sleep 1; done
is_idle || { sinfo; tail -n 40 /var/log/slurmctld.log /var/log/slurmd.log; exit 1; }
"""
# Ranks of one host would sum in its memory and ask no switch.
TRAIN = """
export OMP_NUM_THREADS=1 ATP_HOST_LEVEL=off PYTHONDONTWRITEBYTECODE=1
status=0
timeout 300 sbatch --wait --output=/tmp/train.out /usr/share/atp/slurm/train.sbatch {home}/tests/packaging/slurm_train.py ||
    status=$?
cat /tmp/train.out
[ $status = 0 ] || {{ tail -n 40 /var/log/slurmctld.log /var/log/slurmd.log; exit 1; }}
grep --quiet '^4 ranks trained 20 steps through 127.0.0.1:4790: equal weights' /tmp/train.out
atp stats 127.0.0.1:4790
atp stats 127.0.0.1:4790 | grep --quiet 'completed  *[1-9]'
"""


def python_there(also: dict[str, str]) -> str:
    """Settings by which a job there runs the Python of this test, with its packages and the backend."""
    home, base = os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)
    for folder in (home, base):
        if not folder.startswith("/usr"):  # a package of the distribution, there too
            also[folder] = folder
    return f"export PYTHON={home}/bin/python PYTHONPATH={BACKEND}:{HOME}/tests/python"


def run(systems: EmptySystems) -> None:
    packages, backend = (Path(argument).resolve() for argument in sys.argv[1:])
    also = {str(packages): "/packages"}
    root = systems.copy_with_sources("cluster")
    shutil.copytree(backend, root / BACKEND.lstrip("/"))  # in place of its links
    python = python_there(also)
    systems.run(root, INSTALL, also=also)
    lines = "\n".join((CONFIGURE, START, python, TRAIN.format(home=HOME)))
    systems.run(root, lines, also=also, apart=True, limit_s=LIMIT_S)


if __name__ == "__main__":
    sys.exit(status_of(run, "slurm"))
