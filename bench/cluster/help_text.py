# SPDX-License-Identifier: Apache-2.0
"""What `bench/cluster/run --help` prints around its options."""

DESCRIPTION = """\
Measure all-reduce, or the training of a model, over links of limited rates. One run compares ATP with Gloo. Every host
is a network namespace, and every switch is a namespace with a bridge. Links are veth pairs; a token bucket limits each
direction. The systems take turns in every round, so that other load of this machine affects all of them equally."""

EPILOG = """\
topologies
  star:4       four hosts on one switch
  racks:2x4    two racks of four hosts; each rack has a switch under one switch in the core. If --uplink equals --rate,
               the four hosts of a rack share the rate of one host.
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
  bench/cluster/run --topology star:4 --switch p4
  bench/cluster/run --topology star:4 --systems atp-p4,atp-p4-passes
  bench/cluster/run --topology star:4 --type bfloat16
  bench/cluster/run --topology star:4 --collective broadcast --bytes 4096 --operations 200
  bench/cluster/run --topology star:4 --rate 200mbit --workload vgg --operations 5
  bench/cluster/run --topology star:4 --rate 200mbit --workload gpt-fsdp2-async
  bench/cluster/run --topology star:4 --fault loss=0.1%@hosts --fault 'drop>1400@host2:up'

Topologies other than local:N need root, `ip` and `tc`. Workloads and torch-* systems need PyTorch. Unless --bin names
a folder, the benchmark builds the programs with the release preset first. At its end it removes its namespaces and
files; at its start it removes those of earlier runs that were killed.
exit status: 0 measured and every sum correct, 1 a step failed, 2 bad arguments, 77 this machine or user cannot run it,
130 after Ctrl-C."""
