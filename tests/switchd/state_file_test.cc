// SPDX-License-Identifier: Apache-2.0
#include "switchd/state_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/fails.h"

namespace atp::switchd {
namespace {

namespace fs = std::filesystem;

class StateFile : public ::testing::Test {
  public:
    StateFile() {
        std::string name = (fs::temp_directory_path() / "atp-state-XXXXXX").string();
        folder_ = mkdtemp(name.data());
        path = folder_ / "switch";
    }
    ~StateFile() override { fs::remove_all(folder_); }

  protected:
    fs::path path;

  private:
    fs::path folder_;
};

TEST_F(StateFile, KeepsTheKeyForTheNextProcess) {
    const auto first = ticket_key_in(path.string());
    ASSERT_TRUE(first);
    EXPECT_NE(*first, Secret{});
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    const auto second = ticket_key_in(path.string());
    ASSERT_TRUE(second);
    EXPECT_EQ(*second, *first);
    fs::remove(path);
    EXPECT_NE(*ticket_key_in(path.string()), *first) << "random";
}

TEST_F(StateFile, ThatOthersMayReadOrThatIsAnotherFileIsNotUsedNorChanged) {
    ASSERT_TRUE(ticket_key_in(path.string()));
    fs::permissions(path, fs::perms::group_read, fs::perm_options::add);
    EXPECT_TRUE(fails(ticket_key_in(path.string()), {.reason = Reason::malformed}));
    fs::permissions(path, fs::perms::group_read, fs::perm_options::remove);
    ASSERT_TRUE(ticket_key_in(path.string()));

    std::ofstream(path) << "something else";
    EXPECT_TRUE(fails(ticket_key_in(path.string()), {.reason = Reason::malformed}));
    EXPECT_EQ(fs::file_size(path), 14U);
    fs::remove(path);
    fs::create_symlink("/dev/null", path);
    EXPECT_FALSE(ticket_key_in(path.string())) << "no links are followed";
    EXPECT_FALSE(ticket_key_in((path / "nowhere").string()));
}

}  // namespace
}  // namespace atp::switchd
