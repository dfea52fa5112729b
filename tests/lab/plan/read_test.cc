// SPDX-License-Identifier: Apache-2.0
// The two input files: the meaning of their keys, and the error messages for invalid ones.
#include "plan/read.h"

#include <gtest/gtest.h>

#include <ostream>

#include "workload/models.h"

namespace atp::plan {
namespace {

constexpr std::string_view root = "[[switch]]\nname = 'root'\nhost_rate = '100Gbps'\n";
constexpr std::string_view leaf =
    "[[switch]]\nname = 'leaf'\nparent = 'root'\nhost_rate = '25Gbps'\nuplink_rate = '50Gbps'\n";
constexpr std::string_view job = "[[job]]\nname = 'j'\nmodel = 'VGG16'\nworkers = { leaf = 4 }\n";

tl::expected<Cluster, std::string> parse(std::string_view topology, std::string_view jobs) {
    return parse_cluster({.name = "t.toml", .text = topology}, {.name = "j.toml", .text = jobs});
}

std::string two_levels(std::string_view more = "") { return std::string(root) + std::string(leaf) + std::string(more); }

TEST(Read, GivenKeysAreReadAndOthersHaveDefaults) {
    const auto cluster = parse(two_levels("delay = '5us'\nmemory = '1MB'\nlanes = 62\nqueue = '100kB'\n"
                                          "card_rate = '40Gbps'\naggregates = false\n"),
                               job);
    ASSERT_TRUE(cluster.has_value()) << cluster.error();
    ASSERT_EQ(cluster->switches.size(), 2U);
    EXPECT_EQ(cluster->root, 0U);
    const Switch& above = cluster->switches[0];
    EXPECT_EQ(above.host_bits_per_s, 100'000'000'000);
    EXPECT_EQ(above.memory_bytes, 64'000'000U);
    EXPECT_TRUE(above.aggregates);
    const Switch& below = cluster->switches[1];
    EXPECT_EQ(below.parent, 0U);
    EXPECT_EQ(below.uplink_bits_per_s, 50'000'000'000);
    EXPECT_EQ(below.delay, std::chrono::microseconds(5));
    EXPECT_EQ(below.memory_bytes, 1'000'000U);
    EXPECT_EQ(below.lanes, 62U);
    EXPECT_EQ(below.queue_bytes, 100'000U);
    EXPECT_EQ(below.card_bits_per_s, 40'000'000'000);
    EXPECT_FALSE(below.aggregates);
}

TEST(Read, JobOfAModelHasItsGradientsAndComputation) {
    const auto cluster = parse(two_levels(), std::string(job) + "batch = 32\nserver = 'dedicated'\nchannels = 2\n");
    ASSERT_TRUE(cluster.has_value()) << cluster.error();
    const Job& found = cluster->jobs[0];
    EXPECT_EQ(found.workers, (std::vector<unsigned>{0, 4}));
    EXPECT_EQ(found.workload.elements(), workload::find_model("VGG16")->parameters());
    EXPECT_NEAR(static_cast<double>(found.workload.compute().count()),
                32e9 / workload::find_model("VGG16")->samples_per_s, 1e4);
    EXPECT_EQ(found.samples, 4 * 32);
    EXPECT_EQ(found.server, ServerPlacement::dedicated);
    EXPECT_EQ(found.channels, 2U);
    EXPECT_FALSE(found.shares_hosts);
}

TEST(Read, JobOfNumbersHasBucketsReadyOneAfterTheOther) {
    const auto cluster = parse(two_levels(),
                               "[[job]]\nname = 'j'\nparameters = 16_000_000\ncompute = '30ms'\nbucket = '8MB'\n"
                               "workers = { root = 1, leaf = 1 }\nhosts = 'shared'\n");
    ASSERT_TRUE(cluster.has_value()) << cluster.error();
    const Job& found = cluster->jobs[0];
    EXPECT_EQ(found.workload.elements(), 16'000'000U);
    EXPECT_EQ(found.workload.buckets.size(), 8U);
    EXPECT_NEAR(static_cast<double>(found.workload.compute().count()), 30e6, 100);
    EXPECT_NEAR(static_cast<double>(found.workload.buckets.back().ready.count()), 20e6, 100);
    EXPECT_TRUE(found.shares_hosts);
    EXPECT_EQ(cluster->last_switch(found), 0U);
}

TEST(Read, KeysOfTheTrainingTopologyAreAccepted) {
    EXPECT_TRUE(
        parse(two_levels("address = '10.0.1.1:4790'\nhosts = ['node-1*']\nranks = [0, '4-7']\n"), job).has_value());
}

TEST(Read, ExamplesAreRead) {
    const std::string folder = std::string(ATP_SOURCE_DIR) + "/examples/";
    const auto cluster = read_cluster(folder + "cluster.toml", folder + "jobs.toml");
    ASSERT_TRUE(cluster.has_value()) << cluster.error();
    EXPECT_EQ(cluster->switches.size(), 3U);
    EXPECT_EQ(cluster->jobs.size(), 2U);
}

TEST(Read, IterationBeyondAYearIsRefused) {
    const std::string slow = "[[switch]]\nname = 'root'\nhost_rate = 100\n";
    const auto cluster = parse(slow, "[[job]]\nname = 'j'\nmodel = 'VGG16'\nworkers = { root = 4 }\n");
    ASSERT_FALSE(cluster.has_value());
    EXPECT_NE(cluster.error().find("t.toml: an iteration would take more than a year"), std::string::npos)
        << cluster.error();
    EXPECT_FALSE(parse(two_levels("delay = '1000000s'\n"), job));
    EXPECT_TRUE(parse(two_levels("delay = '100ms'\n"), job));
}

TEST(Read, TooManyBucketsAreRefused) {
    const auto cluster = parse(two_levels(),
                               "[[job]]\nname = 'j'\nparameters = 100_000_000\ncompute = '1s'\nbucket = '4'\n"
                               "workers = { leaf = 4 }\n");
    ASSERT_FALSE(cluster.has_value());
    EXPECT_NE(cluster.error().find("a larger 'bucket'"), std::string::npos) << cluster.error();
}

TEST(Read, MissingFileIsNamed) {
    const auto cluster = read_cluster("/nowhere.toml", "/nowhere.toml");
    ASSERT_FALSE(cluster.has_value());
    EXPECT_EQ(cluster.error(), "/nowhere.toml: No such file or directory");
}

struct WrongInput {
    std::string topology;
    std::string jobs;
    std::string place;
    std::string accepted;
};
void PrintTo(const WrongInput& input, std::ostream* out) { *out << input.place << ": " << input.accepted; }

class InvalidFile : public testing::TestWithParam<WrongInput> {};

TEST_P(InvalidFile, IsRefusedWithPositionAndAcceptedValues) {
    const auto cluster = parse(GetParam().topology, GetParam().jobs);
    ASSERT_FALSE(cluster.has_value());
    EXPECT_EQ(cluster.error().find(GetParam().place), 0U) << cluster.error();
    EXPECT_NE(cluster.error().find(GetParam().accepted), std::string::npos) << cluster.error();
}

WrongInput of_switch(const std::string& more, std::string words, std::string accepted) {
    return {two_levels(more), std::string(job), "t.toml: [[switch]] number 2: " + std::move(words),
            std::move(accepted)};
}
WrongInput of_tree(const std::string& topology, std::string accepted) {
    return {topology, std::string(job), "t.toml: ", std::move(accepted)};
}
WrongInput of_job(const std::string& jobs, std::string words, std::string accepted) {
    return {two_levels(), jobs, "j.toml: [[job]] number 1: " + std::move(words), std::move(accepted)};
}
WrongInput of_job_with(const std::string& more, std::string words, std::string accepted) {
    return of_job(std::string(job) + more, std::move(words), std::move(accepted));
}

INSTANTIATE_TEST_SUITE_P(
    OfTopologies, InvalidFile,
    testing::Values(of_tree("switch = ", "line 1: invalid TOML"), of_tree("", "use [[switch]]"),
                    of_tree("[switch]\nname = 'a'", "use [[switch]]"),
                    of_tree(two_levels() + "[[job]]\nname = 'j'", "no other table"),
                    of_tree("[[switch]]\nhost_rate = '1Gbps'", "'name' is missing"),
                    of_tree("[[switch]]\nname = 'a'", "'host_rate' is missing"),
                    of_tree("[[switch]]\nname = 7\nhost_rate = '1Gbps'", "name = 7: use a text"),
                    of_tree(std::string(root) + std::string(root), "two switches have the name root"),
                    of_tree(std::string(root) + "[[switch]]\nname = 'b'\nhost_rate = '1Gbps'\n",
                            "root and b have no 'parent': leave only one"),
                    of_tree(std::string(leaf), "parent = \"root\" is unknown; use one of leaf"),
                    of_tree("[[switch]]\nname = 'a'\nparent = 'a'\nhost_rate = '1Gbps'\nuplink_rate = '1Gbps'\n",
                            "every switch has a 'parent'"),
                    of_tree(two_levels() + "[[switch]]\nname = 'c'\nparent = 'leaf'\nhost_rate = '1Gbps'\n"
                                           "uplink_rate = '1Gbps'\n",
                            "two levels aggregate"),
                    of_tree(std::string(root) + "uplink_rate = '1Gbps'\n", "'uplink_rate' needs a 'parent'"),
                    of_tree(std::string(root) + "[[switch]]\nname = 'b'\nparent = 'root'\nhost_rate = '1Gbps'\n",
                            "'uplink_rate' is missing"),
                    of_switch("memory = '64 parsecs'", "memory = '64 parsecs'", "a number with kB, MB"),
                    of_switch("delay = 5", "delay = 5", "a number with ns, us, ms or s"),
                    of_switch("card_rate = 'fast'", "card_rate = 'fast'", "bits per second"),
                    of_switch("queue = true", "queue = true", "bytes"),
                    of_switch("lanes = 1", "lanes = 1", "a whole number from 2 to"),
                    of_switch("aggregates = 'yes'", "aggregates = 'yes'", "true or false"),
                    of_switch("ranks = 3", "ranks = 3", "a list of numbers"),
                    of_switch("hosts = 'a'", "hosts = 'a'", "a list of names"),
                    of_switch("address = 1", "address = 1", "host:port"),
                    of_switch("colour = 'red'", "'colour' is unknown", "use address, aggregates")));

INSTANTIATE_TEST_SUITE_P(
    OfJobs, InvalidFile,
    testing::Values(
        of_job("[[job]]\nname = 'j'\nmodel = 'VGG16'\n", "'workers' is missing", "a table of switches"),
        of_job("[[job]]\nmodel = 'VGG16'\nworkers = { leaf = 4 }\n", "'name' is missing", "a text"),
        of_job("[[job]]\nname = 'j'\nworkers = { leaf = 4 }\n", "a job needs 'model'", "or 'parameters' and 'compute'"),
        of_job("[[job]]\nname = 'j'\nparameters = 5\nworkers = { leaf = 4 }\n", "a job needs 'model'",
               "'parameters' and 'compute'"),
        of_job_with("parameters = 5\ncompute = '1ms'\n", "a job needs 'model'", "or 'parameters'"),
        of_job("[[job]]\nname = 'j'\nmodel = 'LeNet'\nworkers = { leaf = 4 }\n", "model = 'LeNet'", "VGG16"),
        of_job("[[job]]\nname = 'j'\nparameters = 0\ncompute = '1ms'\nworkers = { leaf = 4 }\n", "parameters = 0",
               "a whole number from 1"),
        of_job("[[job]]\nname = 'j'\nparameters = 9\ncompute = '0ms'\nworkers = { leaf = 4 }\n", "compute = '0ms'",
               "above 0"),
        of_job("[[job]]\nname = 'j'\nparameters = 9\ncompute = '1ms'\nbatch = 4\nworkers = { leaf = 4 }\n",
               "'batch' needs 'model'", "remove 'batch'"),
        of_job("[[job]]\nname = 'j'\nmodel = 'VGG16'\nworkers = 4\n", "workers = 4", "a table of switches"),
        of_job("[[job]]\nname = 'j'\nmodel = 'VGG16'\nworkers = { roof = 4 }\n",
               "workers = ", "a number for each of root, leaf"),
        of_job("[[job]]\nname = 'j'\nmodel = 'VGG16'\nworkers = { leaf = -4 }\n",
               "workers = ", "numbers from 0 to 1024"),
        of_job("[[job]]\nname = 'j'\nmodel = 'VGG16'\nworkers = { leaf = 1 }\n",
               "workers = ", "from 2 to 1024 of them together"),
        of_job_with("batch = 0\n", "batch = 0", "a whole number from 1"),
        of_job_with("server = 'cloud'\n", "server = 'cloud'", "\"colocated\""),
        of_job_with("channels = 65\n", "channels = 65", "from 1 to 64"),
        of_job_with("hosts = 'mine'\n", "hosts = 'mine'", "\"own\" or \"shared\""),
        of_job_with("bucket = '1B'\n", "bucket = '1B'", "4 bytes or more"),
        of_job_with("priority = 1\n", "'priority' is unknown", "use batch"),
        WrongInput{two_levels(), std::string(job) + std::string(job), "j.toml: [[job]] number 2: name = 'j'",
                   "another job has it"},
        WrongInput{two_levels(), "", "j.toml: ", "use [[job]]"}));

}  // namespace
}  // namespace atp::plan
