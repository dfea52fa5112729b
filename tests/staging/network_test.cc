// SPDX-License-Identifier: Apache-2.0
// Jobs with tensors on a device and real switches. Some ranks of a job have their tensors in host memory. All ranks
// must get the same sums.
#include <gtest/gtest.h>

#include <numeric>

#include "fabric.h"
#include "host_queue.h"
#include "staging/staged_tensor.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Reduction;
using numeric::ElementType;
using staging::StagedTensor;
using testing::HostQueue;

constexpr std::size_t chunk = 1000;

// Tensors of one rank on a device.
class OnDevice {
  public:
    explicit OnDevice(comm::Communicator& communicator, bool held = false)
        : device(std::make_shared<HostQueue>(held)), communicator_(communicator) {}

    Result<comm::Handle> all_reduce(std::vector<Bytes>& tensors, ElementType type, Reduction reduction) {
        std::vector<std::unique_ptr<protocol::Tensor>> staged;
        std::uint64_t all = 0;
        for (Bytes& tensor : tensors) {
            const std::size_t elements = tensor.size() / numeric::bytes_of(type);
            lanes_.emplace_back(elements * ATP_LANE_BYTES);
            const staging::Stage stage{.elements = {type, tensor.data(), elements},
                                       .scale = communicator_.scale(),
                                       .factor = communicator_.factor(reduction),
                                       .lanes = lanes_.back()};
            auto one = std::make_unique<StagedTensor>(device, stage, communicator_.feed(), chunk);
            one->begin();
            tensors_.push_back(one.get());
            staged.push_back(std::move(one));
            all += elements;
        }
        return communicator_.all_reduce(std::move(staged), all, type, reduction);
    }
    void wait_for_device() const {
        for (const StagedTensor* each : tensors_) each->wait_for_device();
    }

    std::shared_ptr<HostQueue> device;

  private:
    comm::Communicator& communicator_;
    std::deque<Bytes> lanes_;
    std::vector<StagedTensor*> tensors_;
};

class Types : public ::testing::TestWithParam<ElementType> {};

TEST_P(Types, DeviceTensorsSumExactly) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.channels = 2;
    Job(3, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        const ElementType type = GetParam();
        for (const Reduction reduction : {Reduction::sum, Reduction::average}) {
            const std::size_t sizes[] = {1, 3 * chunk + 17, 500};
            std::vector<Bytes> tensors;
            std::vector<comm::Buffer> buffers;
            for (std::uint32_t i = 0; i < std::size(sizes); ++i) {
                tensors.push_back(tensor_of(type, communicator.rank(), sizes[i], i));
                buffers.push_back({tensors.back().data(), tensors.back().data(), sizes[i]});
            }
            OnDevice here(communicator);
            const auto work = communicator.rank() == 0 ? communicator.all_reduce(buffers, type, reduction)
                                                       : here.all_reduce(tensors, type, reduction);
            if (!succeeds(work)) return;
            if (communicator.rank() != 0) here.wait_for_device();
            for (std::uint32_t i = 0; i < std::size(sizes); ++i) {
                EXPECT_EQ(
                    difference(sum_of_ranks(type, reduction, 3, sizes[i], i), tensors[i], numeric::bytes_of(type)), "")
                    << "tensor " << i << " of rank " << communicator.rank();
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Staging, Types,
                         ::testing::Values(ElementType::float32, ElementType::float64, ElementType::float16,
                                           ElementType::bfloat16),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST(Staging, InfinitiesAndHugeFloatsAreSummed) {
    const auto node = start(small_switch());
    Job(2, {address_of(*node)}).run([](comm::Communicator& communicator) {
        std::vector<float> values(2 * chunk + 5, 1.0F);
        values[chunk + 100] = 1e30F;
        std::vector<Bytes> tensors(1, Bytes(values.size() * sizeof(float)));
        std::memcpy(tensors.front().data(), values.data(), tensors.front().size());
        OnDevice here(communicator);
        const auto work = here.all_reduce(tensors, ElementType::float32, Reduction::sum);
        if (!succeeds(work)) return;
        here.wait_for_device();
        std::memcpy(values.data(), tensors.front().data(), tensors.front().size());
        EXPECT_EQ(values[0], 2.0F);
        EXPECT_EQ(values[chunk + 100], 2e30F);
        EXPECT_EQ(here.device->fetches(), 1U);
    });
}

TEST(Staging, ReadyChunksAreSentWhileTheDeviceContinues) {
    const auto node = start(small_switch());
    Job(2, {address_of(*node)}).run([](comm::Communicator& communicator) {
        std::vector<Bytes> tensors{tensor_of(ElementType::float32, communicator.rank(), 3 * chunk, 1)};
        OnDevice here(communicator, true);
        const auto work = here.all_reduce(tensors, ElementType::float32, Reduction::sum);
        here.device->allow(2);
        EXPECT_TRUE(eventually([&] { return here.device->stores() == 1; }))
            << "the first chunk is stored; the end of the second is in a fragment that is not ready";
        EXPECT_EQ(here.device->loads(), 2U);
        here.device->release();
        if (!succeeds(work)) return;
        here.wait_for_device();
        EXPECT_EQ(difference(sum_of_ranks(ElementType::float32, Reduction::sum, 2, 3 * chunk, 1), tensors[0], 4), "");
    });
}

TEST(Staging, LaterOperationWaitsForAnUnreadyOne) {
    const auto node = start(small_switch());
    Job(2, {address_of(*node)}).run([](comm::Communicator& communicator) {
        std::vector<Bytes> tensors{tensor_of(ElementType::float32, communicator.rank(), chunk, 1)};
        OnDevice here(communicator, true);
        const auto work = here.all_reduce(tensors, ElementType::float32, Reduction::sum);
        const auto barrier = communicator.barrier();
        EXPECT_FALSE((*barrier)->done());
        here.device->release();
        EXPECT_TRUE(succeeds(work));
        EXPECT_TRUE(succeeds(barrier));
        here.wait_for_device();
    });
}

TEST(Staging, BrokenDeviceFailsTheOperationOnEveryRank) {
    const auto node = start(small_switch());
    Job(2, {address_of(*node)}).run([](comm::Communicator& communicator) {
        std::vector<Bytes> tensors{tensor_of(ElementType::float32, communicator.rank(), 3 * chunk, 1)};
        OnDevice here(communicator, true);
        const auto work = here.all_reduce(tensors, ElementType::float32, Reduction::sum);
        here.device->allow(1);
        ASSERT_TRUE(eventually([&] { return here.device->loads() == 1; }));
        if (communicator.rank() == 1) here.device->break_down();
        here.device->release();
        const Error error = error_of(work);
        EXPECT_TRUE(says(error, communicator.rank() == 1 ? "the test broke the device" : "rank 1"));
    });
}

}  // namespace
}  // namespace atp::test
