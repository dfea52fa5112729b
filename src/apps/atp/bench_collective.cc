// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_collective.h"

#include <cstring>
#include <numeric>
#include <span>
#include <vector>

namespace atp::apps {
namespace {

void overwrite(std::vector<std::byte>& memory) {
    constexpr int never_a_result = 0xEE;
    std::memset(memory.data(), never_a_result, memory.size());
}

Result<void> finish(const Result<comm::Handle>& work) {
    if (!work) return tl::unexpected(work.error());
    return (*work)->wait();
}

class AllReduceWork final : public CollectiveWork {
  public:
    AllReduceWork(const BenchValues& values, std::uint64_t bytes) : values_(values), in_(bytes), out_(bytes) {
        values_.fill(values_.rank(), 0, in_);
    }

    void clear() override { overwrite(out_); }
    Result<void> run(comm::Communicator& communicator) override {
        const comm::Buffer buffer{in_.data(), out_.data(), in_.size() / values_.element_bytes()};
        return finish(communicator.all_reduce(buffer, values_.type(), comm::Reduction::sum));
    }
    [[nodiscard]] std::optional<std::size_t> wrong() const override { return values_.wrong_sum(0, out_); }

  private:
    const BenchValues& values_;
    std::vector<std::byte> in_;
    std::vector<std::byte> out_;
};

// Elements of each rank's block. The first blocks have one more if the division leaves a rest.
std::vector<std::size_t> blocks(const BenchValues& values, std::uint64_t bytes) {
    const std::size_t elements = bytes / values.element_bytes();
    std::vector<std::size_t> counts(values.world(), elements / values.world());
    for (std::size_t rank = 0; rank < elements % values.world(); ++rank) ++counts[rank];
    return counts;
}

std::size_t first_of(const std::vector<std::size_t>& counts, std::uint32_t rank) {
    return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

class ReduceScatterWork final : public CollectiveWork {
  public:
    ReduceScatterWork(const BenchValues& values, std::uint64_t bytes)
        : values_(values),
          counts_(blocks(values, bytes)),
          first_(first_of(counts_, values.rank())),
          in_(bytes),
          out_(counts_[values.rank()] * values.element_bytes()) {
        values_.fill(values_.rank(), 0, in_);
    }

    void clear() override { overwrite(out_); }
    Result<comm::Handle> start(comm::Communicator& communicator) {
        return communicator.reduce_scatter(in_.data(), out_.data(), counts_, values_.type(), comm::Reduction::sum);
    }
    Result<void> run(comm::Communicator& communicator) override { return finish(start(communicator)); }
    [[nodiscard]] std::optional<std::size_t> wrong() const override { return values_.wrong_sum(first_, out_); }

  private:
    const BenchValues& values_;
    std::vector<std::size_t> counts_;
    std::size_t first_;
    std::vector<std::byte> in_;
    std::vector<std::byte> out_;
};

class AllGatherWork final : public CollectiveWork {
  public:
    AllGatherWork(const BenchValues& values, std::uint64_t bytes)
        : values_(values), counts_(blocks(values, bytes)), out_(bytes) {
        for (const std::size_t count : counts_) bytes_.push_back(count * values.element_bytes());
        in_.resize(bytes_[values.rank()]);
        values_.fill(values_.rank(), first_of(counts_, values.rank()), in_);
    }

    void clear() override { overwrite(out_); }
    Result<comm::Handle> start(comm::Communicator& communicator) {
        return communicator.all_gather(in_.data(), out_.data(), bytes_);
    }
    Result<void> run(comm::Communicator& communicator) override { return finish(start(communicator)); }
    [[nodiscard]] std::optional<std::size_t> wrong() const override {
        const std::span<const std::byte> all(out_);
        for (std::uint32_t rank = 0; rank < values_.world(); ++rank) {
            const std::size_t first = first_of(counts_, rank);
            const auto block = all.subspan(first * values_.element_bytes(), bytes_[rank]);
            if (const auto found = values_.wrong_value(rank, first, block)) return first + *found;
        }
        return std::nullopt;
    }

  private:
    const BenchValues& values_;
    std::vector<std::size_t> counts_;
    std::vector<std::size_t> bytes_;
    std::vector<std::byte> in_;
    std::vector<std::byte> out_;
};

class BothWork final : public CollectiveWork {
  public:
    BothWork(const BenchValues& values, std::uint64_t bytes) : scattered_(values, bytes), gathered_(values, bytes) {}

    void clear() override {
        scattered_.clear();
        gathered_.clear();
    }
    Result<void> run(comm::Communicator& communicator) override {
        const Result<comm::Handle> scatter = scattered_.start(communicator);
        const Result<comm::Handle> gather = gathered_.start(communicator);
        // Both must end before their memory may go.
        Result<void> first = finish(scatter);
        Result<void> second = finish(gather);
        return first ? second : first;
    }
    [[nodiscard]] std::optional<std::size_t> wrong() const override {
        const auto found = scattered_.wrong();
        return found ? found : gathered_.wrong();
    }

  private:
    ReduceScatterWork scattered_;
    AllGatherWork gathered_;
};

}  // namespace

std::string_view to_string(Collective collective) {
    switch (collective) {
        case Collective::all_reduce: return "all_reduce";
        case Collective::reduce_scatter: return "reduce_scatter";
        case Collective::all_gather: return "all_gather";
        case Collective::both: break;
    }
    return "both";
}

std::optional<Collective> parse_collective(std::string_view name) {
    for (const Collective collective : collectives) {
        if (to_string(collective) == name) return collective;
    }
    return std::nullopt;
}

std::unique_ptr<CollectiveWork> make_work(Collective collective, const BenchValues& values, std::uint64_t bytes) {
    switch (collective) {
        case Collective::all_reduce: return std::make_unique<AllReduceWork>(values, bytes);
        case Collective::reduce_scatter: return std::make_unique<ReduceScatterWork>(values, bytes);
        case Collective::all_gather: return std::make_unique<AllGatherWork>(values, bytes);
        case Collective::both: break;
    }
    return std::make_unique<BothWork>(values, bytes);
}

}  // namespace atp::apps
