// SPDX-License-Identifier: Apache-2.0
#include "figure/trial.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace atp::figure {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string words_of(const Trial& trial) { return fmt::format("{} ", fmt::join(command_of(trial, 3, 7), " ")); }

TEST(Trial, CommandHasTheLinksOfTheScenario) {
    Trial trial{.network = linked("star:8", 100'000'000), .systems = {"atp", "gloo"}, .flags = {"--switch", "xdp"}};
    EXPECT_THAT(words_of(trial), HasSubstr("--topology star:8 --rate 100000000bit --queue 1048576 --rounds 3 "));
    EXPECT_THAT(words_of(trial), HasSubstr("--systems atp,gloo --bytes 8000000 "));
    EXPECT_THAT(words_of(trial), HasSubstr("--fault drop>1500@hosts --fault-seed 7 --switch xdp "))
        << "no frame is that long, but links then carry single frames";
    EXPECT_THAT(words_of(trial), Not(HasSubstr("--memory")));
    trial.network.faults.loss = 0.01;
    EXPECT_THAT(words_of(trial), HasSubstr("--fault loss=0.010000000@hosts --fault-seed 7"));
    trial.network.faults.lossy_worker = 2;
    EXPECT_THAT(words_of(trial), HasSubstr("loss=0.010000000@host2 "));
    trial.network.aggregators = 64;
    EXPECT_THAT(words_of(trial), HasSubstr("--memory "));
}

TEST(Trial, SwitchmlHasTheSlotsOfItsSimulation) {
    const Trial trial =
        switchml_trial(linked("star:2", 1'000'000), {.pool = 16, .lanes = 32, .timeout = Duration(5000)});
    EXPECT_THAT(words_of(trial), HasSubstr("--systems switchml "));
    EXPECT_THAT(words_of(trial), HasSubstr("--rank-flags=--lanes 32 --window 16 --switchml-timeout 5us "));
    EXPECT_EQ(trial.network.switchml.pool, 16U);
    EXPECT_EQ(trial.network.system_of(0).kind, sim::System::Kind::switchml);
}

TEST(Trial, CommandHasTheModelsOfTheScenario) {
    Trial trial{.network = training("star:8", 100'000'000, {"VGG16"}, 32), .systems = {"atp"}};
    EXPECT_EQ(trial.network.scale, 262) << "217 ms of computation and 44 of transfer, 1000 times slower";
    EXPECT_THAT(words_of(trial), HasSubstr("--model-scale 262 --slowness 1000 --batch 32 --model VGG16 "));
    EXPECT_THAT(words_of(trial), Not(HasSubstr("--bytes")));
    EXPECT_THAT(words_of(trial), Not(HasSubstr("--job-hosts")));
    EXPECT_NEAR(training_speed(trial.network, 0, 2), 0.414, 0.001);
    trial.network.models.emplace_back("ResNet50");
    trial.network.jobs = 2;
    EXPECT_THAT(words_of(trial), HasSubstr("--job-flags=--model VGG16 --job-flags=--model ResNet50 --jobs 2 "));
}

TEST(Trial, JobsThatShareNoHostsFollowEachOtherInEachRack) {
    Trial trial{.network = linked("star:5", 100'000'000), .systems = {"atp"}};
    trial.network.jobs = 2;
    trial.network.job_workers = {5, 2};
    EXPECT_THAT(words_of(trial), HasSubstr("--topology star:5 "));
    EXPECT_THAT(words_of(trial), HasSubstr("--job-hosts 0,1,2,3,4 --job-hosts 0,1 "));
    trial.network.placement = sim::Placement::separate;
    EXPECT_THAT(words_of(trial), HasSubstr("--topology star:7 "));
    EXPECT_THAT(words_of(trial), HasSubstr("--job-hosts 0,1,2,3,4 --job-hosts 5,6 "));
    trial.network.topology = *sim::parse_topology("racks:2x2");
    trial.network.job_workers = {3};
    EXPECT_THAT(words_of(trial), HasSubstr("--topology racks:2x4 "));
    EXPECT_THAT(words_of(trial), HasSubstr("--job-hosts 0,1,4 --job-hosts 2,3,6 "));
}

constexpr const char* printed = R"({"bytes": 1000, "rate_bps": 1e6, "rounds": [)"
                                R"({"atp": {"seconds": [[3, 1, 2], [4]], "goodput_bps": 500000}},)"
                                R"({"atp": {"seconds": [[5], [6]], "goodput_bps": 972259}}]})";

TEST(Trial, OutcomeIsThatOfOneRound) {
    const Outcome first(printed, 0);
    EXPECT_DOUBLE_EQ(first.seconds("atp"), 2);
    EXPECT_DOUBLE_EQ(first.seconds("atp", 1), 4);
    EXPECT_DOUBLE_EQ(first.goodput_bps("atp"), 500'000);
    EXPECT_DOUBLE_EQ(first.goodput_bps("atp", 1), 2000);
    const Outcome second(printed, 1);
    EXPECT_DOUBLE_EQ(second.seconds("atp"), 5);
    EXPECT_NEAR(second.share_of_limit("atp"), 1, 1e-5);
    EXPECT_DOUBLE_EQ(second.number("/bytes"), 1000);
    EXPECT_EQ(second.of_round("atp", "seconds/1/0").get<double>(), 6);
}

TEST(Trial, OutcomeThatLacksANumberFails) {
    EXPECT_THROW(Outcome("no JSON", 0), Failed);
    EXPECT_THROW((void)Outcome(printed, 0).number("/stream_bps"), Failed);
    EXPECT_THROW((void)Outcome(printed, 2).seconds("atp"), Failed);
    EXPECT_THROW((void)Outcome(printed, 0).seconds("gloo"), Failed);
    EXPECT_THROW((void)Outcome(printed, 0).seconds("atp", 2), Failed);
    EXPECT_THROW((void)Outcome(printed, 0).of_round("atp", "series"), Failed);
}

// A Lab whose commands print the text above, and their number.
class Measuring : public testing::Test {
  protected:
    void TearDown() override { std::filesystem::remove_all(kept_); }
    LabOptions options(unsigned run) {
        return {.runs = 2,
                .run = run,
                .command = [this](const auto&) { return ++commands_, std::string(printed); },
                .kept = kept_};
    }
    const std::filesystem::path kept_ =
        std::filesystem::path(testing::TempDir()) / ("atp_trial_test_" + std::to_string(getpid()));
    int commands_ = 0;
};

// Two jobs on links of 1 Mbit/s, whose operations take a second and bring each host's link these bytes.
std::string printed_of(double busy, double bytes) {
    return fmt::format(
        R"({{"jobs": 2, "rate_bps": 1e6, "systems": {{"atp": {{"machine_busy": {}, "seconds": [0.5, 1.5],)"
        R"("traffic_of_an_operation": {{"host_sent_bytes": 0, "host_received_bytes": {}}}}}}}}})",
        busy, bytes);
}

// What is noted as the largest share of the processors in trials that print these texts.
double noted_of(LabOptions options, const std::vector<std::string>& prints) {
    double most = 0;
    options.busiest = &most;
    std::filesystem::remove_all(options.kept);
    unsigned runs = 0;
    options.command = [&](const auto&) { return prints[runs++]; };
    std::vector<Trial> trials;
    for (unsigned i = 0; i < prints.size(); ++i) {
        trials.push_back({.network = linked("star:2", 1'000'000), .systems = {"atp"}, .program = "/bin/true"});
        trials.back().network.iterations = i + 1;
    }
    (void)measured(Lab(options), trials);
    return most;
}

TEST_F(Measuring, LargestShareOfTheProcessorsIsNoted) {
    EXPECT_DOUBLE_EQ(noted_of(options(0), {printed_of(0.5, 0), printed_of(0.9, 0), printed_of(0.6, 0)}), 0.9);
}

TEST_F(Measuring, ProcessorsOfASystemThatFillsItsLinksDoNotCount) {
    EXPECT_DOUBLE_EQ(noted_of(options(0), {printed_of(0.5, 0), printed_of(0.9, 60'000)}), 0.5) << "0.96 of the link";
    EXPECT_DOUBLE_EQ(noted_of(options(0), {printed_of(0.5, 0), printed_of(0.9, 59'000)}), 0.9) << "0.944 of it";
    const std::string local = R"({"systems": {"atp": {"machine_busy": 0.9, "traffic_of_an_operation": null}}})";
    EXPECT_DOUBLE_EQ(noted_of(options(0), {local}), 0.9) << "no links";
}

TEST_F(Measuring, SystemWithoutItsProcessorsFails) {
    EXPECT_THROW((void)noted_of(options(0), {R"({"systems": {"atp": {}}})"}), Failed);
}

TEST_F(Measuring, WithoutTheProgramTheMachineLacksIt) {
    const Trial trial{.network = linked("star:2", 1'000'000), .systems = {"atp"}, .program = "bench/absent"};
    EXPECT_THROW((void)measured(Lab(options(0)), trial), Lacking);
}

TEST_F(Measuring, RoundsOfOneTrialComeFromOneCommand) {
    Trial trial{.network = linked("star:2", 1'000'000), .systems = {"atp"}, .program = "/bin/true"};
    EXPECT_DOUBLE_EQ(measured(Lab(options(0)), trial).seconds("atp"), 2);
    EXPECT_DOUBLE_EQ(measured(Lab(options(1)), trial).seconds("atp"), 5);
    EXPECT_EQ(commands_, 1);
    trial.network = linked("star:3", 1'000'000);
    (void)measured(Lab(options(0)), trial);
    EXPECT_EQ(commands_, 2) << "another trial";
}

TEST_F(Measuring, EachRunRepeatsACommandThatMeasuresOnce) {
    for (const unsigned run : {0U, 1U, 1U}) {
        EXPECT_DOUBLE_EQ(measured_once(Lab(options(run)), {"bench/cluster/share", "--json"}).number("/bytes"), 1000);
        EXPECT_EQ(commands_, run + 1);
    }
}

}  // namespace
}  // namespace atp::figure
