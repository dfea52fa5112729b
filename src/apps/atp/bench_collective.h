// SPDX-License-Identifier: Apache-2.0
// The operations that `atp bench` measures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "apps/atp/bench_values.h"
#include "base/result.h"
#include "comm/communicator.h"

namespace atp::apps {

// both: a reduce-scatter and an all-gather of two tensors at once.
enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, both };

inline constexpr std::array collectives{Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                        Collective::both};

[[nodiscard]] std::string_view to_string(Collective collective);
[[nodiscard]] std::optional<Collective> parse_collective(std::string_view name);

// One operation on memory of its own, which may run again.
//
// Calling order: clear(), run(), wrong(). Threads: one. Failure: run() returns the error of the first work that failed.
class CollectiveWork {
  public:
    virtual ~CollectiveWork() = default;
    CollectiveWork(const CollectiveWork&) = delete;
    CollectiveWork& operator=(const CollectiveWork&) = delete;

    // Overwrites the results of the run before.
    virtual void clear() = 0;
    // Starts the operation and waits for its end.
    [[nodiscard]] virtual Result<void> run(comm::Communicator& communicator) = 0;
    // The first element of a result that differs from the right one in any bit.
    [[nodiscard]] virtual std::optional<std::size_t> wrong() const = 0;

  protected:
    CollectiveWork() = default;
};

// `bytes`: of the whole tensor, of which each rank owns a block in a reduce-scatter and in an all-gather. `values` must
// outlive the work.
[[nodiscard]] std::unique_ptr<CollectiveWork> make_work(Collective collective, const BenchValues& values,
                                                        std::uint64_t bytes);

}  // namespace atp::apps
