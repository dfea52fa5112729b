// SPDX-License-Identifier: Apache-2.0
// `atp bench` as processes that are stopped, are killed, or wait for a rank that never comes.
#include "program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fabric.h"
#include "net/udp_socket.h"

namespace atp::test {
namespace {

constexpr int interrupted = 130;

std::uint32_t members_of(const switchd::SwitchNode& node) {
    const auto channels = node.snapshot().shards[0].channels;
    return channels.empty() ? 0 : channels.front().present;
}
bool sums(const switchd::SwitchNode& node) {
    return node.snapshot().shards[0].packets.events[ATP_EVENT_COMPLETED] > 100;
}

// Ranks that sum for longer than any test.
struct Ranks {
    Ranks(std::uint32_t world, const std::string& switch_address) {
        const std::string rendezvous = free_port();
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            programs.emplace_back(std::vector<std::string>{
                "bench", "--network", "--rank", std::to_string(rank), "--world", std::to_string(world), "--rendezvous",
                rendezvous, "--switch", switch_address, "--lanes", "64", "--bytes", "64kB", "--rounds", "1000000"});
        }
    }
    std::deque<Program> programs;
};

TEST(AllPrograms, HelpListsFlagsWithTheirValuesAndEndsWithTheExitStatus) {
    for (const char* command : {"switch", "stats", "bench", "doctor", "trace"}) {
        Program program({command, "--help"});
        EXPECT_EQ(program.status(), 0);
        const std::string& help = program.output();
        EXPECT_TRUE(help.find("TIME   ") != std::string::npos || help.find("--job JOB   ") != std::string::npos)
            << help;
        EXPECT_NE(help.find("\nExample"), std::string::npos) << help;
        EXPECT_EQ(help.find("\n\n\n"), std::string::npos) << help;
        for (const char* noise : {"Needs:", "Excludes:", "REQUIRED", "{false}"}) {
            EXPECT_EQ(help.find(noise), std::string::npos) << noise;
        }
        std::istringstream lines(help);
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
        EXPECT_NE(help.find("Exit status: 0 "), std::string::npos) << help;
    }
}

struct Refusal {
    const char* arguments;
    const char* says;
};

TEST(AllPrograms, RefuseArgumentsWithTheReason) {
    const char* const lanes = "int32, int16, auto or int8";
    const std::vector<Refusal> refusals{
        {"switch --listen 127.0.0.1:0 --lanes 64 --memory 1000000GB",
         "--memory: exhausted: no memory for 1000000.0 GB of aggregators: this host or container has"},
        {"switch --listen 127.0.0.1:0 --lanes 64 --threads 2 --memory 591",
         "--memory: 591 bytes have no room for an aggregator of 64 lanes on each thread; use at least 592 bytes"},
        {"bench --magnitude 0", "--magnitude: '0' is invalid"},
        {"bench --magnitude 1e-9 --type float16", "--magnitude: float16 holds"},
        {"bench --magnitude 1 --type int32", "--magnitude: int32 has no magnitude"},
        {"bench --magnitude 1 --scaling fixed", "--magnitude: needs --scaling dynamic"},
        {"bench --collective both --peer gloo", "--collective excludes --peer"},
        {"bench --lanes 1", lanes},
        {"bench --lanes int4", lanes},
        {"bench --lanes 64:", lanes},
        {"bench --lanes :int16", lanes},
        {"bench --lanes 64int16", lanes},
        {"bench --lanes 64:int16:2", lanes},
        {"bench --switch 127.0.0.1:1", "--switch: ranks of one host send no packets: add --network"},
        {"bench --memory 1MB", "--memory: ranks of one host send no packets: add --network"},
        {"bench --ladder", "--ladder: ranks of one host send no packets: add --network"},
        {"bench --trace /dev/null", "--trace: ranks of one host send no packets: add --network"},
        {"bench --window 8", "--window: ranks of one host send no packets: add --network"},
        {"stats 127.0.0.1:1 --watch --interval 0", "--interval: '0' is invalid"},
        {"", "no subcommand given (switch, stats, top, metrics, drain, bench, doctor, trace, key)"},
        {"swich", "atp: unknown subcommand 'swich'; did you mean 'switch'?"},
        {"quit",
         "atp: unknown subcommand 'quit'; use one of switch, stats, top, metrics, drain, bench, doctor, trace, key"},
        {"--versoin", "atp: unknown flag '--versoin'; did you mean --version?"},
        {"stats --jsn", "atp stats: unknown flag '--jsn'; did you mean --json?"},
        {"stats --int=5s 127.0.0.1:1", "atp stats: unknown flag '--int'; did you mean --interval?"},
        {"stats 127.0.0.1:1 127.0.0.1:2", "atp stats: unexpected argument '127.0.0.1:2'"},
        // These flags are for experiments, which only the program of the laboratory makes.
        {"switch --protocol switchml", "--protocol"},
        {"switch --port-rate 1Gbps", "--port-rate"},
        {"bench --protocol switchml", "--protocol"},
        {"bench --no-halving", "--no-halving"}};
    for (const Refusal& refusal : refusals) {
        std::istringstream arguments(refusal.arguments);
        Program program({std::istream_iterator<std::string>(arguments), {}});
        EXPECT_EQ(program.status(), 2) << refusal.arguments;
        EXPECT_NE(program.output().find(refusal.says), std::string::npos) << program.output();
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory exceeds the limit
TEST(SwitchProgram, MemoryThatTheKernelRefusesIsReportedWithTheAmount) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    rlimit narrow = before;
    narrow.rlim_cur = rlim_t{1} << 30U;
    ASSERT_EQ(setrlimit(RLIMIT_AS, &narrow), 0);
    Program program({"switch", "--listen", "127.0.0.1:0", "--lanes", "64", "--memory", "1500MB"});
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_EQ(program.status(), 2);
    EXPECT_NE(program.output().find("no memory for 1.5 GB"), std::string::npos) << program.output();
    EXPECT_NE(program.output().find("the kernel refused the allocation"), std::string::npos) << program.output();
}
#endif

// The switch keeps silent members for longer than the test waits.
TEST(BenchRanks, StoppedRankLeavesAndTheOthersNameIt) {
    switchd::SwitchNodeConfig config = small_switch();
    config.hold = 3 * longest_wait;
    for (const int signal : {SIGINT, SIGTERM}) {
        const auto node = start(config);
        Ranks ranks(3, address_of(*node));
        ASSERT_TRUE(eventually([&] { return sums(*node); }));
        ranks.programs[1].signal(signal);
        EXPECT_EQ(ranks.programs[1].status(), interrupted);
        EXPECT_EQ(ranks.programs[1].output(), "");
        for (const std::size_t other : {0U, 2U}) {
            EXPECT_EQ(ranks.programs[other].status(), 1);
            EXPECT_NE(ranks.programs[other].output().find("rank 1 left the job"), std::string::npos)
                << ranks.programs[other].output();
        }
    }
}

TEST(BenchRanks, StoppedRankThatWaitsForOthersExits) {
    const auto node = start(small_switch());
    const std::string rendezvous = free_port();
    std::deque<Program> waiting;
    for (const char* rank : {"0", "1"}) {
        waiting.emplace_back(std::vector<std::string>{"bench", "--network", "--rank", rank, "--world", "3",
                                                      "--rendezvous", rendezvous, "--switch", address_of(*node),
                                                      "--timeout", "600s"});
    }
    for (const Program& program : waiting) ASSERT_TRUE(eventually([&] { return program.awaits(SIGTERM); }));
    waiting[1].signal(SIGTERM);
    EXPECT_EQ(waiting[1].status(), interrupted) << waiting[1].output();
    waiting[0].signal(SIGINT);
    EXPECT_EQ(waiting[0].status(), interrupted) << waiting[0].output();
}

TEST(BenchRanks, KilledRankOfThisHostFailsTheOther) {
    const std::string rendezvous = free_port();
    std::deque<Program> ranks;
    for (const char* rank : {"0", "1"}) {
        ranks.emplace_back(std::vector<std::string>{"bench", "--rank", rank, "--world", "2", "--rendezvous", rendezvous,
                                                    "--bytes", "64kB", "--rounds", "1000000"});
    }
    ASSERT_TRUE(eventually([&] { return ranks[1].maps("memfd:atp"); }));
    ranks[1].signal(SIGKILL);
    EXPECT_EQ(ranks[0].status(), 1);
    EXPECT_NE(ranks[0].output().find("rank 1"), std::string::npos) << ranks[0].output();
}

// Rank 0 serves the store and is the first to time out.
TEST(BenchRanks, MissingRankIsNamedByAllOthers) {
    const auto node = start(small_switch());
    const std::string rendezvous = free_port();
    std::deque<Program> programs;
    for (const char* rank : {"0", "1"}) {
        programs.emplace_back(std::vector<std::string>{"bench", "--network", "--rank", rank, "--world", "3",
                                                       "--rendezvous", rendezvous, "--switch", address_of(*node),
                                                       "--timeout", *rank == '0' ? "1500ms" : "2500ms"});
    }
    for (Program& program : programs) {
        EXPECT_EQ(program.status(), 1);
        EXPECT_NE(program.output().find("rank 2 of 3 did not arrive"), std::string::npos) << program.output();
    }
}

// Rank 0 serves the store, and exits as soon as it has failed.
TEST(BenchRanks, RanksThatDisagreeAllReadWhy) {
    struct Case {
        std::vector<std::string> flags;  // of rank 2
        std::string text;
    };
    const std::vector<Case> cases{
        {{"--world", "4", "--window", "16"}, "rank 2 has the options \"window=16\", the others \"window=0\""},
        {{"--world", "5"}, "rank 2 expects a world of 5 ranks, the others 4"}};
    for (const Case& each : cases) {
        const std::string rendezvous = free_port();
        std::deque<Program> programs;
        for (const char* rank : {"0", "1", "2", "3"}) {
            std::vector<std::string> arguments{"bench",    "--rank",   rank,         "--rendezvous",
                                               rendezvous, "--listen", "127.0.0.1:0"};
            const std::vector<std::string> usual{"--world", "4"};
            const auto& flags = *rank == '2' ? each.flags : usual;
            arguments.insert(arguments.end(), flags.begin(), flags.end());
            programs.emplace_back(arguments);
        }
        for (Program& program : programs) {
            EXPECT_EQ(program.status(), 1);
            EXPECT_NE(program.output().find(each.text), std::string::npos) << program.output();
        }
    }
}

std::vector<std::string> fleet(const std::string& switch_address) {
    return {"bench",   "--network", "--workers", "2",    "--switch", switch_address,
            "--lanes", "64",        "--bytes",   "64kB", "--rounds", "1000000"};
}

// Output without the lines that a sanitizer prints if a thread ends while it looks for leaks.
std::string words_of(Program& program) {
    std::istringstream lines(program.output());
    std::string words;
    for (std::string line; std::getline(lines, line);) {
        if (line.find("Unable to get registers from thread") == std::string::npos) words += line + '\n';
    }
    return words;
}

TEST(BenchFleet, InterruptEndsItWithoutOutput) {
    const auto node = start(small_switch());
    Program program(fleet(address_of(*node)));
    ASSERT_TRUE(eventually([&] { return sums(*node); }));
    program.signal_group(SIGINT);
    EXPECT_EQ(program.status(), interrupted);
    EXPECT_EQ(words_of(program), "");
}

TEST(BenchFleet, RanksLeaveWhenTheirLeaderIsKilled) {
    switchd::SwitchNodeConfig config = small_switch();
    config.hold = std::chrono::seconds(1);
    const auto node = start(config);
    Program program(fleet(address_of(*node)));
    ASSERT_TRUE(eventually([&] { return members_of(*node) == 2; }));
    program.signal(SIGKILL);
    EXPECT_TRUE(eventually([&] { return members_of(*node) == 0; })) << "ranks go on joining";
}

TEST(BenchFleet, EachSizeCountsItsOwnPackets) {
    Program program({"bench", "--network", "--workers", "1", "--bytes", "400kB", "--bytes", "4kB", "--lanes", "64",
                     "--scaling", "fixed", "--rounds", "2", "--json"});
    EXPECT_EQ(program.status(), 0) << program.output();
    std::istringstream lines(program.output());
    std::string line;
    while (std::getline(lines, line)) {
        const auto size = nlohmann::json::parse(line, nullptr, false);
        ASSERT_TRUE(size.is_object()) << line;
        const std::uint64_t fragments = (size["bytes"].get<std::uint64_t>() + 255) / 256;
        // 5 rounds of the tensor and one barrier each, without resends.
        EXPECT_EQ(size["packets"].get<std::uint64_t>() - size["resent"].get<std::uint64_t>(), 5 * (fragments + 1))
            << line;
        EXPECT_TRUE(size["without"].is_array());
    }
}

// What it printed, behind the line in which ranks warn that float64 is sent as float32.
nlohmann::json json_of(Program& program) {
    EXPECT_EQ(program.status(), 0) << program.output();
    const std::string& output = program.output();
    auto json = nlohmann::json::parse(output.substr(std::min(output.find('{'), output.size())), nullptr, false);
    EXPECT_TRUE(json.is_object()) << output;
    return json.is_object() ? json : nlohmann::json::object();
}

TEST(BenchFleet, SumsAreVerifiedInEveryForm) {
    for (const char* scaling : {"fixed", "dynamic"}) {
        for (const char* lanes : {"int32", "64:int16"}) {
            Program program({"bench", "--network", "--workers", "3", "--bytes", "100kB", "--scaling", scaling,
                             "--lanes", lanes, "--rounds", "4", "--json"});
            nlohmann::json size = json_of(program);
            EXPECT_EQ(size["float_fragments"], 0) << scaling << ' ' << lanes;
        }
    }
}

TEST(BenchFleet, EveryCollectiveOfEveryTypeIsVerified) {
    for (const std::string_view collective : {"all_reduce", "reduce_scatter", "all_gather", "both"}) {
        for (const std::string_view type : {"float32", "float64", "float16", "bfloat16", "int32", "int64"}) {
            Program program({"bench", "--network", "--workers", "3", "--bytes", "100kB", "--collective",
                             std::string(collective), "--type", std::string(type), "--rounds", "4", "--json"});
            nlohmann::json size = json_of(program);
            EXPECT_EQ(size["collective"], collective);
            EXPECT_EQ(size["type"], type);
            EXPECT_EQ(size["verified"], true);
            EXPECT_EQ(size["float_fragments"], 0) << collective << ' ' << type;
        }
    }
}

// With the scale that adapts, numbers of any magnitude are sent as integers.
TEST(BenchFleet, NumbersOfAnyMagnitudeFitIntegers) {
    for (const char* magnitude : {"1e-9", "1e4", "65536"}) {
        Program program({"bench", "--network", "--workers", "3", "--bytes", "100kB", "--magnitude", magnitude,
                         "--rounds", "4", "--json"});
        nlohmann::json size = json_of(program);
        EXPECT_EQ(size["float_fragments"], 0) << magnitude;
    }
}

// As a job on one machine does by default.
TEST(BenchFleet, RanksOfThisHostSumInItsMemory) {
    Program program({"bench", "--workers", "3", "--bytes", "100kB", "--rounds", "4", "--json"});
    nlohmann::json size = json_of(program);
    EXPECT_EQ(size["host_ranks"], 3);
    EXPECT_EQ(size["layout"], "memory");
    EXPECT_EQ(size["results"], "memory");
    EXPECT_EQ(size["packets"], 0);
    EXPECT_EQ(size["verified"], true);
}

TEST(BenchFleet, NetworkMeasuresPackets) {
    Program program({"bench", "--network", "--workers", "3", "--bytes", "100kB", "--rounds", "4", "--json"});
    nlohmann::json size = json_of(program);
    EXPECT_EQ(size["host_ranks"], 1);
    EXPECT_EQ(size["results"], "unicast");
    EXPECT_GT(size["packets"], 0);
}

TEST(BenchRanks, OfSeveralHostsWithoutASwitchReadWhatIsMissing) {
    const std::string rendezvous = free_port();
    std::deque<Program> programs;
    for (const char* rank : {"0", "1"}) {
        programs.emplace_back(std::vector<std::string>{"bench", "--rank", rank, "--world", "2", "--rendezvous",
                                                       rendezvous, "--host-name", rank, "--bytes", "4kB"});
    }
    for (Program& program : programs) {
        EXPECT_EQ(program.status(), 1);
        EXPECT_NE(program.output().find("no switch is named"), std::string::npos) << program.output();
    }
}

TEST(Editions, ProductHasNoCommandOfTheLaboratory) {
    Program help({"--help"});
    EXPECT_EQ(help.status(), 0);
    for (const char* name : {"simulate", "check", "figure", "plan", "models"}) {
        EXPECT_EQ(help.output().find(name), std::string::npos) << help.output();
    }
}

TEST(Trace, FullDiskFailsTheProgramThatLosesIt) {
    const auto node = start(small_switch());
    Program server({"switch", "--listen", "127.0.0.1:0", "--trace", "/dev/full"});
    Program rank({"bench", "--rank", "0", "--world", "1", "--network", "--rendezvous", free_port(), "--switch",
                  address_of(*node), "--bytes", "4kB", "--rounds", "1", "--trace", "/dev/full"});
    ASSERT_TRUE(eventually([&] { return server.awaits(SIGTERM); }));
    server.signal(SIGTERM);
    for (Program* program : {&server, &rank}) {
        EXPECT_EQ(program->status(), 1);
        EXPECT_THAT(program->output(), testing::HasSubstr("No space left on device): the trace cannot be written"));
    }
}

// At its address, a socket receives the requests and answers none.
TEST(Stats, SignalEndsTheWaitForAReport) {
    const auto silent = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(silent) << to_string(silent.error());
    for (const int signal : {SIGINT, SIGTERM}) {
        Program program({"stats", to_string((*silent)->local()), "--timeout", "600s"});
        ASSERT_TRUE(eventually([&] { return program.awaits(SIGTERM); }));
        program.signal(signal);
        EXPECT_EQ(program.status(), interrupted);
        EXPECT_EQ(program.output(), "");
    }
}

}  // namespace
}  // namespace atp::test
