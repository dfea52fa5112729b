// SPDX-License-Identifier: Apache-2.0
// The configurations, each with its purpose and its budgets of faults. With full budgets, a configuration has some
// millions of states; with quick budgets, at most some hundred thousand.
#include "check/configuration_entry.h"

namespace atp::check {
namespace {

using Units = std::vector<UnitLayout>;
using Entry = ConfigurationEntry;

Units star(std::uint8_t workers) { return {{.workers = workers}}; }
Units rack_and_direct() { return {{.workers = 2}, {.workers = 1, .direct = true}}; }
Units two_racks() { return {{.workers = 2}, {.workers = 2}}; }
Units two_direct() { return {{.workers = 1, .direct = true}, {.workers = 1, .direct = true}}; }

void add_stars(std::vector<Entry>& all) {
    all.push_back(
        {{.name = "star2", .what = "two workers, one fragment at a time", .units = star(2), .tensors = {1, 1}},
         {.losses = 2, .duplicates = 1, .timeouts = 2},
         {.losses = 1, .duplicates = 1, .timeouts = 1}});
    all.push_back({{.name = "star2-shared",
                    .what = "two fragments at a time share one aggregator",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {2}},
                   {.duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "star2-three",
                    .what = "three fragments, two at a time, one aggregator: slots are used again",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {2, 1}},
                   {.losses = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "star2-apart",
                    .what = "three fragments, two at a time, each with an aggregator of its own",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {3},
                    .aggregators = 2},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "star2-newer",
                    .what = "four fragments at a time: three newer results cause a resend",
                    .units = star(2),
                    .window_log2 = 2,
                    .tensors = {4},
                    .aggregators = 2},
                   {.losses = 1},
                   {}});
    all.push_back(
        {{.name = "star3", .what = "three workers, one fragment at a time", .units = star(3), .tensors = {1, 1}},
         {.losses = 2, .duplicates = 1, .timeouts = 2},
         {.losses = 1, .duplicates = 1, .timeouts = 1}});
    all.push_back({{.name = "star3-shared",
                    .what = "three workers, two fragments at a time share one aggregator",
                    .units = star(3),
                    .window_log2 = 1,
                    .tensors = {2}},
                   {.timeouts = 1},
                   {.duplicates = 1}});
}

void add_levels(std::vector<Entry>& all) {
    all.push_back({{.name = "rack-direct",
                    .what = "a rack, and a worker under the server's switch",
                    .units = rack_and_direct(),
                    .tensors = {1, 1}},
                   {.losses = 2, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .duplicates = 1, .timeouts = 1}});
    all.push_back({{.name = "rack-direct-shared",
                    .what = "a rack and a direct worker, two fragments at a time share an aggregator at both levels",
                    .units = rack_and_direct(),
                    .window_log2 = 1,
                    .tensors = {2}},
                   {.losses = 1, .duplicates = 1},
                   {}});
    all.push_back({{.name = "racks2", .what = "two racks of two workers", .units = two_racks(), .tensors = {1}},
                   {.losses = 1, .duplicates = 1, .timeouts = 2},
                   {.losses = 1, .duplicates = 1, .timeouts = 1}});
    all.push_back({{.name = "racks2-one-switch",
                    .what = "one switch serves both racks: their fragments never mix",
                    .units = two_racks(),
                    .tensors = {1},
                    .racks_share_switch = true},
                   {.losses = 2, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "direct2",
                    .what = "no racks: both workers under the server's switch",
                    .units = two_direct(),
                    .window_log2 = 1,
                    .tensors = {3}},
                   {.losses = 1, .timeouts = 1},
                   {.losses = 1}});
}

void add_tenants_and_failures(std::vector<Entry>& all) {
    all.push_back(
        {{.name = "jobs2", .what = "two jobs share one aggregator", .units = star(2), .jobs = 2, .tensors = {1}},
         {.losses = 1, .duplicates = 1, .timeouts = 1},
         {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "jobs2-levels",
                    .what = "two jobs share one aggregator at each of two levels",
                    .units = rack_and_direct(),
                    .jobs = 2,
                    .tensors = {1}},
                   {.timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "jobs2-ageing",
                    .what = "aggregators count as abandoned, both correctly and by mistake",
                    .units = star(2),
                    .jobs = 2,
                    .tensors = {1}},
                   {.losses = 1, .timeouts = 1, .ageings = 2},
                   {.losses = 1, .timeouts = 1, .ageings = 1}});
    all.push_back(
        {{.name = "restart", .what = "a switch restarts empty", .units = rack_and_direct(), .tensors = {1, 1}},
         {.losses = 1, .duplicates = 1, .timeouts = 1, .restarts = 1},
         {.losses = 1, .timeouts = 1, .restarts = 1}});
    all.push_back({{.name = "crash",
                    .what = "a worker ends early: the others end with an error at their deadline",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {1, 1}},
                   {.losses = 1, .timeouts = 1, .crashes = 1},
                   {.timeouts = 1, .crashes = 1}});
    all.push_back({{.name = "incarnation",
                    .what = "gradients and results of an earlier incarnation are in flight",
                    .units = star(2),
                    .tensors = {1, 1},
                    .earlier_incarnation = true},
                   {.losses = 2, .duplicates = 1, .timeouts = 2},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "stale",
                    .what = "a gradient and a result of the fragment before the first are in flight",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {2},
                    .stale_packets = true},
                   {.losses = 1, .timeouts = 1},
                   {}});
}

void add_plain_numbers(std::vector<Entry>& all) {
    all.push_back({{.name = "plain",
                    .what = "a plain tensor follows a scaled one: late packets of one kind meet the other",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {1, 1},
                    .plain_tensors = 0x2},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back(
        {{.name = "plain-overflow",
          .what = "sums of plain integers exceed 32 bits in the switch: workers resend unaggregated, never as floats",
          .units = star(3),
          .tensors = {1, 1},
          .values = Values::saturating,
          .plain_tensors = 0x1},
         {.losses = 1, .duplicates = 1, .timeouts = 1},
         {.losses = 1}});
    all.push_back({{.name = "plain-levels",
                    .what = "sums of plain integers exceed 32 bits over two levels, then scaled numbers follow",
                    .units = rack_and_direct(),
                    .tensors = {1, 1},
                    .values = Values::saturating,
                    .plain_tensors = 0x1},
                   {.duplicates = 1, .timeouts = 1},
                   {.losses = 1}});
}

void add_mismatches(std::vector<Entry>& all) {
    all.push_back({{.name = "mismatch",
                    .what = "two workers call different operations: each gets an error and no sum",
                    .units = star(2),
                    .tensors = {1},
                    .mismatched_worker = 1},
                   {.losses = 2, .duplicates = 1, .timeouts = 2},
                   {.losses = 1, .duplicates = 1, .timeouts = 1}});
    all.push_back({{.name = "mismatch-levels",
                    .what = "a direct worker calls another operation than the rack",
                    .units = rack_and_direct(),
                    .tensors = {1},
                    .mismatched_worker = 2},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
}

void add_numbers(std::vector<Entry>& all) {
    all.push_back({{.name = "float",
                    .what = "one worker's value does not fit an integer",
                    .units = star(3),
                    .tensors = {1, 1},
                    .values = Values::too_large},
                   {.losses = 1, .duplicates = 1},
                   {.losses = 1}});
    all.push_back({{.name = "float-ranks",
                    .what = "workers stand for two ranks each, whose floats travel one by one",
                    .units = star(2),
                    .tensors = {1},
                    .values = Values::too_large,
                    .ranks_each = 2},
                   {.losses = 2},
                   {.losses = 1}});
    all.push_back({{.name = "not-finite",
                    .what = "an infinity and a NaN",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {2},
                    .aggregators = 2,
                    .values = Values::not_finite},
                   {.losses = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "overflow",
                    .what = "two values exceed 32 bits, a third returns the sum into range",
                    .units = star(3),
                    .tensors = {1, 1},
                    .values = Values::saturating},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "overflow-levels",
                    .what = "the sum of level 0 exceeds 32 bits, level 1 adds a negative value",
                    .units = rack_and_direct(),
                    .tensors = {1, 1},
                    .values = Values::saturating},
                   {.duplicates = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "overflow-float",
                    .what = "a fragment overflows in the switch, and another worker sends it as floats",
                    .units = star(3),
                    .tensors = {1},
                    .values = Values::saturating_and_too_large},
                   {.losses = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "wrap",
                    .what = "sequence numbers pass 2^32",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {2, 1},
                    .aggregators = 2,
                    .first_seq = 0xffffffffU},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "marked",
                    .what = "all gradients of one worker are marked: every ACK carries the mark",
                    .units = star(3),
                    .tensors = {1, 1},
                    .marked_worker = 1},
                   {.losses = 1, .duplicates = 1, .timeouts = 2},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "marks",
                    .what = "any packet may be marked: windows halve, and every operation completes",
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {2, 1},
                    .aggregators = 2},
                   {.losses = 1, .timeouts = 1, .marks = 2},
                   {.losses = 1, .marks = 1}});
}

void add_bypasses(std::vector<Entry>& all) {
    all.push_back({{.name = "bypass",
                    .what = "one worker passes the switch, which holds the sum of the others",
                    .units = star(3),
                    .tensors = {1, 1},
                    .values = Values::one_large,
                    .bounded = true},
                   {.losses = 2, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "bypass-levels",
                    .what = "one worker of a rack passes both switches",
                    .units = rack_and_direct(),
                    .tensors = {1, 1},
                    .values = Values::one_large,
                    .bounded = true},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
}

void add_switchml(std::vector<Entry>& all) {
    all.push_back({{.name = "switchml2",
                    .what = "SwitchML: two workers, one slot, used four times",
                    .protocol = Protocol::switchml,
                    .units = star(2),
                    .tensors = {2, 2}},
                   {.losses = 2, .duplicates = 2, .timeouts = 2},
                   {.losses = 1, .duplicates = 1, .timeouts = 1}});
    all.push_back({{.name = "switchml2-slots",
                    .what = "SwitchML: two slots that tensors share, used three times",
                    .protocol = Protocol::switchml,
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {1, 3, 1}},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .duplicates = 1}});
    all.push_back({{.name = "switchml3",
                    .what = "SwitchML: three workers, one slot, used three times",
                    .protocol = Protocol::switchml,
                    .units = star(3),
                    .tensors = {3}},
                   {.losses = 2, .duplicates = 1, .timeouts = 2},
                   {.losses = 1, .duplicates = 1, .timeouts = 1}});
    all.push_back({{.name = "switchml2-jobs",
                    .what = "SwitchML: two jobs, each with its part of the pool",
                    .protocol = Protocol::switchml,
                    .units = star(2),
                    .jobs = 2,
                    .tensors = {2}},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "switchml2-wrap",
                    .what = "SwitchML: offsets pass 2^32 between two uses of a slot",
                    .protocol = Protocol::switchml,
                    .units = star(2),
                    .window_log2 = 1,
                    .tensors = {5},
                    .first_seq = 0xfffffffdU},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.duplicates = 1}});
    all.push_back({{.name = "switchml3-crash",
                    .what = "SwitchML: a worker ends early: the others end with an error at their deadline",
                    .protocol = Protocol::switchml,
                    .units = star(3),
                    .tensors = {2}},
                   {.losses = 1, .duplicates = 1, .timeouts = 1, .crashes = 1},
                   {.timeouts = 1, .crashes = 1}});
}

Units racks_of_one() { return {{.workers = 1}, {.workers = 1}}; }

// Time passes: `timeouts` counts the ticks in which faults may occur, `ageings` those that pass while packets wait.
void add_joining(std::vector<Entry>& all) {
    const auto add = [&all](Configuration configuration, const Budget& full, const Budget& quick) {
        configuration.protocol = Protocol::joining;
        all.push_back({std::move(configuration), full, quick});
    };
    add({.name = "join2", .what = "joining: two ranks at one switch", .units = star(2)},
        {.losses = 1, .duplicates = 1, .timeouts = 6, .ageings = 1}, {.losses = 1, .timeouts = 6, .ageings = 1});
    add({.name = "join2-earlier",
         .what = "joining: messages of an earlier process of rank 0 are in flight",
         .units = star(2),
         .earlier_incarnation = true},
        {.timeouts = 5, .ageings = 2}, {.timeouts = 3, .ageings = 1});
    add({.name = "join2-restart", .what = "joining: the switch restarts", .units = star(2)},
        {.losses = 1, .timeouts = 8, .ageings = 1, .restarts = 1}, {.losses = 1, .timeouts = 7, .restarts = 1});
    add({.name = "join2-crash", .what = "joining: a host is lost", .units = star(2), .switches_crash = true},
        {.losses = 1, .timeouts = 8, .ageings = 1, .crashes = 1}, {.losses = 1, .timeouts = 7, .crashes = 1});
    add({.name = "join2-closed",
         .what = "joining: a process ends, and its host reports it",
         .units = star(2),
         .hold_ticks = 24,
         .hosts_report = true,
         .switches_crash = true},
        {.losses = 1, .timeouts = 7, .ageings = 1, .crashes = 1}, {.losses = 1, .timeouts = 6, .crashes = 1});
    add({.name = "join2-returns",
         .what = "joining: the switch ends, and starts again later",
         .units = star(2),
         .switches_crash = true},
        {.losses = 1, .timeouts = 9, .restarts = 1, .crashes = 1}, {.timeouts = 7, .restarts = 1, .crashes = 1});
    add({.name = "join2-leaves", .what = "joining: rank 1 leaves in order", .units = star(2), .leaver = 1},
        {.duplicates = 1, .timeouts = 5, .ageings = 1}, {.duplicates = 1, .timeouts = 3, .ageings = 1});
    add({.name = "join3-crash", .what = "joining: a host of three is lost", .units = star(3)},
        {.losses = 1, .timeouts = 6, .crashes = 1}, {.timeouts = 5, .crashes = 1});
    add({.name = "join-racks", .what = "joining: two leaves below a root", .units = racks_of_one()},
        {.losses = 1, .timeouts = 7}, {.losses = 1, .timeouts = 5});
    add({.name = "join-racks-restart", .what = "joining: a leaf or the root restarts", .units = racks_of_one()},
        {.losses = 1, .timeouts = 7, .restarts = 1}, {.timeouts = 6, .restarts = 1});
    add({.name = "join-racks-crash",
         .what = "joining: a host of a rank, a leaf or the root is lost",
         .units = racks_of_one(),
         .switches_crash = true},
        {.losses = 1, .timeouts = 7, .crashes = 1}, {.timeouts = 6, .crashes = 1});
    add({.name = "join-root-named",
         .what = "joining: a rack of two, and a rank at the root that the job names; a host is lost",
         .units = rack_and_direct(),
         .switches_crash = true,
         .names_root = true},
        {.timeouts = 6, .crashes = 1}, {.timeouts = 5, .crashes = 1});
    add({.name = "join-root-named-restart",
         .what = "joining: a leaf or the root that the job names restarts",
         .units = racks_of_one(),
         .names_root = true},
        {.losses = 1, .timeouts = 7, .restarts = 1}, {.timeouts = 6, .restarts = 1});
    add({.name = "join-rack-direct",
         .what = "joining: a rack of two, and a rank at the root; a host is lost",
         .units = rack_and_direct(),
         .switches_crash = true},
        {.timeouts = 6, .crashes = 1}, {.timeouts = 5, .crashes = 1});
}

std::vector<Configuration> make(Extent extent) {
    std::vector<Entry> entries;
    add_stars(entries);
    add_levels(entries);
    add_tenants_and_failures(entries);
    add_numbers(entries);
    add_bypasses(entries);
    add_narrow_numbers(entries);
    add_plain_numbers(entries);
    add_mismatches(entries);
    add_owners(entries);
    add_lists(entries);
    add_pipelines(entries);
    add_switchml(entries);
    add_joining(entries);
    add_host(entries);
    add_formation(entries);
    std::vector<Configuration> all;
    for (Entry& entry : entries) {
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
