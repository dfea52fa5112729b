// SPDX-License-Identifier: Apache-2.0
// Ranks of `atp-lab bench` as processes.
#include "program.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <utility>

namespace atp::test {
namespace {

TEST(LabBench, SwitchMlProtocolReportsItsGoodputAndPackets) {
    Program program({"bench", "--protocol", "switchml", "--workers", "3", "--bytes", "100kB", "--lanes", "64",
                     "--window", "32", "--rounds", "2", "--json"},
                    ATP_LAB_PROGRAM);
    EXPECT_EQ(program.status(), 0) << program.output();
    const auto size = nlohmann::json::parse(program.output(), nullptr, false);
    ASSERT_TRUE(size.is_object()) << program.output();
    EXPECT_EQ(size["protocol"], "switchml");
    EXPECT_TRUE(size["verified"].get<bool>());
    EXPECT_GT(size["systems"]["switchml"]["goodput_bps"].get<double>(), 0);
    // 5 rounds of 391 fragments and one barrier each, without resends.
    EXPECT_EQ(size["packets"].get<std::uint64_t>() - size["resent"].get<std::uint64_t>(), 5U * (391 + 1));
}

TEST(LabBench, WindowLargerThanThePoolIsRefusedWithTheFreeSlots) {
    Program program({"bench", "--protocol", "switchml", "--workers", "2", "--bytes", "100kB", "--lanes", "64",
                     "--window", "1024", "--memory", "64kB"},
                    ATP_LAB_PROGRAM);
    EXPECT_EQ(program.status(), 1);
    EXPECT_NE(program.output().find("slots are free"), std::string::npos) << program.output();
}

TEST(LabBench, SwitchMlFlagsWithoutItsProtocolAreRefused) {
    for (const char* flag : {"--switchml-mode=faithful", "--switchml-timeout=2ms"}) {
        Program program({"bench", flag}, ATP_LAB_PROGRAM);
        EXPECT_NE(program.status(), 0);
        EXPECT_NE(program.output().find("requires --protocol"), std::string::npos) << flag << program.output();
    }
}

TEST(LabBench, ModelIsTrainedWithItsBucketsAndItsComputation) {
    for (const char* protocol : {"atp", "switchml"}) {
        Program program(
            {"bench", "--protocol", protocol, "--workers", "2", "--network", "--model", "AlexNet", "--scale", "2000",
             "--slowness", "50", "--batch", "32", "--rounds", "2", "--warmup", "1", "--json"},
            ATP_LAB_PROGRAM);
        EXPECT_EQ(program.status(), 0) << program.output();
        const auto size = nlohmann::json::parse(program.output(), nullptr, false);
        ASSERT_TRUE(size.is_object()) << program.output();
        EXPECT_NEAR(size["bytes"].get<double>(), 61'100'840 * 4 / 2000.0, 400);
        ASSERT_EQ(size["seconds"].size(), 2U);
        // Half of the computation of 64 images, 20 ms, 50 times slower and divided by 2,000.
        for (const double seconds : size["seconds"]) EXPECT_GE(seconds, 0.0002);
    }
}

TEST(LabBench, ModelRefusesFlagsThatItReplaces) {
    for (const auto& [flag, value] : {std::pair{"--bytes", "1MB"}, {"--collective", "both"}, {"--peer", "gloo"}}) {
        Program program({"bench", "--model", "VGG16", flag, value}, ATP_LAB_PROGRAM);
        EXPECT_EQ(program.status(), 2) << program.output();
        EXPECT_NE(program.output().find(flag), std::string::npos) << program.output();
    }
    Program program({"bench", "--scale", "10"}, ATP_LAB_PROGRAM);
    EXPECT_EQ(program.status(), 2);
    EXPECT_NE(program.output().find("--model"), std::string::npos) << program.output();
}

TEST(LabBench, AggregatorsInPartsAndForwardedFragmentsGiveTheSums) {
    Program program({"bench", "--workers", "2", "--bytes", "100kB", "--rounds", "2", "--linear", "--partition", "3",
                     "--job-number", "5", "--forward-share", "0.5", "--json"},
                    ATP_LAB_PROGRAM);
    EXPECT_EQ(program.status(), 0) << program.output();
    const auto size = nlohmann::json::parse(program.output(), nullptr, false);
    ASSERT_TRUE(size.is_object()) << program.output();
    EXPECT_TRUE(size["verified"].get<bool>());
    EXPECT_GT(size["packets"].get<std::uint64_t>(), 0U) << "the flags concern packets, so the ranks send some";
}

TEST(LabBench, PartOfAJobWithoutANumberIsRefused) {
    Program program({"bench", "--partition", "2"}, ATP_LAB_PROGRAM);
    EXPECT_NE(program.status(), 0);
    EXPECT_NE(program.output().find("requires --job-number"), std::string::npos) << program.output();
}

TEST(LabSwitch, AssignmentIsRefusedForSwitchMl) {
    Program program({"switch", "--listen", "127.0.0.1:4790", "--protocol", "switchml", "--linear"}, ATP_LAB_PROGRAM);
    EXPECT_EQ(program.status(), 2);
    EXPECT_NE(program.output().find("--linear and --partition do not go with"), std::string::npos) << program.output();
}

TEST(LabSwitch, FlagsOfExperimentsAreRefusedForTheKernelSwitch) {
    for (const char* flag : {"--port-rate=1Gbps", "--queue=64kB", "--ecn=32kB", "--loss=1%", "--lossy-ports=1",
                             "--seed=3", "--protocol=switchml"}) {
        const std::string name(flag, std::string_view(flag).find('='));
        for (const auto& [kernel, value] : {std::pair{"--xdp", "eth1"}, {"--link-rate", "eth1=1Gbit"}}) {
            Program program({"switch", "--listen", "127.0.0.1:4790", kernel, value, flag}, ATP_LAB_PROGRAM);
            EXPECT_EQ(program.status(), 2) << flag << program.output();
            EXPECT_NE(program.output().find("--xdp and --link-rate do not go with " + name), std::string::npos)
                << program.output();
        }
    }
}

}  // namespace
}  // namespace atp::test
