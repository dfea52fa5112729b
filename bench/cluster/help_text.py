# SPDX-License-Identifier: Apache-2.0
"""What `bench/cluster/run --help` prints."""

import re

DESCRIPTION = """\
Measure all-reduce, or the training of a model, over links of limited rates. One run compares ATP with Gloo. Every host
is a network namespace, and every switch is a namespace with a bridge. Links are veth pairs; a token bucket limits each
direction. The systems take turns in every round, so that other load of this machine affects all of them equally."""

EPILOG = """\
topologies
  star:4       four hosts on one switch
  racks:2x4    two racks of four hosts; each rack has a switch under one switch in the core. If --uplink equals --rate,
               the four hosts of a rack share the rate of one host.
  fig9         three racks of two hosts, as in figure 9 of the ATP paper: the switch of the third rack is above the
               others, and with --server host the server is below it
  local:4      four processes of this machine over its loopback, without a limit. --rate, --uplink and --queue have no
               effect. Needs no privilege.
systems
  atp, gloo, openmpi
               separate programs: `atp bench`, bench_gloo, and bench_mpi with mpirun
  atp-xdp      atp with `atp switch --xdp` on the switch's ports: the kernel adds, and the daemon on the same host runs
               the servers. Not in racks. --switch xdp replaces atp by atp-xdp; --switch both runs both in turns
  atp-p4       atp with the switch in P4: `simple_switch` of BMv2 and `atp switch --p4` replace each bridge while atp-p4 has
               its turn, and a separate host runs the servers. The model handles some 1,000 packets a second, so
               measure small tensors. Needs `p4c-bm2-ss` and `simple_switch` on PATH or in the folders of
               ATP_P4_TOOLS, and `ethtool`. --switch p4 replaces atp by atp-p4
  atp-p4-passes
               the same with the program that has the registers and passes of a pipeline. --switch p4-passes replaces
               atp by it
  atp-none     atp without a switch: each host serves a part of the sums. --switch none replaces atp by atp-none
  atp-racks    atp, but each switch adds only for its own rack, and the server adds the sums of the racks
  atp-nowhere  atp, but no switch adds: the server gets all gradients. Both need --server host
  switchml     `atp switch` and `atp bench` with --protocol switchml. Not in racks, because it supports one switch. The
               benchmark tries pairs of slots and timeout once and uses the fastest pair; --rank-flags overrides it
  torch-atp, torch-gloo
               torch.distributed with the backend `atp` or with PyTorch's own Gloo. If `atp` or `gloo` is in the same
               run, the report states how much longer the backend takes.
  torch-gloo-float8
               PyTorch's own Gloo under a communication hook for float32 that sends float8: all_to_all, sum in float32,
               all_gather. A peer of torch-atp with --lane-type int8
  With --workload, atp and gloo are backends of torch.distributed.
workloads
  vgg, resnet, gpt
               VGG16, ResNet50 and GPT-2 small, trained by PyTorch's DistributedDataParallel, with its buckets, its
               hooks, and sums that overlap the backward pass. The model has --scale times the parameters.
  vgg-fsdp2, resnet-fsdp2, gpt-fsdp2
               the same models, trained by PyTorch's fully_shard: each rank has a part of each parameter
  vgg-fsdp2-async, resnet-fsdp2-async, gpt-fsdp2-async
               the same, with set_unshard_async_op(True) and prefetches: parameters are gathered while the layer before
               computes
  --compute recorded waits for the time of each layer that `atp-lab models` reports, as for a GPU. The ratio of this
  time to the transfer time of the gradients is that of the testbed. With --compute none, layers take no time: the
  communication alone bounds the step. --compute real trains a narrower model on the processors.
faults of links
  FAULT@LINK   in both directions; FAULT@LINK:up only towards the core, FAULT@LINK:down only away from it. FAULT is
    loss=SHARE       a share of the frames is lost by chance, above 0: loss=0.001 or loss=0.1%
    drop>BYTES       IP packets longer than so many bytes, 1 to 65535, are lost: drop>1400
    duplicates=SHARE a share of the frames arrives twice
    reorder=SHARE    a share of the frames, in groups of 4, waits for milliseconds, so that later frames overtake them
    mark=RATE/SIZE   ECN-capable packets are marked (CE) while a virtual queue, which drains at the rate, is longer than
                     the size: mark=400mbit/64KiB
    cut              nothing passes
  LINK is hostN (link of the host of number N, from 0), hosts (the links of all hosts), uplinkN (of rack N, from 0),
  uplinks, or server (with --server host). One eBPF program at tc's egress makes the faults, alike for UDP and TCP of
  every system. With --fault, packets are cut into frames of wire size before each link, which takes more processor
  time. Faults do not affect packets that a kernel switch sends back on the port by which they came. The report counts
  what faults did to frames at each end of a link.
placements of the ranks in racks
  packed       fill one rack after the other: a ring of ranks crosses each uplink once
  dealt        alternate between the racks: a ring of ranks crosses the uplinks at every step

examples
  bench/cluster/run --workers 4 --rate 500mbit --bytes 25MB --rounds 5 --peer gloo --json
  bench/cluster/run --topology racks:2x4 --rate 500mbit --uplink 500mbit --placement dealt
  bench/cluster/run --topology star:8 --rate 200mbit --systems gloo --json
  bench/cluster/run --topology star:4 --ranks-per-host 4 --rate 200mbit
  bench/cluster/run --topology racks:4x2 --leaves 0,2,4 --no-root --rate 200mbit --uplink 400mbit
  bench/cluster/run --topology local:4 --bytes 25MB --rounds 15 --operations 10 --systems atp,torch-atp
  bench/cluster/run --topology fig9 --server host --systems atp,atp-racks,atp-nowhere
  bench/cluster/run --topology star:4 --jobs 2 --systems atp --switch-flags='--linear --partition 2'
  bench/cluster/run --topology star:4 --switch p4
  bench/cluster/run --topology star:4 --systems atp-p4,atp-p4-passes
  bench/cluster/run --topology star:4 --type bfloat16
  bench/cluster/run --topology star:4 --collective broadcast --bytes 4096 --operations 200
  bench/cluster/run --topology star:4 --rate 200mbit --workload vgg --operations 5
  bench/cluster/run --topology star:4 --rate 200mbit --workload gpt-fsdp2-async
  bench/cluster/run --workers 4 --rate 100mbit --jobs 2 --model-scale 1024 --slowness 1000 --job-hosts 0,1
                    --job-hosts 2,3 --job-flags='--model VGG16' --job-flags='--model ResNet50' --peer switchml
  bench/cluster/run --topology star:4 --fault loss=0.1%@hosts --fault 'drop>1400@host2:up'

Topologies other than local:N need root, `ip` and `tc`. Workloads and torch-* systems need PyTorch. Unless --bin names
a folder, the benchmark builds the programs with the release preset first. At its end it removes its namespaces and
files; at its start it removes those of earlier runs that were killed.
exit status: 0 measured and every sum correct, 1 a step failed, 2 bad arguments, 77 this machine or user cannot run it,
130 after Ctrl-C."""

_OPTIONS = """\
--topology       star:N, racks:RxN, fig9 or local:N [star:4]
--rate           rate of a host's link in each direction, above 0 [500mbit]
--uplink         rate of a rack's uplink in each direction, above 0 [as --rate]
--server-rate    rate of the link of --server host in each direction, above 0 [as --rate]
--queue          longest queue at each end of a link, above 0; further packets are dropped [1MiB]
--offloads       off: send frames of wire size and merge them on arrival, as a network card does; on: let up to 64 KiB
                 cross a link as one packet, for a tenth of the processor time [on]
--fault          fault of a link, such as loss=1%%@host2:up; may be repeated; see below [none]
--fault-seed     seed of lost and duplicated frames, 0 to 4294967295; each end of a link has its own sequence [1]
--ranks-per-host ranks of each job on each host, 1 to 63, which the systems may sum in memory first [1]
--placement      placement of the ranks [packed]
--bytes          size of the tensor, whole elements [25MB; with a switch in P4 20 kB, since its model is slow]
--collective     operation on the tensor; both: a reduce-scatter and an all-gather at a time [all_reduce]
--type           type of the elements [float32]
--magnitude      largest element of the first rank, above 0, such as 1e-9 [0.02]
--lane-type      type of ATP's scaled values in packets [the default of ATP]
--workload       train this model instead of summing one tensor; see below
--scale          share of the model's parameters, above 0, at most 1: 0.1, 5%% or 1/16 [1/16]
--compute        source of each layer's time [recorded]
--model          train this model of `atp-lab models` without PyTorch: ranks sum its gradients, and sleep for the time of
                 its computation. For atp, atp-xdp, atp-none, switchml and gloo. In --job-flags: of one job [none]
--batch          samples of a rank in a step of --model, 1 to 10000 [the model's]
--model-scale    divisor of the parameters, buckets and times of --model, 1 to 1e9 [1]
--slowness       factor of the times of --model, for links slower than the testbed's, above 0 [1]
--rounds         turns of each system, 1 to 10000; the report states the median [5]
--operations     measured all-reduces or steps per turn, 1 to 10000 [3]
--warmup         all-reduces or steps before the measured ones, 0 to 10000 [1 all-reduce, 2 steps]
--jobs           concurrent jobs, 1 to 10000, each with ranks on every host [1]
--sample         record the bytes that the first host has sent and received each time this time has passed, 10ms to 60s:
                 --json prints them as `series` of each round, and as `additions` the packets of each job that switches
                 have added and forwarded, by reports that are up to 0.1 s old [none]
--job-hosts      hosts of the ranks of one job, such as 0,1,4; may be repeated, for the first job, the second, ... [all]
--timeout        longest turn, 1 to 86400 s [60 s plus 30 times the transfer time of the links]
--systems        comma-separated systems in the order of their turns: {systems} [atp,gloo; with another collective, type
                 or magnitude torch-atp,torch-gloo]
--peer           short for --systems atp,SYSTEM
--switch         where ATP's switch adds: in the daemon (user), in the kernel (xdp), or both in turns; p4, p4-passes: in
                 the reference model of P4, which runs the whole decision at once or in the passes of a pipeline; none:
                 the hosts serve the sums [user]
--leaves         numbers of racks, the first ones, that have a switch, 0 to 9: 0,2,4 measures all three in turns [all
                 racks]
--no-root        with --leaves: no switch is above the racks, so that ranks choose another layout
--server         where ATP's parameter servers run: on the switch's host or on a separate host. With host and the switch
                 in the kernel, workers address the server, whose link carries each result once [switch]
--memory         memory of the aggregators of each ATP switch [{memory}; with a switch in P4 {memory_of_p4}, for indices
                 within its 4096 aggregators]
--loss           share of packets that ATP's switches drop, from 0 to below 1: 0.001 or 0.1%%. No effect on Gloo [0]
--switch-flags   further flags of `atp switch` or `atp-lab switch`, in one argument: --switch-flags='--threads 2'. Servers
                 and ranks also get --linear and --partition; a job's number chooses its part [none]
--rank-flags     further flags of `atp bench`, in one argument: --rank-flags='--multicast on' [none]
--job-flags      further flags of `atp bench` of one job; may be repeated, for the first job, the second, ... [none]
--gloo-algorithm algorithm of Gloo; best: try each once and use the fastest [best]
--python         Python with torch [build/venv/bin/python, or the Python that runs this program]
--bin            use the programs in this folder instead of a build
"""

# By flag. An option begins a line, and its further lines begin with blanks.
_ROW = re.compile(r"^(--\S+) +(.+(?:\n .+)*)", re.MULTILINE)
OPTIONS = {flag: " ".join(text.split()) for flag, text in _ROW.findall(_OPTIONS)}
