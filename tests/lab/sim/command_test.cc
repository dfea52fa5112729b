// SPDX-License-Identifier: Apache-2.0
// The program `atp-lab` run by a shell: its output and its exit status.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "support/shell.h"

namespace atp::sim {
namespace {

using test::Outcome;

// Runs `arguments` after the shell command `before`.
Outcome atp(const std::string& arguments, const std::string& before = "true",
            const std::string& program = ATP_PROGRAM) {
    return test::shell(before + " && " + program + " 2>&1 " + arguments);
}

struct Case {
    const char* arguments;
    int status;
    const char* says;
};

class Command : public testing::TestWithParam<Case> {};

TEST_P(Command, ArgumentsGiveTheirStatusAndOutput) {
    const Outcome outcome = atp(GetParam().arguments);
    EXPECT_EQ(outcome.status, GetParam().status) << outcome.output;
    EXPECT_NE(outcome.output.find(GetParam().says), std::string::npos) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(
    All, Command,
    testing::Values(
        Case{"simulate --bytes 4kB", 0, "verified"},  //
        Case{"simulate --topology star:1 --bytes 4 --aggregators 1", 0, ": 1 job of 1 worker, 1 aggregator a switch"},
        Case{"simulate --bytes 4kB --loss 1 --time-limit 1ms", 1, "replay with a packet trace: "},
        Case{"", 2, "no subcommand given (simulate, models, figure, check"},  //
        Case{"simulate --system ps", 2, "dedicated or colocated"}, Case{"simulate --system ring:udp", 2, "ring:udp"},
        Case{"simulate --system ring --model alexnet --scale 1e4 --json", 0, "\"samples_per_s\": "},
        Case{"simulate --background w9", 2, "worker 9"}, Case{"models", 0, "138357544"},                  //
        Case{"models resnet50 --json", 0, "\"parameters\": 25557032"}, Case{"models LeNet", 2, "VGG16"},  //
        Case{"switch --parent ''", 2, "--parent: empty value; expected host:port"},                       //
        Case{"simulat", 2, "did you mean 'simulate'?"},                                                   //
        Case{"simulate --swarm 2 --loss 0.1", 2, "--loss"},
        Case{"simulate --topology star:2 --bytes 1MB --leave w1@1us", 0, "given up: job 00000001: a rank left"},
        Case{"simulate --bytes 4 --first-job 20 --json", 0, "\"job\": \"00000014\""},
        Case{"simulate --calm", 2, "simulate: --calm needs --joining"},
        Case{"simulate --swarm 2 --trace /dev/null", 2, "--swarm 1"}, Case{"simulate --audit --no-audit", 2, "--audit"},
        Case{"simulate --aggregation racks --no-aggregation", 2, "--aggregation"},
        Case{"simulate --trace ''", 2, "--trace: empty value; expected a path"},  //
        Case{"check --protocol formation --max-states 9", 0, "configurations (+) stopped at --max-states"},
        Case{"check --only form3 --max-states 9", 0, "1 configuration (+) stopped at --max-states"},
        Case{"check --list --json", 0, "\"losses\": "}, Case{"check --list-breaks --json", 0, "\"hazard\": "}));

INSTANTIATE_TEST_SUITE_P(
    RealPackets, Command,
    testing::Values(Case{"--version", 0, "atp "},  //
                    Case{"bench --workers 33", 2, "1 to 32"},
                    Case{"bench --bytes 99999999999GB", 2, "'99999999999GB' is too large; use bytes"},
                    Case{"bench --rank 2 --world 2 --rendezvous 127.0.0.1:1 --switch 127.0.0.1:1", 2, "--rank 2"},
                    Case{"bench --network --rank 1 --world 2 --rendezvous 127.0.0.1:1", 2, "--switch"},
                    Case{"bench --world 2", 2, "--rank"},  //
                    Case{"bench --rank 0 --world 1 --rendezvous 127.0.0.1:1 --switch 127.0.0.1:1 --workers 2", 2,
                         "--workers"},
                    Case{"bench --ladder --peer gloo", 2, "--peer"}, Case{"bench --peer-algorithm ring", 2, "--peer"},
                    Case{"bench --peer gloo --peer-algorithm fast", 2, "halving_doubling"},
                    Case{"switch --listen 127.0.0.1:0 --hold 0s", 2, "--hold"}));

// If the disk is full when the program writes its last bytes, it must report a failure.
INSTANTIATE_TEST_SUITE_P(
    FullDisk, Command,
    testing::Values(Case{"simulate --bytes 4 --trace /dev/full", 1, "--trace: cannot write /dev/full: No space"},
                    Case{"simulate --trace /dev/full", 1,
                         "atp-lab simulate: --trace: cannot write /dev/full: No space"},
                    Case{"simulate --trace /no/folder", 1, "--trace: cannot write /no/folder: No such file"},
                    Case{"simulate --bytes 4 >/dev/full", 1, "standard output"},
                    Case{"check --list-breaks >/dev/full", 1, "standard output"},
                    Case{"check --list-breaks >&-", 1, "standard output"},
                    Case{"switch --listen 127.0.0.1:0 >/dev/full", 1, "standard output"},
                    Case{"switch --listen 127.0.0.1:0 --json >/dev/full", 1, "standard output"},
                    Case{"simulate --help >/dev/full", 1, "standard output"}));

std::string temporary(const std::string& name) {
    return (std::filesystem::temp_directory_path() / (name + std::to_string(getpid()))).string();
}

// The product's program reads the traces of the simulator too.
Outcome trace(const std::string& arguments, const std::string& before = "true") {
    return atp("trace " + arguments, before, ATP_PRODUCT);
}

TEST(TraceCommand, LinesOfASimulationAreFiltered) {
    const std::string file = temporary("atp-trace-");
    const Outcome outcome =
        trace(file + " --job 00000001 --seq 3 --type GRADIENT --event completed",
              ATP_PROGRAM " simulate --topology star:2 --bytes 4kB --trace " + file + " >/dev/null");
    std::filesystem::remove(file);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("us s0 completed GRADIENT job=00000001 "), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find(" seq=3 "), std::string::npos) << outcome.output;
    EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 1) << outcome.output;
}

TEST(TraceCommand, LinesOfSeveralFilesAreMergedByTime) {
    const std::string one = temporary("atp-trace-one-"), two = temporary("atp-trace-two-");
    const std::string before = "printf '20.000us a sent ACK job=00000001\\n100.000us a sent ACK job=00000002\\n' >" +
                               one + " && printf '3.000us b received ACK job=00000003\\n' >" + two;
    const Outcome outcome = trace(one + ' ' + two, before);
    std::filesystem::remove(one);
    std::filesystem::remove(two);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(
        outcome.output,
        "3.000us b received ACK job=00000003\n20.000us a sent ACK job=00000001\n100.000us a sent ACK job=00000002\n");
}

TEST(TraceCommand, FileThatIsNoTraceOrCannotBeReadIsReported) {
    const Outcome foreign = trace(ATP_PROGRAM);
    EXPECT_EQ(foreign.status, 1);
    EXPECT_NE(foreign.output.find("lines are not trace lines"), std::string::npos);
    for (const std::string unreadable : {"/no/file", "/tmp"}) {
        const Outcome outcome = trace(unreadable);
        EXPECT_EQ(outcome.status, 2);
        EXPECT_NE(outcome.output.find("cannot read " + unreadable), std::string::npos) << outcome.output;
    }
}

TEST(SimulateCommand, MissingMemoryIsReported) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers need more address space than `ulimit -v 1000000` permits";
#endif
    const Outcome outcome = atp("simulate --aggregators 16777216 --bytes 4", "ulimit -v 1000000");
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    EXPECT_NE(outcome.output.find("out of memory"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace atp::sim
