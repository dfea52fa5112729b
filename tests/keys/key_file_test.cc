// SPDX-License-Identifier: Apache-2.0
#include "keys/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace atp::keys {
namespace {

namespace fs = std::filesystem;

class KeyFile : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "atp-keys-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    [[nodiscard]] std::string path(const char* name) const { return folder_ / name; }
    [[nodiscard]] static Reason reason_of_reading(const std::string& path) {
        const auto read = read_key_file(path);
        EXPECT_FALSE(read);
        if (read) return Reason::failed;
        EXPECT_EQ(read.error().peer, path);
        return read.error().reason;
    }

    crypto::TenantKey key_{.id = 7, .tenant = "vision", .key = random_key()};
    fs::path folder_;
};

TEST_F(KeyFile, WrittenKeyReadsBackAndOnlyItsOwnerMayReadIt) {
    const mode_t before = umask(0);
    const auto written = write_key_file(path("key"), key_);
    umask(before);
    ASSERT_TRUE(written) << to_string(written.error());
    EXPECT_EQ(fs::status(path("key")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    const auto read = read_key_file(path("key"));
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read->id, 7U);
    EXPECT_TRUE(std::ranges::equal(read->key.bytes(), key_.key.bytes()));
}

TEST_F(KeyFile, ExistingFileIsNeverOverwritten) {
    std::ofstream(path("key")) << "mine";
    const auto written = write_key_file(path("key"), key_);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().reason, Reason::in_use);
    EXPECT_EQ(fs::file_size(path("key")), 4U);
    fs::create_symlink(path("elsewhere"), path("link"));
    EXPECT_FALSE(write_key_file(path("link"), key_));
    EXPECT_FALSE(fs::exists(path("elsewhere")));
}

TEST_F(KeyFile, FileThatOthersMayReadIsRefused) {
    ASSERT_TRUE(write_key_file(path("key"), key_));
    for (const mode_t mode : {0640U, 0604U, 0610U, 0601U, 0620U, 0602U}) {
        ASSERT_EQ(chmod(path("key").c_str(), mode), 0);
        EXPECT_EQ(reason_of_reading(path("key")), Reason::denied) << std::oct << mode;
    }
    const auto read = read_key_file(path("key"));
    EXPECT_NE(read.error().text.find("mode 602"), std::string::npos) << read.error().text;
    EXPECT_NE(read.error().text.find("chmod 600 " + path("key")), std::string::npos) << read.error().text;
    for (const mode_t mode : {0400U, 0600U, 0700U}) {
        ASSERT_EQ(chmod(path("key").c_str(), mode), 0);
        EXPECT_TRUE(read_key_file(path("key"))) << std::oct << mode;
    }
}

TEST_F(KeyFile, WhatIsNoKeyFileIsRefused) {
    EXPECT_EQ(reason_of_reading(path("missing")), Reason::failed);
    fs::create_directory(path("folder"));
    EXPECT_EQ(reason_of_reading(path("folder")), Reason::malformed);
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    EXPECT_EQ(reason_of_reading(path("pipe")), Reason::malformed);
    std::ofstream(path("text")) << "no key";
    std::ofstream(path("long")) << std::string(5000, '\n');
    for (const char* const name : {"text", "long"}) ASSERT_EQ(chmod(path(name).c_str(), 0600), 0);
    EXPECT_EQ(reason_of_reading(path("text")), Reason::malformed);
    EXPECT_EQ(reason_of_reading(path("long")), Reason::failed);
}

TEST_F(KeyFile, EachKeyAndNonceIsNew) {
    EXPECT_FALSE(std::ranges::equal(random_key().bytes(), random_key().bytes()));
    EXPECT_NE(random_nonce(), random_nonce());
    const auto nonce = random_nonce();
    EXPECT_LT(std::ranges::count(nonce, std::byte{0}), 8) << "a part is not filled";
}

}  // namespace
}  // namespace atp::keys
