// SPDX-License-Identifier: Apache-2.0
// Support for the tests of lanes: packets and buffers with guards, random lanes, and a fixture that runs a test with
// each instruction set of this processor.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace atp::numeric {

inline constexpr std::size_t lane_bytes = 4;
// Largest tested number of lanes: several of the widest vectors. Smaller numbers give every remainder.
inline constexpr std::size_t longest = 130;
inline constexpr std::int32_t int_max = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int32_t int_min = std::numeric_limits<std::int32_t>::min();
inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

inline float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// Lanes of a packet at a chosen misalignment, between guard bytes that no tested call may change.
class Wire {
  public:
    explicit Wire(std::size_t count, std::size_t misalignment = 0)
        : count_(count), start_(guard_bytes + misalignment), bytes_(start_ + count * lane_bytes + guard_bytes, guard) {}

    Wire(const std::vector<std::int32_t>& lanes, std::size_t misalignment) : Wire(lanes.size(), misalignment) {
        for (std::size_t at = 0; at < count_; ++at) {
            set(at, static_cast<std::uint32_t>(lanes[at]));
        }
    }

    std::byte* data() { return bytes_.data() + start_; }

    void set(std::size_t at, std::uint32_t bits) {
        for (std::size_t byte = 0; byte < lane_bytes; ++byte) {
            data()[at * lane_bytes + byte] = static_cast<std::byte>(bits >> (24 - 8 * byte));
        }
    }

    std::uint32_t get(std::size_t at) {
        std::uint32_t bits = 0;
        for (std::size_t byte = 0; byte < lane_bytes; ++byte) {
            bits = bits << 8 | std::to_integer<std::uint32_t>(data()[at * lane_bytes + byte]);
        }
        return bits;
    }

    std::int32_t get_int(std::size_t at) { return static_cast<std::int32_t>(get(at)); }

    bool guards_intact() const {
        for (std::size_t at = 0; at < bytes_.size(); ++at) {
            const bool inside = at >= start_ && at < start_ + count_ * lane_bytes;
            if (!inside && bytes_[at] != guard) {
                return false;
            }
        }
        return true;
    }

  private:
    static constexpr std::size_t guard_bytes = 64;
    static constexpr std::byte guard{0xA5};

    std::size_t count_;
    std::size_t start_;
    std::vector<std::byte> bytes_;
};

// A buffer in host byte order, followed by guard elements.
template <typename T>
class Host {
  public:
    explicit Host(std::size_t count) : count_(count), values_(count + guards, guard()) {}
    explicit Host(const std::vector<T>& values) : Host(values.size()) {
        std::copy(values.begin(), values.end(), values_.begin());
    }

    T* data() { return values_.data(); }
    T& operator[](std::size_t at) { return values_[at]; }

    bool guards_intact() const {
        const T expected = guard();
        for (std::size_t at = count_; at < values_.size(); ++at) {
            // Compares bits, not values, so that NaN equals NaN and -0 differs from 0.
            // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
            if (std::memcmp(&values_[at], &expected, sizeof expected) != 0) {
                return false;
            }
        }
        return true;
    }

  private:
    static constexpr std::size_t guards = 16;
    static T guard() { return static_cast<T>(-77); }

    std::size_t count_;
    std::vector<T> values_;
};

using Random = std::mt19937_64;

inline std::int32_t any_int(Random& random) {
    constexpr std::int32_t edges[] = {0, 1, -1, int_max, int_max - 1, int_min, int_min + 1, 1 << 30, -(1 << 30)};
    const std::uint64_t draw = random();
    return draw % 4 == 0 ? edges[draw / 4 % std::size(edges)] : static_cast<std::int32_t>(draw >> 32);
}

template <typename T, typename Draw>
std::vector<T> many(std::size_t count, Random& random, Draw draw) {
    std::vector<T> values(count);
    for (T& value : values) {
        value = draw(random);
    }
    return values;
}

inline std::vector<std::int32_t> any_ints(std::size_t count, Random& random) {
    return many<std::int32_t>(count, random, any_int);
}

class LanesOfTarget : public testing::TestWithParam<std::int64_t> {
  protected:
    void SetUp() override {
        hwy::SetSupportedTargetsForTest(GetParam());
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        ASSERT_EQ(hwy::SupportedTargets(), GetParam());
    }
    void TearDown() override {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }

    // Calls `check` for every number of lanes, each at every misalignment within a lane.
    template <typename Check>
    void for_every_shape(Check check) {
        for (std::size_t count = 0; count <= longest; ++count) {
            for (std::size_t misalignment = 0; misalignment < lane_bytes; ++misalignment) {
                SCOPED_TRACE("lanes " + std::to_string(count) + ", misaligned by " + std::to_string(misalignment));
                check(count, misalignment);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }

    Random random_{2021};
};

inline std::string name_of_target(const testing::TestParamInfo<std::int64_t>& target) {
    return hwy::TargetName(target.param);
}

}  // namespace atp::numeric
