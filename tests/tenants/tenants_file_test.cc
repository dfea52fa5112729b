// SPDX-License-Identifier: Apache-2.0
#include "tenants/tenants_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "keys/key_file.h"

namespace atp::tenants {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder with keys of two tenants for two switches.
class TenantsFile : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "atp-tenants-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        write_key("vision.key", 7, "vision", "leaf-1");
        write_key("vision-new.key", 8, "vision", "leaf-1");
        write_key("speech.key", 9, "speech", "leaf-1");
        write_key("speech-leaf-2.key", 10, "speech", "leaf-2");
        write_key("speech-of-7.key", 7, "speech", "leaf-1");
        write_key("own.key", 11, "vision", "");
    }
    void TearDown() override { fs::remove_all(folder_); }

    void write_key(const char* file, std::uint32_t id, const char* tenant, const char* at_switch) const {
        ASSERT_TRUE(keys::write_key_file(
            folder_ / file, {.id = id, .tenant = tenant, .at_switch = at_switch, .key = keys::random_key()}));
    }
    [[nodiscard]] auto read(const std::string& text) const {
        const fs::path file = folder_ / "tenants.toml";
        std::ofstream(file) << text;
        fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
        return read_tenants_file(file);
    }
    [[nodiscard]] std::string error_of(const std::string& text) const {
        const auto tenants = read(text);
        EXPECT_FALSE(tenants) << text;
        return tenants ? std::string() : to_string(tenants.error());
    }

    fs::path folder_;
};

constexpr const char* all_keys = R"([[tenant]]
name = "vision"
keys = ["vision.key", "vision-new.key"]
sources = ["10.77.0.0/25", "fd00::/64"]
servers = "10.77.0.0/24"
groups = ["239.192.1.0/24"]
jobs = 8
channels = 64
server_memory = "2GiB"
aggregators = 1000
weight = 3
revoked = [6, 5]

[[tenant]]
name = "speech"
keys = "speech.key"
fabric = true
)";

TEST_F(TenantsFile, EachKeyOfTheFileHasItsMeaning) {
    const auto read_file = read(all_keys);
    ASSERT_TRUE(read_file) << to_string(read_file.error());
    const std::vector<control::Tenant>& all = (*read_file)->all();
    ASSERT_EQ(all.size(), 2U);
    const control::Tenant& vision = all[0];
    EXPECT_EQ(vision.name, "vision");
    ASSERT_EQ(vision.keys.size(), 2U);
    EXPECT_EQ(vision.keys[1].id, 8U);
    EXPECT_EQ(to_string(std::span(vision.sources)), "10.77.0.0/25,fd00::/64");
    EXPECT_EQ(to_string(std::span(vision.servers)), "10.77.0.0/24");
    EXPECT_EQ(to_string(std::span(vision.groups)), "239.192.1.0/24");
    EXPECT_EQ(vision.jobs, 8U);
    EXPECT_EQ(vision.channels, 64U);
    EXPECT_EQ(vision.server_bytes, std::uint64_t{2} << 30U);
    EXPECT_EQ(vision.aggregators, 1000U);
    EXPECT_EQ(vision.weight, 3U);
    EXPECT_FALSE(vision.fabric);
    EXPECT_THAT(vision.revoked, ElementsAre(6, 5));
    const control::Tenant& speech = all[1];
    EXPECT_TRUE(speech.fabric);
    EXPECT_EQ(speech.jobs, std::nullopt);
    EXPECT_EQ(speech.weight, 1U);
    const auto found = (*read_file)->find(9);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->tenant, &speech);
}

TEST_F(TenantsFile, ErrorsNameTheFileTheLineAndTheKey) {
    const std::string vision = "[[tenant]]\nname = \"vision\"\nkeys = \"vision.key\"\n";
    const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
        {"", {"use [[tenant]]"}},
        {"[[tenant]]\nname = vision\n", {"line 2", "invalid TOML"}},
        {"jobs = 3\n" + vision, {"no other table"}},
        {vision + "jbos = 3\n", {"tenant 1: ", "line 4", "'jbos' is unknown", "did you mean 'jobs'?"}},
        {vision + "xyzzy = 3\n", {"line 4", "'xyzzy' is unknown: use aggregators, channels"}},
        {vision + "jobs = -1\n", {"line 4", "jobs = -1: use a whole number"}},
        {vision + "jobs = \"eight\"\n", {"line 4", "use a whole number"}},
        {vision + "weight = 0\n", {"line 4", "from 1 to 1000"}},
        {vision + "server_memory = \"2 pounds\"\n", {"line 4", "2 pounds", "GiB"}},
        {vision + "sources = \"10.77.0.1/24\"\n", {"line 4", "use a network such as"}},
        {vision + "sources = []\n", {"line 4", "use a network such as"}},
        {vision + "fabric = 1\n", {"line 4", "true or false"}},
        {vision + "revoked = [0]\n", {"line 4", "a list of whole numbers"}},
        {vision + "revoked = [7]\n", {"line 4", "not in 'keys'"}},
        {vision + vision, {"tenant 2: ", "line 5", "name = 'vision'", "each name once"}},
        {"[[tenant]]\nkeys = \"vision.key\"\n", {"line 1", "'name' is missing"}},
        {"[[tenant]]\nname = \"no blanks\"\nkeys = \"vision.key\"\n", {"line 2", "1 to 63 letters"}},
        {"[[tenant]]\nname = \"vision\"\n", {"line 1", "'keys' is missing"}},
        {"[[tenant]]\nname = \"vision\"\nkeys = \"none.key\"\n", {"line 3", "none.key", "ENOENT"}},
        {"[[tenant]]\nname = \"vision\"\nkeys = \"speech.key\"\n", {"line 3", "speech.key is a key of tenant speech"}},
        {"[[tenant]]\nname = \"vision\"\nkeys = \"own.key\"\n", {"line 3", "own.key", "no switch should hold"}},
        {"[[tenant]]\nname = \"vision\"\nkeys = [\"vision.key\", \"vision.key\"]\n",
         {"line 3", "key id 7, which tenant vision has already"}},
        {vision + "[[tenant]]\nname = \"speech\"\nkeys = \"speech-of-7.key\"\n",
         {"line 6", "key id 7, which tenant vision has already"}},
        {vision + "[[tenant]]\nname = \"speech\"\nkeys = \"speech-leaf-2.key\"\n",
         {"line 6", "for switch leaf-2", "before it for leaf-1"}},
    };
    for (const auto& [text, parts] : cases) {
        const std::string error = error_of(text);
        EXPECT_THAT(error, HasSubstr("tenants.toml"));
        for (const std::string& part : parts) EXPECT_THAT(error, HasSubstr(part)) << text;
    }
}

TEST_F(TenantsFile, FileThatOthersMayReadIsRefused) {
    ASSERT_TRUE(read(all_keys));
    const fs::path file = folder_ / "tenants.toml";
    fs::permissions(file, fs::perms::others_read, fs::perm_options::add);
    const auto tenants = read_tenants_file(file);
    ASSERT_FALSE(tenants);
    EXPECT_EQ(tenants.error().reason, Reason::denied);
    EXPECT_THAT(to_string(tenants.error()), HasSubstr("chmod 600"));
    EXPECT_FALSE(read_tenants_file(folder_ / "missing.toml"));
}

TEST_F(TenantsFile, ChangesNameWhatDiffers) {
    const auto before = read(all_keys);
    ASSERT_TRUE(before);
    EXPECT_THAT(changes_between(**before, **before), ElementsAre());
    write_key("music.key", 12, "music", "leaf-1");
    const auto after = read(
        "[[tenant]]\nname = \"vision\"\nkeys = \"vision-new.key\"\njobs = 4\n"
        "[[tenant]]\nname = \"music\"\nkeys = \"music.key\"\n");
    ASSERT_TRUE(after) << to_string(after.error());
    const std::vector<std::string> changes = changes_between(**before, **after);
    ASSERT_EQ(changes.size(), 3U);
    EXPECT_THAT(changes[0], HasSubstr("tenant vision: keys 8 (was 7, 8)"));
    EXPECT_THAT(changes[0], HasSubstr("jobs 4 (was 8)"));
    EXPECT_EQ(changes[1], "tenant music added, keys 12");
    EXPECT_EQ(changes[2], "tenant speech removed");
}

}  // namespace
}  // namespace atp::tenants
