// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/atp-lab/scenario_flags.h"
#include "apps/common/command_text.h"
#include "sim/scenario_table.h"
#include "sim/scenario_text.h"
#include "sim/simulation.h"
#include "sim/swarm.h"

namespace atp::apps {
namespace {

sim::Scenario parse(const std::string& flags) {
    sim::Scenario scenario;
    Command command("simulate");
    add_scenario_flags(command, scenario);
    command.add_option("--seed", scenario.seed);
    command.parse(flags, false);
    return scenario;
}

// The error message of parsing; empty if it succeeds.
std::string complaint(const std::string& flags) {
    try {
        parse(flags);
    } catch (const CLI::ParseError& error) {
        return error.what();
    }
    return "";
}

TEST(Flags, BadValueIsRefusedWithFlagValueAndAcceptedValues) {
    const struct {
        const char* flags;
        const char* value;
        const char* accepted;
    } cases[] = {
        {"--rate fast", "'fast'", "Gbps"},
        {"--bytes 4megs", "'4megs'", "MiB"},
        {"--topology ring:4", "'ring:4'", "racks:RxN"},
        {"--topology star:33", "'star:33'", "1 to 32"},
        {"--loss 1.5", "'1.5'", "from 0 to 1"},
        {"--window 100", "'100'", "power of two"},
        {"--server cloud", "'cloud'", "colocated"},
        {"--jobs 0", "'0'", "from 1 to 1024"},
        {"--job-workers 3,x", "'x'", "from 1 to 1024"},
        {"--crash x1@3ms", "'x1@3ms'", "p<job>"},
        {"--straggler 1:0.5", "'1:0.5'", "factor from 1"},
        {"--delay 5", "'5'", "with ns, us, ms or s"},
        {"--system star", "'star'", "ps-n"},
        {"--system atp:tcp", "'atp:tcp'", "rdma"},
        {"--model LeNet", "'LeNet'", "ResNet50"},
        {"--scale 0.5", "'0.5'", "from 1"},
        {"--background h1", "'h1'", "w<rank>"},
        {"--background w1:udp", "'w1:udp'", ":tcp"},
        {"--gradients 0.01", "'0.01'", "MEDIAN:SPREAD"},
        {"--host-cost much", "'much'", "papers"},
        {"--sample 0", "'0'", "ms"},
        {"--pool 0", "'0'", "from 1"},
        {"--switchml-mode careful", "'careful'", "faithful"},
        {"--switchml-timeout 0ms", "'0ms'", "ms"},
    };
    for (const auto& c : cases) {
        const std::string text = complaint(c.flags);
        const std::string flag = std::string(c.flags).substr(0, std::string(c.flags).find(' '));
        EXPECT_NE(text.find(flag), std::string::npos) << text;
        EXPECT_NE(text.find(c.value), std::string::npos) << text;
        EXPECT_NE(text.find(c.accepted), std::string::npos) << text;
    }
}

TEST(Flags, UnknownFlagIsRefused) { EXPECT_NE(complaint("--lose 0.1"), ""); }

TEST(Flags, OutagesAreParsedForEveryKindOfNode) {
    const sim::Scenario s = parse("--crash s1@2ms+5ms --pause w0.3@10us --crash p2@1s+1ms --crash w4@1ms");
    ASSERT_EQ(s.faults.outages.size(), 4U);
    const auto find = [&](const std::string& text) {
        return std::ranges::any_of(s.faults.outages, [&](const sim::Outage& o) { return sim::to_string(o) == text; });
    };
    EXPECT_TRUE(find("s1@2ms+5ms"));
    EXPECT_TRUE(find("w0.3@10us+1ms"));
    EXPECT_TRUE(find("p2@1s+1ms"));
    EXPECT_TRUE(find("w0.4@1ms+1ms"));
}

// The flags of any scenario that a seed draws must give the same run, so that a person can reduce it.
TEST(Flags, FlagsOfARandomScenarioGiveTheSameRun) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const sim::Scenario drawn = sim::draw_scenario(seed);
        const sim::Scenario parsed = parse(sim::to_flags(drawn));
        EXPECT_EQ(sim::to_flags(parsed), sim::to_flags(drawn));
        EXPECT_EQ(sim::to_json(sim::run(parsed)), sim::to_json(sim::run(drawn))) << sim::to_flags(drawn);
    }
}

TEST(Flags, SwitchMlFlagsParseToTheValuesThatTheyWereWrittenFrom) {
    const std::string flags =
        "--jobs 2 --system switchml --system atp --pool 64 --switchml-lanes 366 --switchml-halves --switchml-mode "
        "faithful --switchml-timeout 2ms --seed 1";
    const sim::Scenario s = parse(flags);
    EXPECT_EQ(s.system_of(0).kind, sim::System::Kind::switchml);
    EXPECT_EQ(s.switchml_config(0).slots(), 64U);
    EXPECT_EQ(s.switchml_config(0).packet_bytes(), 10U + 366U * 2U);
    EXPECT_EQ(s.switchml.mode, switchml::Mode::faithful);
    EXPECT_EQ(s.switchml.timeout, std::chrono::milliseconds(2));
    EXPECT_EQ(parse(sim::to_flags(s)).switchml, s.switchml);
    EXPECT_EQ(sim::to_flags(parse(sim::to_flags(s))), sim::to_flags(s));
}

TEST(Flags, SystemAndModelFlagsParseToTheValuesThatTheyWereWrittenFrom) {
    const std::string flags =
        "--topology star:4 --server dedicated --jobs 3 --job-workers 4,2 --system atp --system ps:tcp --system "
        "ring:rdma --model VGG16 "
        "--model ResNet50 --batch 32 --scale 1000 --bucket 25000000 --host-cost 31ns@64700000000 --tcp-cost "
        "0@45000000000 --rdma-cost 0@64700000000 --background w2:in:rdma@1ms+5ms --background w0:out:tcp@0 --sample "
        "10ms --linear --partition "
        "--arrivals 2ms --loss 0.01 --lossy-worker 1 --forward-share 0.25 --gradients 0.01:1.5 --blind-resend "
        "--reactive --seed 1";
    const sim::Scenario s = parse(flags);
    EXPECT_EQ(s.host_cost, sim::cost_of_papers);
    EXPECT_EQ(s.tcp_cost, sim::tcp_cost_of_papers);
    EXPECT_EQ(s.rdma_cost, sim::rdma_cost_of_papers);
    EXPECT_EQ(s.system_of(1), (sim::System{.kind = sim::System::Kind::ps, .transport = sim::Transport::tcp}));
    EXPECT_EQ(s.system_of(3), sim::System{});
    EXPECT_EQ(s.model_of(1), "ResNet50");
    EXPECT_EQ(s.gradients, (LogNormal{.median = 0.01, .spread = 1.5}));
    EXPECT_EQ(s.faults.lossy_worker, 1U);
    EXPECT_EQ(s.workers_of(1), 2U);
    EXPECT_EQ(s.workers_of(2), 4U);
    EXPECT_EQ(s.background.at(0).lasts, std::chrono::milliseconds(5));
    EXPECT_EQ(sim::to_flags(parse(sim::to_flags(s))), sim::to_flags(s));
    for (const char* flag :
         {"--job-workers 4,2", "--system ps:tcp", "--model VGG16", "--batch 32", "--background w2:in:rdma@1ms+5ms",
          "--sample 10ms", "--linear", "--partition", "--reactive", "--arrivals 2ms", "--lossy-worker 1",
          "--gradients 0.01:1.5", "--blind-resend", "--forward-share 0.25", "--bucket 25000000"}) {
        EXPECT_NE(sim::to_flags(s).find(flag), std::string::npos) << flag << " in " << sim::to_flags(s);
    }
}

}  // namespace
}  // namespace atp::apps
