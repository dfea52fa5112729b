// SPDX-License-Identifier: Apache-2.0
#include "shm/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "support/fails.h"

namespace atp::shm {
namespace {

constexpr std::size_t bytes = 1U << 16U;

net::Descriptor copy_of(int descriptor) { return net::Descriptor(dup(descriptor)); }

TEST(SharedMemory, TwoMappingsShowTheSameBytes) {
    auto created = SharedMemory::create(bytes);
    ASSERT_TRUE(created) << to_string(created.error());
    auto adopted = SharedMemory::adopt(copy_of(created->descriptor()), bytes);
    ASSERT_TRUE(adopted) << to_string(adopted.error());
    EXPECT_NE(created->data(), adopted->data());
    EXPECT_EQ(adopted->data()[bytes - 1], std::byte{0});
    created->data()[bytes - 1] = std::byte{7};
    EXPECT_EQ(adopted->data()[bytes - 1], std::byte{7});
    const SharedMemory moved = *std::move(adopted);
    EXPECT_EQ(moved.data()[bytes - 1], std::byte{7});
}

// docs/spec/hazards.md#h49
TEST(SharedMemory, H49_OwnerCannotTakeItAway) {
    const auto created = SharedMemory::create(bytes);
    ASSERT_TRUE(created);
    EXPECT_NE(ftruncate(created->descriptor(), 0), 0);
    EXPECT_NE(ftruncate(created->descriptor(), 2 * bytes), 0);
}

// docs/spec/hazards.md#h49
TEST(SharedMemory, H49_MemoryThatMayShrinkIsRefused) {
    net::Descriptor open(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(open.number(), bytes), 0);
    EXPECT_TRUE(fails(SharedMemory::adopt(std::move(open), bytes), {.reason = Reason::rejected}));
}

TEST(SharedMemory, MemoryOfAnotherSizeIsRefused) {
    const auto created = SharedMemory::create(bytes);
    ASSERT_TRUE(created);
    EXPECT_FALSE(SharedMemory::adopt(copy_of(created->descriptor()), 2 * bytes));
    EXPECT_FALSE(SharedMemory::adopt(net::Descriptor(open("/dev/null", O_RDWR)), bytes));
}

}  // namespace
}  // namespace atp::shm
