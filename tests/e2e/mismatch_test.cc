// SPDX-License-Identifier: Apache-2.0
// If ranks call different operations, each of them gets an error that names the calls, and no rank a result.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fabric.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Reduction;
using numeric::ElementType;
using Call = Result<comm::Handle>;
using DifferentCall = std::function<Call(comm::Communicator&, std::vector<float>&)>;

// Every rank calls an operation, and the operations differ. All ranks get an error soon, and no rank gets a result.
// Each further call is refused with the reason "closed", and its text has the error once.
void expect_mismatch(const std::vector<std::string>& switches, std::uint32_t channels, const DifferentCall& call) {
    comm::Options options = small_options();
    options.channels = channels;
    Job job(3, switches, options);
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 3U);
    each(3, [&](std::uint32_t rank) {
        const std::vector<float> before(several_windows, 1.0F + static_cast<float>(rank));
        std::vector<float> values = before;
        const Error error = error_of(call(*ranks[rank], values));
        EXPECT_EQ(values, before) << "something came of it at rank " << rank;
        // A rank that turns to or from all-gathers announces that to the other channels first. If the other ranks meet
        // the announcement at once, the error may close the communicator before the call itself begins.
        EXPECT_TRUE(error.reason == Reason::mismatched || error.reason == Reason::closed) << to_string(error);
        EXPECT_TRUE(says(error, "make all ranks call the same")) << "rank " << rank << ": " << to_string(error);
        for (int later = 0; later < 2; ++later) {
            const Error next = error_of(sum_in_place(*ranks[rank], values));
            EXPECT_EQ(next.reason, Reason::closed) << "rank " << rank << ": " << to_string(next);
            EXPECT_TRUE(says(next, "make all ranks call the same")) << "rank " << rank << ": " << to_string(next);
            EXPECT_EQ(next.text.find("First error"), next.text.rfind("First error")) << next.text;
        }
    });
}

// The call of a rank that differs from that of the others.
DifferentCall all_reduce_of(std::uint32_t odd, std::size_t size, ElementType type, Reduction reduction) {
    return [=](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        if (communicator.rank() == odd)
            return communicator.all_reduce({values.data(), values.data(), size}, type, reduction);
        return sum_in_place(communicator, values);
    };
}

TEST(Mismatch, OfAnyPartOfACallFailsOnEveryRank) {
    const auto node = start(small_switch());
    const std::vector<DifferentCall> calls{all_reduce_of(1, 100, ElementType::float32, Reduction::sum),
                                           all_reduce_of(0, several_windows, ElementType::int32, Reduction::sum),
                                           all_reduce_of(0, several_windows, ElementType::float32, Reduction::average),
                                           [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
                                               return communicator.broadcast(values.data(), 10,
                                                                             communicator.rank() == 0 ? 0 : 1);
                                           },
                                           [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
                                               // Rank 2 calls the barrier first.
                                               if (communicator.rank() == 2) return communicator.barrier();
                                               auto first = sum_in_place(communicator, values);
                                               auto second = communicator.barrier();
                                               return first;
                                           }};
    for (const DifferentCall& call : calls) {
        SCOPED_TRACE(&call - calls.data());
        expect_mismatch({address_of(*node)}, 1, call);
    }
}

TEST(Mismatch, OfSizesFailsOnEveryChannelAndOverTwoLevels) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 3, all_reduce_of(2, 10, ElementType::float32, Reduction::sum));
    TwoLevels fabric;
    expect_mismatch({address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, 1,
                    all_reduce_of(1, 1000, ElementType::float32, Reduction::sum));
}

// They use channels of their own, and no rank calls a second operation.
TEST(Mismatch, H61_OfAnAllGatherAndASumFailsOnEveryRank) {
    const auto node = start(small_switch());
    for (const std::uint32_t channels : {1U, 2U}) {
        for (const std::uint32_t gathering : {0U, 2U}) {
            expect_mismatch({address_of(*node)}, channels,
                            [&](comm::Communicator& communicator, std::vector<float>& values) -> Call {
                                if (communicator.rank() == gathering) return gather_in_place(communicator, values);
                                return sum_in_place(communicator, values);
                            });
        }
    }
}

TEST(Mismatch, H61_OfASumAfterAllGathersFailsOnEveryRank) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 1, [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        std::vector<float> other(values.size(), 1.0F);
        for (int call = 0; call < 2; ++call) EXPECT_TRUE(gather_in_place(communicator, other).value()->wait());
        if (communicator.rank() != 1) return gather_in_place(communicator, values);
        return communicator.barrier();
    });
}

}  // namespace
}  // namespace atp::test
