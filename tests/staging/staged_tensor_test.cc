// SPDX-License-Identifier: Apache-2.0
// A tensor that is copied between a device and the network in chunks, for several sizes and every order of fragments.
#include "staging/staged_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "host_queue.h"
#include "tensor/tensors.h"

namespace atp::staging {
namespace {

using testing::HostQueue;
using Bytes = std::vector<std::byte>;

constexpr float scale = 1e6F;
constexpr std::size_t chunk = 100;
constexpr std::size_t payload = 7;  // elements of a fragment; a chunk is no multiple of it
constexpr auto longest_wait = std::chrono::seconds(20);

bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + longest_wait;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

std::vector<float> values_of(std::size_t count) {
    std::mt19937 random(static_cast<std::uint32_t>(count));
    std::uniform_real_distribution<float> within(-1, 1);
    std::vector<float> values(count);
    std::ranges::generate(values, [&] { return within(random); });
    return values;
}

// A tensor on a device, and a tensor in host memory with the same elements for comparison.
struct Scene {
    explicit Scene(std::vector<float> elements, double factor = 1, bool held = false)
        : device(std::make_shared<HostQueue>(held)),
          values(std::move(elements)),
          expected(values),
          lanes(values.size() * 4) {
        reference = tensor::make_sum_tensor(numeric::ElementType::float32, expected.data(), expected.data(),
                                            expected.size(), scale, factor);
        const Stage stage{.elements = {numeric::ElementType::float32, values.data(), values.size()},
                          .scale = scale,
                          .factor = factor,
                          .lanes = lanes};
        tensor = std::make_unique<StagedTensor>(device, stage, std::make_shared<protocol::SilentWaker>(), chunk);
    }

    void begin() {
        tensor->begin();
        ASSERT_TRUE(eventually([this] { return tensor->ready(0, values.size()); }));
    }

    // Lanes that `tensor` sends for the fragment at element `first`. Sets `integers` if they are integers, not floats.
    static Bytes sent(const protocol::Tensor& tensor, std::uint64_t first, std::size_t count, bool& integers) {
        Bytes wire(count * ATP_LANE_BYTES);
        integers = tensor.load_integers(first, wire);
        if (!integers) tensor.load_floats(first, wire);
        return wire;
    }

    // Sends the fragment at element `first` from both tensors and stores its sum in both.
    void pass(std::uint64_t first) {
        const std::size_t count = std::min<std::size_t>(payload, values.size() - first);
        bool integers = false;
        bool integers_expected = false;
        const Bytes wire = sent(*tensor, first, count, integers);
        EXPECT_EQ(wire, sent(*reference, first, count, integers_expected)) << "from element " << first;
        EXPECT_EQ(integers, integers_expected) << "from element " << first;
        const std::vector<float> sums = values_of(count);
        Bytes sum(wire.size());
        numeric::floats_to_wire(sums.data(), count, sum.data());
        tensor->store(first, sum);
        reference->store(first, sum);
    }

    std::shared_ptr<HostQueue> device;
    std::vector<float> values;
    std::vector<float> expected;
    Bytes lanes;
    std::unique_ptr<protocol::Tensor> reference;
    std::unique_ptr<StagedTensor> tensor;
};

class Sizes : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Sizes, FragmentsInAnyOrderGiveTheSums) {
    Scene scene(values_of(GetParam()), 0.25);
    scene.begin();
    std::vector<std::uint64_t> firsts;
    for (std::uint64_t first = 0; first < GetParam(); first += payload) firsts.push_back(first);
    std::mt19937 random(1);
    std::ranges::shuffle(firsts, random);
    for (const std::uint64_t first : firsts) scene.pass(first);
    scene.tensor->wait_for_device();
    EXPECT_EQ(scene.values, scene.expected);
    EXPECT_EQ(scene.device->loads(), (GetParam() + chunk - 1) / chunk);
    EXPECT_EQ(scene.device->stores(), scene.device->loads());
    EXPECT_EQ(scene.device->fetches(), 0U);
    EXPECT_FALSE(scene.tensor->error());
}

INSTANTIATE_TEST_SUITE_P(StagedTensor, Sizes, ::testing::Values(1, chunk - 1, chunk, chunk + 1, 2 * chunk, 1234));

TEST(StagedTensor, ReadinessFollowsTheDevice) {
    Scene scene(values_of(3 * chunk), 1, true);
    scene.tensor->begin();
    EXPECT_FALSE(scene.tensor->ready(0, 1));
    scene.device->allow(2);
    EXPECT_TRUE(eventually([&] { return scene.tensor->ready(0, 2 * chunk); }));
    EXPECT_FALSE(scene.tensor->ready(2 * chunk - 1, 2));
    scene.device->release();
    EXPECT_TRUE(eventually([&] { return scene.tensor->ready(0, 3 * chunk); }));
}

TEST(StagedTensor, ChunkIsStoredWhileOthersAreLoaded) {
    Scene scene(values_of(3 * chunk), 1, true);
    scene.tensor->begin();
    scene.device->allow(1);
    ASSERT_TRUE(eventually([&] { return scene.tensor->ready(0, chunk); }));
    Bytes sum(chunk * ATP_LANE_BYTES);
    const std::vector<float> sums(chunk, 2.5F);
    numeric::floats_to_wire(sums.data(), chunk, sum.data());
    scene.tensor->store(0, sum);
    ASSERT_TRUE(eventually([&] { return scene.device->stores() == 1; }));
    EXPECT_EQ(scene.values[chunk - 1], 2.5F);
    EXPECT_EQ(scene.device->loads(), 1U);
    scene.device->release();
    scene.tensor->wait_for_device();
}

TEST(StagedTensor, FloatsAreFetchedOncePerChunk) {
    std::vector<float> values = values_of(4 * chunk);
    values[chunk + 10] = std::numeric_limits<float>::infinity();
    values[chunk + 50] = -1e30F;
    values[3 * chunk - 1] =
        std::numeric_limits<float>::denorm_min();  // a subnormal number, which the scale rounds to zero
    Scene scene(values);
    scene.begin();
    for (std::uint64_t first = 0; first < values.size(); first += payload) scene.pass(first);
    scene.tensor->wait_for_device();
    EXPECT_EQ(scene.values, scene.expected);
    EXPECT_EQ(scene.device->fetches(), 1U);
}

TEST(StagedTensor, FloatsOfAFragmentCanBeLoadedAfterSumsOfOtherFragments) {
    Scene scene(values_of(chunk));
    scene.begin();
    scene.pass(0);
    Bytes wire(payload * ATP_LANE_BYTES);
    Bytes expected(wire.size());
    scene.tensor->load_floats(payload, wire);  // as after a NACK that requests floats
    scene.reference->load_floats(payload, expected);
    EXPECT_EQ(wire, expected);
}

TEST(StagedTensor, ChunksAfterADeviceFailureAreNeverReady) {
    Scene scene(values_of(2 * chunk), 1, true);
    scene.tensor->begin();
    scene.device->allow(1);
    ASSERT_TRUE(eventually([&] { return scene.tensor->ready(0, chunk); }));
    scene.device->break_down();
    scene.device->release();
    ASSERT_TRUE(eventually([&] { return scene.tensor->error().has_value(); }));
    EXPECT_FALSE(scene.tensor->ready(chunk, 1));
    EXPECT_EQ(scene.tensor->error()->text, "the test broke the device");
}

TEST(StagedTensor, FloatsOfABrokenDeviceAreNan) {
    Scene scene(values_of(chunk));
    scene.begin();
    scene.device->break_down();
    Bytes wire(payload * ATP_LANE_BYTES);
    scene.tensor->load_floats(0, wire);
    std::vector<float> floats(payload);
    numeric::floats_from_wire(wire.data(), payload, floats.data());
    EXPECT_TRUE(std::ranges::all_of(floats, [](float each) { return std::isnan(each); }));
    EXPECT_TRUE(scene.tensor->error());
}

TEST(StagedTensor, DestructionWaitsForTheDevice) {
    Scene scene(values_of(3 * chunk), 1, true);
    scene.tensor->begin();
    std::thread releases([&] { scene.device->release(); });
    scene.tensor.reset();
    EXPECT_EQ(scene.device->loads(), 3U);
    releases.join();
}

}  // namespace
}  // namespace atp::staging
