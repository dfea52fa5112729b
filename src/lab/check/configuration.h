// SPDX-License-Identifier: Apache-2.0
// Parameters of one exploration: the nodes, the values that workers add, and the budget of each fault.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atp::check {

// The faults that the checker injects. Each state of an exploration holds the remaining budget of each fault. The
// normal delivery of a packet uses no budget.
enum class Fault : std::uint8_t {
    loss,       // a packet is lost
    duplicate,  // a packet is delivered, and a copy stays in flight
    timeout,    // a worker's timer fires
    ageing,     // a packet reaches a switch when the aggregator that it names counts as abandoned
    restart,    // a switch clears every aggregator
    mark,       // a packet is delivered with a congestion mark
    crash,      // a worker stops for good
    change,     // a switch begins or ends a change of slices
};
// With a clock (Configuration::has_clock), some budgets have another meaning. timeout: so many ticks pass until the
// faults stop. ageing: so many of them pass while packets are in flight. crash: also of switches.
inline constexpr std::size_t fault_count = 8;
using FaultBudget = std::array<std::uint8_t, fault_count>;  // indexed by Fault; each budget is at most 15, of changes 7

// The values that workers add.
enum class Values : std::uint8_t {
    small,       // small integers; the sum of each set of workers is different
    too_large,   // fragment 0: the second worker's value does not fit an integer
    not_finite,  // fragment 0 has an infinite value, fragment 1 a NaN
    saturating,  // fragment 0: the first two values sum to 4e9, beyond int32, and the third is negative
    // As saturating, and the last worker's value in fragment 0 does not fit an integer.
    saturating_and_too_large,
    owner_too_large,  // fragment 1: the first worker's value does not fit an integer
    one_large,        // fragment 0: the first worker's value is near the limit of int32
    wide_sums,        // fragment 0: all values fit 16 bits, and the first two sum to 40,000
};

enum class Protocol : std::uint8_t { atp, switchml, joining, host, formation };

// A rack, or one direct worker. Each rack has a separate switch, except with racks_share_switch. A direct worker is
// below the switch of the server.
struct UnitLayout {
    std::uint8_t workers = 2;
    bool direct = false;
};

inline constexpr std::uint8_t every_switch = 0xFF;
inline constexpr std::uint16_t model_lanes = 2;  // one word of elements and the audit word

inline constexpr unsigned max_window = 4;

struct Configuration {
    std::string_view name;
    std::string_view what;
    Protocol protocol = Protocol::atp;
    std::vector<UnitLayout> units;  // SwitchML: one unit with all workers
    std::uint8_t jobs = 1;
    bool same_number = false;  // the jobs are two incarnations of one, and the switches know both
    std::uint8_t window_log2 = 0;
    std::vector<std::uint8_t> tensors{};  // fragments of each tensor
    std::uint32_t aggregators = 1;
    std::uint32_t base_slots = max_window;  // of a channel
    FaultBudget budget{};
    Values values = Values::small;
    std::uint8_t ranks_each = 1;        // for which a worker stands: its floats travel rank by rank
    bool int16_lanes = false;           // fragments of two equal elements; their floats need two packets
    bool bounded = false;               // a number whose sums could leave 32 bits passes the switches
    std::uint8_t plain_tensors = 0;     // bit mask of tensors that carry unscaled integers
    std::uint8_t owned_tensors = 0;     // bit mask of tensors whose sums go to one worker each (reduce-scatter)
    std::uint8_t gathered_tensors = 0;  // bit mask of tensors with one sender for each fragment (all-gather)
    bool one_owner = false;             // rank 0 owns all of them; otherwise the workers in turn
    std::uint32_t first_seq = 1000;
    bool racks_share_switch = false;   // the switch of all racks is in the path
    bool asks_path = false;            // switches ask one in the path for copies of results, and there is none
    bool switch_in_path = false;       // one unit: a switch without an address is between its switch and ranks from 1
    std::uint8_t ack_lists = 0;        // most ACKs in a list of the top switch; 0: no lists
    std::uint8_t pipelines = 0;        // bit mask of the switches that are pipelines, by number
    bool earlier_incarnation = false;  // packets of another token are in flight from the start
    bool stale_packets = false;        // packets of the fragment before the first are in flight from the start
    bool slices = false;               // each job is a tenant, and its slice of the table changes and changes back
    bool strangers = false;            // a packet from an address that may not send it is in flight from the start
    int mismatched_worker = -1;        // rank that performs another operation; -1: none
    int marked_worker = -1;            // rank whose gradients are all marked; -1: none
    bool other_hosts = false;          // Protocol::host: rank 0 sends the sums to other hosts
    int killed = -1;                   // Protocol::host, formation: rank that is killed, at any time; -1: none
    bool differs_in_world = false;     // Protocol::formation: the mismatched rank expects one rank more
    // Protocol::joining, and leaver of Protocol::host:
    std::uint8_t hold_ticks = 4;  // hold time of the switches
    bool hosts_report = false;    // the host of an ended process reports that no process has the port
    bool switches_crash = false;  // not only ranks
    bool names_root = false;      // the job names the root, and leaves have no parent of their own
    int leaver = -1;              // rank that leaves in order, at any time; -1: none

    [[nodiscard]] unsigned fragments() const;
    [[nodiscard]] unsigned workers() const;  // per job
    // No two fragments share an aggregator, and all workers call the same operations.
    [[nodiscard]] bool has_own_aggregators() const {
        return protocol == Protocol::atp && jobs * window() <= aggregators && window() <= base_slots &&
               mismatched_worker < 0;
    }
    [[nodiscard]] bool has_marks() const { return marked_worker >= 0 || budget_of(Fault::mark) != 0; }
    // The nodes measure time, which passes in ticks. Otherwise each timer may fire at any moment.
    [[nodiscard]] bool has_clock() const { return protocol == Protocol::joining; }
    [[nodiscard]] std::uint32_t window() const { return 1U << window_log2; }
    // A list of ACKs is no longer than a packet, so lists require longer packets.
    [[nodiscard]] std::uint16_t lanes() const;
    [[nodiscard]] std::uint8_t budget_of(Fault fault) const { return budget[static_cast<std::size_t>(fault)]; }
};

inline constexpr unsigned max_fragments = 8;
inline constexpr unsigned max_workers = 4;  // per job
inline constexpr unsigned max_jobs = 2;

// FaultBudget for designated initialisers.
struct Budget {
    std::uint8_t losses = 0, duplicates = 0, timeouts = 0, ageings = 0, restarts = 0, marks = 0, crashes = 0,
                 changes = 0;

    // NOLINTNEXTLINE(google-explicit-constructor): the struct exists for this conversion
    constexpr operator FaultBudget() const {
        return {losses, duplicates, timeouts, ageings, restarts, marks, crashes, changes};
    }
};

// Selects one of two budgets for each configuration. full: all explorations take some minutes. quick: all explorations
// are short enough for a test.
enum class Extent : std::uint8_t { full, quick };
[[nodiscard]] std::span<const Configuration> configurations(Extent extent);
// nullptr: unknown name.
[[nodiscard]] const Configuration* find_configuration(std::string_view name, Extent extent);

}  // namespace atp::check
