// SPDX-License-Identifier: Apache-2.0
// The configurations, each with its purpose and its budgets of faults. With full budgets, a configuration has some
// millions of states; with quick budgets, at most some hundred thousand.
//
//   NAME: PURPOSE
//     SETTINGS | FULL BUDGET | QUICK BUDGET
//
// `units` has the workers of each rack, and `direct` for a worker under the switch of the server. `tensors` has the
// fragments of each tensor. The other settings are named like the members of Configuration. A configuration that is
// `long` is for no test.
#include "check/configuration_table.h"

namespace atp::check {
namespace {

constexpr std::string_view table = R"(
# One rack.
star2: two workers, one fragment at a time
  units 2, tensors 1+1 | losses 2, duplicates 1, timeouts 2 | losses 1, duplicates 1, timeouts 1
star2-shared: two fragments at a time share one aggregator
  units 2, window 2, tensors 2 | duplicates 1, timeouts 1 | losses 1, timeouts 1
star2-three: three fragments, two at a time, one aggregator: slots are used again
  units 2, window 2, tensors 2+1 | losses 1, timeouts 1 | losses 1
star2-apart: three fragments, two at a time, each with an aggregator of its own
  units 2, window 2, tensors 3, aggregators 2 | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
star2-indices: four fragments, two at a time, whose slots share an index
  units 2, window 2, tensors 4, aggregators 8, base_slots 1 | losses 1 | losses 1
star2-newer: four fragments at a time: three newer results show a loss
  units 2, window 4, tensors 4, aggregators 2 | losses 2 | losses 1
star3-newer: of three workers, the one that lost its gradient sends again
  units 3, window 4, tensors 4, aggregators 2 | losses 1
rack-direct-newer: a loss at either level, which newer results show
  units 2+direct, window 4, tensors 4, aggregators 2 | losses 1
star2-path: the switch asks for copies of results in the path, and nobody makes any
  units 2, tensors 1+1, asks_path | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
star3: three workers, one fragment at a time
  units 3, tensors 1+1 | losses 2, duplicates 1, timeouts 2 | losses 1, duplicates 1, timeouts 1
star3-shared: three workers, two fragments at a time share one aggregator
  units 3, window 2, tensors 2 | timeouts 1 | duplicates 1

# Several units.
rack-direct: a rack, and a worker under the server's switch
  units 2+direct, tensors 1+1 | losses 2, duplicates 1, timeouts 1 | losses 1, duplicates 1, timeouts 1
rack-direct-shared: a rack and a direct worker, two fragments at a time share an aggregator at both levels
  units 2+direct, window 2, tensors 2 | losses 1, duplicates 1
racks2: two racks of two workers
  units 2+2, tensors 1 | losses 1, duplicates 1, timeouts 2 | losses 1, duplicates 1, timeouts 1
racks2-one-switch: one switch serves both racks: their fragments never mix
  units 2+2, tensors 1, racks_share_switch | losses 2, duplicates 1, timeouts 1 | losses 1, timeouts 1
direct2: no racks: both workers under the server's switch
  units direct+direct, window 2, tensors 3 | losses 1, timeouts 1 | losses 1

# Several jobs, and failures.
jobs2: two jobs share one aggregator
  units 2, jobs 2, tensors 1 | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
jobs2-levels: two jobs share one aggregator at each of two levels
  units 2+direct, jobs 2, tensors 1 | timeouts 1 | losses 1
jobs2-ageing: aggregators count as abandoned, both correctly and by mistake
  units 2, jobs 2, tensors 1 | losses 1, timeouts 1, ageings 2 | losses 1, timeouts 1, ageings 1
slices: the slice of a job shrinks and grows again while its fragments are on their way
  units 2, window 2, tensors 3, aggregators 2, slices
    | losses 1, timeouts 1, changes 2 | losses 1, changes 3
slices-jobs: two jobs with a slice each, and one aggregator goes from one to the other
  units 2, jobs 2, tensors 1+1, aggregators 3, slices | losses 1, duplicates 1, changes 2 | duplicates 1, changes 2
slices-levels: slices change at both levels
  units 2+direct, window 2, tensors 2, aggregators 2, slices | losses 1, changes 2 | changes 2
restart: a switch restarts empty
  units 2+direct, tensors 1+1 | losses 1, duplicates 1, timeouts 1, restarts 1 | losses 1, timeouts 1, restarts 1
crash: a worker ends early: the others end with an error at their deadline
  units 2, window 2, tensors 1+1 | losses 1, timeouts 1, crashes 1 | timeouts 1, crashes 1
incarnation: gradients and results of an earlier incarnation are in flight
  units 2, tensors 1+1, earlier_incarnation | losses 2, duplicates 1, timeouts 2 | losses 1, timeouts 1
incarnations2: two incarnations of a job, both of which have joined, share one aggregator
  units 2, jobs 2, same_number, tensors 1 | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
stale: a gradient and a result of the fragment before the first are in flight
  units 2, window 2, tensors 2, stale_packets | losses 1, timeouts 1
stranger: a gradient of one worker with another number comes from the address of the other
  units 2, tensors 1+1, strangers | losses 2, duplicates 1, timeouts 2 | losses 1, timeouts 1

# Numbers that no switch adds, and marks.
float: one worker's value does not fit an integer
  units 3, tensors 1+1, values too_large | losses 1, duplicates 1 | losses 1
float-ranks: workers stand for two ranks each, whose floats travel one by one
  units 2, tensors 1, values too_large, ranks_each 2 | losses 2 | losses 1
not-finite: an infinity and a NaN
  units 2, window 2, tensors 2, aggregators 2, values not_finite | losses 1, timeouts 1 | losses 1
overflow: two values exceed 32 bits, a third returns the sum into range
  units 3, tensors 1+1, values saturating | losses 1, duplicates 1, timeouts 1 | losses 1
overflow-levels: the sum of level 0 exceeds 32 bits, level 1 adds a negative value
  units 2+direct, tensors 1+1, values saturating | duplicates 1, timeouts 1 | losses 1
overflow-float: a fragment overflows in the switch, and another worker sends it as floats
  units 3, tensors 1, values saturating_and_too_large | losses 1, timeouts 1 | losses 1
wrap: sequence numbers pass 2^32
  units 2, window 2, tensors 2+1, aggregators 2, first_seq 0xFFFFFFFF | losses 1, duplicates 1, timeouts 1 | losses 1
marked: all gradients of one worker are marked: every ACK carries the mark
  units 3, tensors 1+1, marked 1 | losses 1, duplicates 1, timeouts 2 | losses 1, timeouts 1
marked-newer: four fragments at a time, all of them marked: a window halves once
  units 2, window 4, tensors 4, aggregators 2, marked 1 | losses 1
marked-bypass: one worker passes the switch, which holds the sum of the others, and one of those is marked
  units 3, tensors 1, values one_large, bounded, marked 1 | losses 2, timeouts 1 | losses 1, timeouts 1
marks: any packet may be marked: windows halve, and every operation completes
  units 2, window 2, tensors 2+1, aggregators 2 | losses 1, timeouts 1, marks 2 | losses 1, marks 1

# A number with which a sum could leave 32 bits.
bypass: one worker passes the switch, which holds the sum of the others
  units 3, tensors 1+1, values one_large, bounded | losses 2, duplicates 1, timeouts 1 | losses 1, timeouts 1
bypass-levels: one worker of a rack passes both switches
  units 2+direct, tensors 1+1, values one_large, bounded | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
bypass-racks: one worker of two racks passes both switches
  units 2+2, tensors 1, values one_large, bounded | losses 1, timeouts 1 | losses 1

# Narrow integers, whose floats and wide results need several packets.
int16-float: one worker's value does not fit an integer, and its floats need two packets
  units 2, tensors 1, values too_large, int16_lanes
int16-overflow: int16 overflow in the switch, and the result needs two packets
  units 2, tensors 1+1, values wide_sums, int16_lanes
    | losses 2, duplicates 1, timeouts 1 | losses 1, duplicates 1, timeouts 1
int16-levels: int16 overflow over two levels, then sums that fit
  units 2+direct, tensors 1+1, values wide_sums, int16_lanes | losses 1, timeouts 1 | losses 1

# Unscaled integers.
plain: a plain tensor follows a scaled one: late packets of one kind meet the other
  units 2, window 2, tensors 1+1, plain 0x2 | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
plain-overflow: sums of plain integers exceed 32 bits in the switch: workers resend unaggregated, never as floats
  units 3, tensors 1+1, values saturating, plain 0x1 | losses 1, duplicates 1, timeouts 1 | losses 1
plain-levels: sums of plain integers exceed 32 bits over two levels, then scaled numbers follow
  units 2+direct, tensors 1+1, values saturating, plain 0x1 | duplicates 1, timeouts 1 | losses 1

# Different operations.
mismatch: two workers call different operations: each gets an error and no sum
  units 2, tensors 1, mismatched 1 | losses 2, duplicates 1, timeouts 2 | losses 1, duplicates 1, timeouts 1
mismatch-levels: a direct worker calls another operation than the rack
  units 2+direct, tensors 1, mismatched 2 | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1

# Fragments with an owner: reduce-scatter and all-gather.
scatter2: reduce-scatter: each sum goes to one of two workers in turn
  units 2, tensors 3, owned 0x1 | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
scatter2-shared: reduce-scatter: two fragments at a time share one aggregator, then an all-reduce
  units 2, window 2, tensors 2+1, owned 0x1 | losses 1, timeouts 1 | losses 1
scatter-levels: reduce-scatter over two levels
  units 2+direct, tensors 1+1, owned 0x3 | losses 1, duplicates 1, timeouts 1 | losses 1
scatter-float: reduce-scatter: one worker's value does not fit an integer
  units 3, tensors 1, values too_large, owned 0x1 | losses 1, duplicates 1 | losses 1
scatter-bypass: reduce-scatter: one worker passes the switch, which holds the sum of the others
  units 3, tensors 2, values one_large, bounded, owned 0x1 | losses 2, duplicates 1, timeouts 1 | losses 1
scatter-home: sums for one worker, one of whose values does not fit an integer
  units 2, tensors 3, values owner_too_large, owned 0x1, one_owner
    | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
scatter-home-window: as scatter-home, two fragments at a time
  units 2, window 2, tensors 3, values owner_too_large, owned 0x1, one_owner | losses 1 | losses 1
scatter-overflow: reduce-scatter: the sum of all but the owner leaves 32 bits
  units 3, tensors 1+3, values saturating, owned 0x3 | losses 1, duplicates 1 | losses 1
gather2: all-gather: two workers send in turn
  units 2, tensors 4, gathered 0x1 | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
gather2-one: one worker sends all fragments to another, which may lag behind
  units 2, tensors 4, gathered 0x1, one_owner | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
gather3: all-gather of three workers, two fragments at a time
  units 3, window 2, tensors 3, gathered 0x1 | losses 1
gather-mixed: a reduce-scatter, an all-gather and an all-reduce, two fragments at a time
  units 2, window 2, tensors 1+2+1, owned 0x1, gathered 0x2 | losses 1 | losses 1

# Switches put ACKs without lanes into lists.
lists3: reduce-scatter, two fragments at a time: their ACKs to all share a list
  units 3, window 2, tensors 3, aggregators 2, owned 0x1, ack_lists 2 | losses 1, duplicates 1 | losses 1
lists3-late: as lists3, two fragments: timers expire before a list arrives
  units 3, window 2, tensors 2, aggregators 2, owned 0x1, ack_lists 2 | losses 1, timeouts 1 | losses 1
lists-one: one worker sends all fragments, and gets their ACKs in lists
  units 2, window 2, tensors 4, gathered 0x1, one_owner, ack_lists 2 | losses 1
lists-mixed: a reduce-scatter and an all-gather: ACKs for all, and for each worker, wait at once
  units 3, window 2, tensors 1+2, aggregators 2, owned 0x1, gathered 0x2, ack_lists 3 | losses 1
lists-racks: reduce-scatter over two levels: the switches of racks make lists, the one above does not
  units 2+2, window 2, tensors 2, aggregators 2, owned 0x1, ack_lists 2 | losses 1
lists-path: sums for one worker; those of all others pass a switch in the path, which has no address
  units 3, window 2, tensors 3, aggregators 2, owned 0x1, one_owner, switch_in_path, ack_lists 2
    | losses 1, duplicates 1 | losses 1
lists-path-one: one worker sends all fragments through a switch in the path
  units 2, window 2, tensors 3, gathered 0x1, one_owner, switch_in_path, ack_lists 2 | losses 1, duplicates 1 | losses 1

# Switches that are pipelines: a packet passes several times, and may be lost or overtaken between.
pipeline2: a pipeline with two workers, one fragment at a time
  units 2, tensors 2, pipelines 0xFF | losses 2, duplicates 1, timeouts 2, ageings 1, restarts 1 | losses 1, timeouts 2
pipeline2-shared: a pipeline: two fragments at a time share one aggregator
  units 2, window 2, tensors 2, pipelines 0xFF | losses 1, timeouts 1, ageings 1 | timeouts 1
pipeline2-three: a pipeline: three fragments, two at a time, share one aggregator
  units 2, window 2, tensors 3, pipelines 0xFF | losses 1, timeouts 1
pipeline3: a pipeline with three workers
  units 3, tensors 2, pipelines 0xFF | losses 1, timeouts 1, ageings 1 | timeouts 1
pipeline-marked: a pipeline: all gradients of one worker have a congestion mark
  units 2, tensors 1, pipelines 0xFF, marked 1 | losses 1, timeouts 2 | losses 1, timeouts 1
pipeline-jobs: two jobs share one aggregator of a pipeline
  units 2, jobs 2, tensors 2, pipelines 0xFF | losses 1, ageings 1 | ageings 1
pipeline-levels: pipelines at both levels: a rack of two, and a direct worker
  units 2+direct, tensors 2, pipelines 0xFF | losses 1, duplicates 1, timeouts 1 | losses 1, timeouts 1
pipeline-mixed: a pipeline in one rack, a software switch in the other and above
  units 2+2, tensors 1, pipelines 0x1 | losses 1, timeouts 1 | duplicates 1

# SwitchML.
switchml2: SwitchML: two workers, one slot, used four times
  switchml, units 2, tensors 2+2 | losses 2, duplicates 2, timeouts 2 | losses 1, duplicates 1, timeouts 1
switchml2-slots: SwitchML: two slots that tensors share, used three times
  switchml, units 2, window 2, tensors 1+3+1 | losses 1, duplicates 1, timeouts 1 | losses 1, duplicates 1
switchml3: SwitchML: three workers, one slot, used three times
  switchml, units 3, tensors 3 | losses 2, duplicates 1, timeouts 2 | losses 1, duplicates 1, timeouts 1
switchml2-jobs: SwitchML: two jobs, each with its part of the pool
  switchml, units 2, jobs 2, tensors 2 | losses 1, duplicates 1, timeouts 1 | losses 1
switchml2-wrap: SwitchML: offsets pass 2^32 between two uses of a slot
  switchml, units 2, window 2, tensors 5, first_seq 0xFFFFFFFD | losses 1, duplicates 1, timeouts 1 | duplicates 1
switchml3-crash: SwitchML: a worker ends early: the others end with an error at their deadline
  switchml, units 3, tensors 2 | losses 1, duplicates 1, timeouts 1, crashes 1 | timeouts 1, crashes 1

# Joining. Time passes: timeouts are the ticks in which faults may occur, ageings those that pass while packets wait.
join2: joining: two ranks at one switch
  joining, units 2 | losses 1, duplicates 1, timeouts 6, ageings 1 | losses 1, timeouts 6, ageings 1
join2-earlier: joining: messages of an earlier process of rank 0 are in flight
  joining, units 2, earlier_incarnation | timeouts 5, ageings 2 | timeouts 3, ageings 1
join2-restart: joining: the switch restarts
  joining, units 2 | losses 1, timeouts 8, ageings 1, restarts 1 | losses 1, timeouts 7, restarts 1
join2-crash: joining: a host is lost
  joining, units 2, switches_crash | losses 1, timeouts 8, ageings 1, crashes 1 | losses 1, timeouts 7, crashes 1
join2-closed: joining: a process ends, and its host reports it
  joining, units 2, hold_ticks 24, hosts_report, switches_crash
    | losses 1, timeouts 7, ageings 1, crashes 1 | losses 1, timeouts 6, crashes 1
join2-returns: joining: the switch ends, and starts again later
  joining, units 2, switches_crash | losses 1, timeouts 9, restarts 1, crashes 1 | timeouts 7, restarts 1, crashes 1
join2-leaves: joining: rank 1 leaves in order
  joining, units 2, leaver 1 | duplicates 1, timeouts 5, ageings 1 | duplicates 1, timeouts 3, ageings 1
join3-crash: joining: a host of three is lost
  joining, units 3 | losses 1, timeouts 6, crashes 1 | timeouts 5, crashes 1
join-racks: joining: two leaves below a root
  joining, units 1+1 | losses 1, timeouts 7 | losses 1, timeouts 5
join-racks-earlier: joining: messages of an earlier process of rank 0, and a forged answer to each leaf
  joining, units 1+1, earlier_incarnation | timeouts 5 | timeouts 4
join-racks-restart: joining: a leaf or the root restarts
  joining, units 1+1 | losses 1, timeouts 7, restarts 1 | timeouts 6, restarts 1
join-racks-crash: joining: a host of a rank, a leaf or the root is lost
  joining, units 1+1, switches_crash | losses 1, timeouts 7, crashes 1 | timeouts 6, crashes 1
join-root-named: joining: a rack of two, and a rank at the root that the job names; a host is lost
  joining, units 2+direct, switches_crash, names_root | timeouts 6, crashes 1 | timeouts 5, crashes 1
join-root-named-restart: joining: a leaf or the root that the job names restarts
  joining, units 1+1, names_root | losses 1, timeouts 7, restarts 1 | timeouts 6, restarts 1
join-rack-direct: joining: a rack of two, and a rank at the root; a host is lost
  joining, units 2+direct, switches_crash | timeouts 6, crashes 1 | timeouts 5, crashes 1

# Ranks of one host that sum in its memory.
host2: host: two ranks, two operations
  host, units 2, tensors 2+1
host2-ranges: host: two ranks, chunks of two ranges, two slots
  host, units 2, window 2, tensors 2+2, aggregators 2
host2-mismatch: host: two ranks call different operations
  host, units 2, tensors 1+2, aggregators 2, mismatched 1
host2-killed: host: one of two ranks is killed at any step
  host, units 2, window 2, tensors 2+1, aggregators 2, killed 1
host2-leaves: host: one of two ranks leaves before the last operation
  host, units 2, tensors 2+1, aggregators 2, leaver 1
host3-ranges: host: three ranks, chunks of two ranges, two slots
  host, units 3, window 2, tensors 1+1, aggregators 2, long
host4: host: four ranks
  host, units 4, tensors 1, long
host4-killed: host: one of four ranks is killed at any step
  host, units 4, tensors 1, killed 2, long
host3: host: three ranks, one slot
  host, units 3, tensors 2
host3-mismatch: host: one of three ranks calls another operation
  host, units 3, tensors 1, mismatched 1
host3-killed: host: one of three ranks is killed at any step
  host, units 3, tensors 2, killed 0
host2-network: host: two ranks of many, chunks of two ranges, two slots
  host, units 2, window 2, tensors 2+1, aggregators 2, other_hosts
host3-network: host: three ranks of many
  host, units 3, tensors 1+1, other_hosts, long
host2-network-killed: host: the rank that speaks is killed at any step
  host, units 2, tensors 2+1, aggregators 2, other_hosts, killed 0
host2-network-mismatch: host: two ranks of many call different operations
  host, units 2, tensors 1+1, aggregators 2, mismatched 1, other_hosts

# Ranks that form a job through a store.
form3: formation: three ranks begin and read in any order
  formation, units 3
form3-differs: formation: one of three ranks has other options
  formation, units 3, mismatched 2
form3-first-differs: formation: rank 0 of three has other options
  formation, units 3, mismatched 0
form3-world: formation: one of three ranks expects four
  formation, units 3, mismatched 1, differs_in_world
form2-killed: formation: one of two ranks is killed at any step, and times end
  formation, units 2, killed 0
form3-killed: formation: one of three ranks is killed at any step, and times end
  formation, units 3, killed 1, long
)";

std::vector<Configuration> make(Extent extent) {
    std::vector<Configuration> all;
    for (ConfigurationEntry& entry : read_configurations(table)) {
        if (extent == Extent::quick && entry.is_long) continue;
        entry.configuration.budget = extent == Extent::full ? entry.full : entry.quick;
        all.push_back(std::move(entry.configuration));
    }
    return all;
}

}  // namespace

std::span<const Configuration> configurations(Extent extent) {
    static const std::vector<Configuration> full = make(Extent::full);
    static const std::vector<Configuration> quick = make(Extent::quick);
    return extent == Extent::full ? full : quick;
}

}  // namespace atp::check
