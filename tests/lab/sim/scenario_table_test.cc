// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/hash.h"
#include "sim/swarm.h"

namespace atp::sim {
namespace {

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

// Initializes a field of each type. Never evaluated.
struct AnyField {
    template <class T>
    requires(!is_optional<T>) operator T() const { return T(); }
};

template <class T, std::size_t... I>
constexpr bool accepts_fields(std::index_sequence<I...> /*indices*/) {
    return requires { T{(static_cast<void>(I), AnyField{})...}; };
}

// Number of fields of an aggregate: the longest list of initializers that it accepts.
template <class T, std::size_t Count = 0>
constexpr std::size_t count_fields() {
    if constexpr (accepts_fields<T>(std::make_index_sequence<Count + 1>())) {
        return count_fields<T, Count + 1>();
    } else {
        return Count;
    }
}

using Samples = std::map<std::string, std::string>;

Samples samples_of_network() {
    return {{"--topology", "racks:2x3"},
            {"--server", "dedicated"},
            {"--aggregation", "racks"},
            {"--placement", "separate"},
            {"--rate", "10000000000"},
            {"--uplink", "20000000000"},
            {"--delay", "3us"},
            {"--queue", "300000"},
            {"--ecn", "4000"},
            {"--spray", "2"},
            {"--spray-skew", "7us"},
            {"--overhead", "70"},
            {"--no-audit", ""},
            {"--lanes", "61"},
            {"--window", "128"},
            {"--aggregators", "8"},
            {"--scaling", "dynamic"},
            {"--lane-type", "int16"},
            {"--int32-switch", "0"},
            {"--ranks-of-host", "2"},
            {"--in-path", ""},
            {"--groups", ""},
            {"--keys", ""}};
}

Samples samples_of_jobs() {
    return {{"--jobs", "2"},
            {"--job-workers", "3"},
            {"--channels", "2"},
            {"--tensors", "3"},
            {"--iterations", "4"},
            {"--bytes", "5000"},
            {"--off-phase", "6ms"},
            {"--start-spread", "9ms"},
            {"--stagger", "7ms"},
            {"--arrivals", "8ms"},
            {"--first-job", "9"},
            {"--first-seq", "10"},
            {"--ageing", "11ms"},
            {"--initial-window", "12"},
            {"--largest-window", "14"},
            {"--train", "44"},
            {"--no-congestion-control", ""},
            {"--min-timeout", "2ms"},
            {"--max-timeout", "100ms"},
            {"--linear", ""},
            {"--partition", ""},
            {"--reactive", ""},
            {"--forward-share", "0.25"},
            {"--blind-resend", ""},
            {"--float-share", "0.5"},
            {"--overflow-share", "0.125"},
            {"--loss", "0.01"},
            {"--lossy-worker", "1"},
            {"--duplicate", "0.02"},
            {"--reorder", "0.03"},
            {"--reorder-delay", "30us"},
            {"--harm-from", "1ms"},
            {"--heal-at", "40ms"},
            {"--crash", "s0@1ms+2ms"},
            {"--pause", "w0.1@3ms+4ms"},
            {"--kill", "s0@5ms+6ms"},
            {"--silence", "w0.1@7ms+8ms"},
            {"--leave", "w0.0@9ms+1ms"},
            {"--cut", "s0@10ms+2ms"},
            {"--cut-up", "w0.1@11ms+3ms"},
            {"--cut-down", "w0.1@12ms+4ms"},
            {"--limit-reports", ""},
            {"--deadline", "1s"},
            {"--replay", "0.04"},
            {"--straggler", "1:50"},
            {"--plain-share", "0.75"},
            {"--owned-share", "0.25"},
            {"--no-ack-lists", ""},
            {"--gradients", "0.01:1.5"},
            {"--model", "VGG16"},
            {"--batch", "32"},
            {"--scale", "10"},
            {"--slowness", "250"},
            {"--bucket", "1000000"},
            {"--priority", ""},
            {"--burst", "9000"},
            {"--host-cost", "31ns@64700000000"},
            {"--tcp-cost", "0ns@45000000000"},
            {"--rdma-cost", "5ns"},
            {"--background", "w2:in:rdma@1ms+5ms"},
            {"--sample", "10ms"},
            {"--system", "ring:tcp"},
            {"--pool", "64"},
            {"--switchml-lanes", "16"},
            {"--switchml-timeout", "5ms"},
            {"--switchml-halves", ""},
            {"--switchml-mode", "faithful"},
            {"--time-limit", "7s"}};
}

// A value for each flag, other than its default.
const Samples& samples() {
    static const Samples values = [] {
        Samples all = samples_of_network();
        all.merge(samples_of_jobs());
        return all;
    }();
    return values;
}

TEST(ScenarioTable, EachRowWritesTheTextThatItRead) {
    Scenario all;
    std::set<std::string> written;
    for (const ScenarioRow& row : scenario_table()) {
        if (std::set<std::string>{"--audit", "--no-aggregation", "--proactive"}.contains(row.flag))
            continue;  // aliases
        ASSERT_TRUE(samples().contains(row.flag)) << row.flag;
        const std::string& text = samples().at(row.flag);
        EXPECT_TRUE(row.write(all).empty()) << row.flag << " is written although it has its default";
        EXPECT_TRUE(row.read(text, all)) << row.flag;
        EXPECT_EQ(row.write(all), std::vector<std::string>{text}) << row.flag;
        EXPECT_TRUE(written.insert(row.flag).second) << row.flag << " has two rows";
        EXPECT_NE((" " + to_flags(all) + " ").find(" " + row.flag + (text.empty() ? "" : " ") + text + " "),
                  std::string::npos)
            << row.flag << " in " << to_flags(all);
    }
    EXPECT_EQ(written.size(), samples().size());
}

// A field without a row would be missing from the flags that replay a run.
TEST(ScenarioTable, EachFieldOfAScenarioHasARow) {
    // `seed` has a flag of its own; `faults` and `switchml` are counted by their fields; `interfere` is for tests.
    // The eight kinds of outages share one field, and --straggler writes two.
    const std::size_t fields = count_fields<Scenario>() - 3 + count_fields<Faults>() - 1 + count_fields<SwitchmlSpec>();
    EXPECT_EQ(fields + 7 - 1, samples().size());
}

TEST(ScenarioTable, AValueThatItsFlagRejectsIsAProblem) {
    const auto problem_with = [](void (*set)(Scenario&)) {
        Scenario s;
        set(s);
        return problem_of(s).value_or("");
    };
    EXPECT_EQ(problem_with([](Scenario& s) { s.jobs = 0; }), "--jobs 0: use a whole number from 1 to 1024");
    EXPECT_EQ(problem_with([](Scenario& s) { s.overhead_bytes = 1001; }),
              "--overhead 1001: use a whole number from 0 to 1000");
    EXPECT_EQ(problem_with([](Scenario& s) { s.faults.loss = 1.5; }), "--loss 1.5: use a number from 0 to 1");
    EXPECT_EQ(problem_with([](Scenario& s) { s.iterations = 0; }),
              "--iterations 0: use a whole number from 1 to 1000000");
    EXPECT_EQ(problem_with([](Scenario& s) { s.topology.first = 33; }),
              "--topology star:33: use star:N, racks:RxN, dumbbell[:AxB] or fig9, with 1 to 32 for each");
}

// A seed that a report names must draw the same scenario in later versions. A change that is meant to alter the draws
// replaces the number.
TEST(ScenarioTable, SeedsDrawTheSameScenariosInEachVersion) {
    std::uint64_t digest = 0;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        for (const char byte : to_flags(draw_scenario(seed))) {
            digest = mix64(digest, static_cast<unsigned char>(byte));
        }
    }
    EXPECT_EQ(digest, 18180851115969062263U);
}

}  // namespace
}  // namespace atp::sim
