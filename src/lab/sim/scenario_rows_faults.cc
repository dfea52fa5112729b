// SPDX-License-Identifier: Apache-2.0
// Rows for faults, systems, SwitchML and the end of the run.
#include <algorithm>

#include "sim/fabric.h"
#include "sim/scenario_rows.h"
#include "sim/scenario_text.h"
#include "sim/swarm.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using switchml::Mode;
using Group = ScenarioRow::Group;

constexpr std::array<double, 7> drawn_rates{0, 0, 0.001, 0.01, 0.03, 0.1, 0.3};

void draw_reorder_delay(Random& random, Scenario& s) {
    s.faults.reorder_delay = random.chance(0.7) ? between(random, microseconds(1), microseconds(50))
                                                : between(random, microseconds(50), milliseconds(3));
}

// Half of the jobs form in a network without faults, so that more of the faults harm sums.
void draw_begin(Random& random, Scenario& s) {
    if (random.chance(0.5)) s.faults.from = Time(between(random, microseconds(20), microseconds(200)));
}

void draw_healing(Random& random, Scenario& s) {
    s.faults.until = Time(random.chance(0.7) ? between(random, milliseconds(1), milliseconds(10))
                                             : between(random, milliseconds(10), milliseconds(60)));
}

void draw_outages(Random& random, Scenario& s) {
    const auto until = s.faults.until.time_since_epoch();
    const auto add = [&](Outage::Kind kind, Outage::Node node) {
        Outage outage{.kind = kind, .node = node};
        outage.job = between(random, 0, s.jobs - 1);
        if (node == Outage::Node::worker) outage.index = between(random, 0, s.workers() - 1);
        const auto latest = random.chance(0.7) ? until / 8 : until;
        outage.at = Time(between(random, Duration(0), latest));
        outage.lasts = between(random, microseconds(1), until);
        s.faults.outages.push_back(outage);
    };
    const auto add_switch = [&](Outage::Kind kind) {
        add(kind, Outage::Node::fabric_switch);
        s.faults.outages.back().index = between(random, 0, count_switches(s.topology) - 1);
    };
    if (random.chance(0.2)) add_switch(Outage::Kind::crash);
    if (random.chance(0.1)) add_switch(Outage::Kind::pause);
    if (random.chance(0.15)) add(Outage::Kind::pause, Outage::Node::worker);
    if (random.chance(0.05)) add(Outage::Kind::pause, Outage::Node::server);
    if (random.chance(0.2)) add(Outage::Kind::crash, Outage::Node::worker);
    if (random.chance(0.2)) add(Outage::Kind::crash, Outage::Node::server);
    // In the order of the command line: crashes, then pauses.
    std::ranges::stable_sort(s.faults.outages, {}, &Outage::kind);
}

void draw_deadline(Random& random, Scenario& s) {
    if (s.ends_incarnations() || random.chance(0.05)) {
        s.deadline = between(random, milliseconds(100), milliseconds(1000));
    }
}

// Draws packets that arrive after the end of their incarnation (H27, docs/spec/hazards.md#h27).
void draw_replay(Random& random, Scenario& s) {
    if (!s.deadline || !random.chance(0.3)) return;
    s.faults.replay = 0.2;
    s.faults.reorder = 0.05;
    s.faults.reorder_delay = *s.deadline * 2;
}

void draw_straggler(Random& random, Scenario& s) {
    if (!random.chance(0.15) || s.rate_bits_per_s < 10'000'000'000) return;
    s.straggler = between(random, 0, s.workers() - 1);
    s.straggler_factor = between(random, 2, 100);
}

// A SwitchML job needs a single switch, no crashes and no deadlines.
void draw_systems(Random& random, Scenario& s) {
    const bool possible =
        s.topology.shape == TopologySpec::Shape::star && !s.deadline &&
        std::ranges::all_of(s.faults.outages, [](const Outage& outage) { return outage.kind == Outage::Kind::pause; });
    if (!possible || !random.chance(0.8)) return;
    for (unsigned job = 0; job < s.jobs; ++job) {
        const bool atp = s.jobs > 1 && random.chance(0.3);
        s.systems.push_back({.kind = atp ? System::Kind::atp : System::Kind::switchml});
    }
}

void draw_switchml_lanes(Random& random, Scenario& s) {
    static constexpr std::array<std::uint16_t, 6> lanes{1, 3, 8, 32, 64, 366};
    if (!s.systems.empty()) s.switchml.lanes = random.pick(lanes);
}

void draw_switchml_mode(Random& random, Scenario& s) {
    const bool harmless = s.faults.loss == 0 && s.faults.duplicate == 0;
    if (!s.systems.empty() && harmless && random.chance(0.5)) s.switchml.mode = Mode::lossless;
}

constexpr std::array<Word<Mode>, 3> mode_words{
    {{"lossless", Mode::lossless}, {"faithful", Mode::faithful}, {"offsets", Mode::compares_offsets}}};

TextForm<System> system() {
    return {.placeholder = "SYSTEM[:TRANSPORT]",
            .accepted = std::string(system_forms),
            .parse = parse_system,
            .print = [](const System& value) { return to_string(value); }};
}

// A row for one kind of outage. Both kinds are in one field; the row of crashes draws both.
ScenarioRow outage_row(Outage::Kind kind, std::string flag, std::string help, Draw draw) {
    const auto read = [kind](std::string_view text, Scenario& s) {
        const auto outage = parse_outage(kind, text);
        if (outage) s.faults.outages.push_back(*outage);
        return outage.has_value();
    };
    const auto write = [kind](const Scenario& s) {
        std::vector<std::string> texts;
        for (const Outage& outage : s.faults.outages) {
            if (outage.kind == kind) texts.push_back(to_string(outage));
        }
        return texts;
    };
    return {.group = Group::faults,
            .flag = std::move(flag),
            .placeholder = "NODE@TIME[+TIME]",
            .accepted = std::string(outage_forms),
            .help = std::move(help),
            .repeats = true,
            .read = read,
            .write = write,
            .draw = draw};
}

ScenarioRow straggler_row() {
    const auto read = [](std::string_view text, Scenario& s) {
        const auto straggler = parse_straggler(text);
        if (!straggler) return false;
        s.straggler = straggler->rank;
        s.straggler_factor = straggler->factor;
        return true;
    };
    const auto write = [](const Scenario& s) -> std::vector<std::string> {
        if (!s.straggler) return {};
        return {to_string(Straggler{.rank = *s.straggler, .factor = s.straggler_factor})};
    };
    return {.group = Group::faults,
            .flag = "--straggler",
            .placeholder = "RANK[:FACTOR]",
            .accepted = std::string(straggler_forms),
            .help = "rank whose uplink is slower by the factor, in every job [factor 100]",
            .read = read,
            .write = write,
            .draw = draw_straggler};
}

void add_outage_rows(Rows& rows) {
    rows.push_back(outage_row(Outage::Kind::crash, "--crash",
                              "a node fails and starts again: a switch empty; a worker or server ends the incarnation",
                              draw_outages));
    rows.push_back(
        outage_row(Outage::Kind::pause, "--pause", "a node does nothing for a time, and keeps its state", nullptr));
    const auto add = [&](Outage::Kind kind, const char* flag, const char* help) {
        rows.push_back(outage_row(kind, flag, help, nullptr));
    };
    add(Outage::Kind::kill, "--kill", "the process of a switch ends, and starts again empty; its node still forwards");
    add(Outage::Kind::silence, "--silence", "the host of a worker sends and receives nothing, and its processes end");
    add(Outage::Kind::leave, "--leave", "a worker leaves in order while the others go on, which ends its job");
    add(Outage::Kind::cut, "--cut", "no packet passes between a node and the next switch");
    add(Outage::Kind::cut_up, "--cut-up", "no packet passes from a node to the next switch");
    add(Outage::Kind::cut_down, "--cut-down", "no packet passes from the next switch to a node");
    rows.push_back(toggle<&Scenario::faults, &Faults::limits_reports>(
        Group::faults, "--limit-reports", true, "hosts report closed ports at most once a second"));
    rows.push_back(row<&Scenario::deadline>(Group::jobs, "--deadline", duration(),
                                            "deadline of each operation [none; 1s if a worker or server crashes]",
                                            draw_deadline));
    rows.push_back(row<&Scenario::faults, &Faults::replay>(
        Group::faults, "--replay", share(),
        "share of the packets that are delivered once more to the next incarnation of their job [0]", draw_replay));
}

}  // namespace

void add_fault_rows(Rows& rows) {
    rows.push_back(row<&Scenario::faults, &Faults::loss>(
        Group::faults, "--loss", share(), "share of the packets that every link loses [0]",
        [](Random& random, Scenario& s) { s.faults.loss = random.pick(drawn_rates); }));
    rows.push_back(row<&Scenario::faults, &Faults::lossy_worker>(
        Group::faults, "--lossy-worker", number<unsigned>(0, 1023),
        "rank: only the links of this worker's host lose packets, in every job [all links]"));
    rows.push_back(row<&Scenario::faults, &Faults::duplicate>(
        Group::faults, "--duplicate", share(), "share of the packets that every link delivers twice [0]",
        [](Random& random, Scenario& s) { s.faults.duplicate = random.pick(drawn_rates); }));
    rows.push_back(row<&Scenario::faults, &Faults::reorder>(
        Group::faults, "--reorder", share(), "share of the packets that every link delays, so that others overtake [0]",
        [](Random& random, Scenario& s) { s.faults.reorder = random.pick(drawn_rates); }));
    rows.push_back(row<&Scenario::faults, &Faults::reorder_delay>(Group::faults, "--reorder-delay", duration(),
                                                                  "longest such delay [20us]", draw_reorder_delay));
    rows.push_back(row<&Scenario::faults, &Faults::from>(Group::faults, "--harm-from", instant(),
                                                         "time before which links are perfect [0]", draw_begin));
    rows.push_back(row<&Scenario::faults, &Faults::until>(Group::faults, "--heal-at", instant(),
                                                          "time from which links are perfect [never]", draw_healing));
    add_outage_rows(rows);
    rows.push_back(straggler_row());
}

void add_switchml_rows(Rows& rows) {
    rows.push_back(row<&Scenario::systems>(Group::jobs, "--system", system(),
                                           "system that sums gradients; jobs take several systems in turn [atp]",
                                           draw_systems));
    rows.push_back(row<&Scenario::switchml, &SwitchmlSpec::pool>(
        Group::switchml, "--pool", number<std::uint32_t>(1, std::uint64_t{1} << 24U),
        "slots of the switch; each job has an equal part, rounded down to a power of two [128 for each job, 512 if "
        "links are faster than 10Gbps]",
        [](Random& random, Scenario& s) {
            if (!s.systems.empty()) s.switchml.pool = s.jobs << between(random, 0, 8);
        }));
    rows.push_back(row<&Scenario::switchml, &SwitchmlSpec::lanes>(
        Group::switchml, "--switchml-lanes",
        number<std::uint16_t>(1, switchml::max_lane_bytes / switchml::half_lane_bytes),
        "lanes of each packet; 366 fill an MTU [32]", draw_switchml_lanes));
    rows.push_back(row<&Scenario::switchml, &SwitchmlSpec::timeout>(
        Group::switchml, "--switchml-timeout", interval(),
        "time without a result after which a worker sends a packet again [1ms]", [](Random& random, Scenario& s) {
            if (!s.systems.empty()) s.switchml.timeout = between(random, microseconds(200), milliseconds(2));
        }));
    rows.push_back(toggle<&Scenario::switchml, &SwitchmlSpec::halves>(
        Group::switchml, "--switchml-halves", true, "lanes are sent as float16 in half the bytes",
        [](Random& random, Scenario& s) {
            if (!s.systems.empty()) s.switchml.halves = s.plain_share == 0 && random.chance(0.2);
        }));
    rows.push_back(row<&Scenario::switchml, &SwitchmlSpec::mode>(
        Group::switchml, "--switchml-mode", words("MODE", mode_words),
        "lossless: no recovery, and no queue drops a packet; faithful: the paper's recovery, which a late duplicate "
        "deceives; offsets: recovery that compares offsets [offsets]",
        draw_switchml_mode));
    rows.push_back(row<&Scenario::time_limit>(
        Group::jobs, "--time-limit", instant(), "virtual time after which an unfinished run has failed [1000s]",
        [](Random& /*random*/, Scenario& s) { s.time_limit = s.faults.until + healed_phase; }));
}

}  // namespace atp::sim
