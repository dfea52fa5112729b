// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "numeric/half.h"

namespace atp::test {
namespace {

using comm::Reduction;
using numeric::ElementType;

template <class Value>
void put(Bytes& bytes, std::size_t at, const Value& value) {
    std::memcpy(bytes.data() + at * sizeof value, &value, sizeof value);
}

template <class Value>
Value get(const Bytes& bytes, std::size_t at) {
    Value value;
    std::memcpy(&value, bytes.data() + at * sizeof value, sizeof value);
    return value;
}

std::uint16_t narrow(ElementType type, float value) {
    std::uint16_t bits = 0;
    if (type == ElementType::float16) {
        numeric::floats_to_halves(&value, 1, &bits);
    } else {
        numeric::floats_to_bfloats(&value, 1, &bits);
    }
    return bits;
}

float widen(ElementType type, std::uint16_t bits) {
    float value = 0;
    if (type == ElementType::float16) {
        numeric::halves_to_floats(&bits, 1, &value);
    } else {
        numeric::bfloats_to_floats(&bits, 1, &value);
    }
    return value;
}

float float_at(ElementType type, const Bytes& bytes, std::size_t at) {
    switch (type) {
        case ElementType::float32: return get<float>(bytes, at);
        case ElementType::float64: return static_cast<float>(get<double>(bytes, at));
        default: return widen(type, get<std::uint16_t>(bytes, at));
    }
}

void put_float(ElementType type, Bytes& bytes, std::size_t at, double sum) {
    switch (type) {
        case ElementType::float32: put(bytes, at, static_cast<float>(sum)); break;
        case ElementType::float64: put(bytes, at, sum); break;
        default: put(bytes, at, narrow(type, static_cast<float>(sum))); break;
    }
}

template <class Unsigned>
void add_integers(const std::vector<Bytes>& tensors, std::size_t elements, Bytes& sums) {
    for (std::size_t at = 0; at < elements; ++at) {
        Unsigned sum = 0;
        for (const Bytes& tensor : tensors) sum += get<Unsigned>(tensor, at);
        put(sums, at, sum);
    }
}

}  // namespace

Bytes tensor_of(ElementType type, std::uint32_t rank, std::size_t elements, std::uint32_t seed) {
    Bytes bytes(elements * numeric::bytes_of(type));
    for (std::size_t at = 0; at < elements; ++at) {
        const std::uint64_t random = mix64(mix64(mix64(seed) + rank) + at);
        const double number = static_cast<double>(static_cast<std::int64_t>(random)) * 0x1p-63;
        switch (type) {
            case ElementType::int32: put(bytes, at, static_cast<std::uint32_t>(random)); break;
            case ElementType::int64: put(bytes, at, random); break;
            default: put_float(type, bytes, at, number); break;
        }
    }
    return bytes;
}

Bytes sum_of(ElementType type, Reduction reduction, const std::vector<Bytes>& tensors, double scale) {
    Bytes sums(tensors.front().size());
    const std::size_t elements = sums.size() / numeric::bytes_of(type);
    if (type == ElementType::int32) {
        add_integers<std::uint32_t>(tensors, elements, sums);
        return sums;
    }
    if (type == ElementType::int64) {
        add_integers<std::uint64_t>(tensors, elements, sums);
        return sums;
    }
    const double factor = reduction == Reduction::average ? 1.0 / static_cast<double>(tensors.size()) : 1.0;
    for (std::size_t at = 0; at < elements; ++at) {
        std::int64_t sum = 0;
        for (const Bytes& tensor : tensors) {
            sum += static_cast<std::int64_t>(std::nearbyint(float_at(type, tensor, at) * static_cast<float>(scale)));
        }
        const float as_float = static_cast<float>(static_cast<double>(sum) * (1.0 / scale));
        put_float(type, sums, at, double{as_float} * factor);
    }
    return sums;
}

Bytes sum_of_ranks(ElementType type, Reduction reduction, std::uint32_t world, std::size_t elements,
                   std::uint32_t seed) {
    std::vector<Bytes> tensors;
    for (std::uint32_t rank = 0; rank < world; ++rank) tensors.push_back(tensor_of(type, rank, elements, seed));
    return sum_of(type, reduction, tensors, comm::Options{}.scale);
}

std::string difference(const Bytes& expected, const Bytes& actual, std::size_t element_bytes) {
    if (expected.size() != actual.size()) return "sizes differ";
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t at = 0; at < expected.size(); at += element_bytes) {
        if (std::memcmp(expected.data() + at, actual.data() + at, element_bytes) == 0) continue;
        if (wrong++ == 0) first = at / element_bytes;
    }
    if (wrong == 0) return {};
    return std::to_string(wrong) + " of " + std::to_string(expected.size() / element_bytes) +
           " elements are wrong, the first is number " + std::to_string(first);
}

void expect_sum(comm::Communicator& communicator, ElementType type, Reduction reduction, std::size_t elements,
                std::uint32_t seed, bool in_place) {
    Bytes in = tensor_of(type, communicator.rank(), elements, seed);
    const Bytes before = in;
    Bytes apart(in.size(), std::byte{0xEE});
    Bytes& out = in_place ? in : apart;
    if (!succeeds(communicator.all_reduce({in.data(), out.data(), elements}, type, reduction))) return;
    const Bytes expected = sum_of_ranks(type, reduction, communicator.world(), elements, seed);
    EXPECT_EQ(difference(expected, out, numeric::bytes_of(type)), "")
        << "rank " << communicator.rank() << ", " << elements << " elements of " << to_string(type)
        << (in_place ? ", in place" : ", apart");
    if (!in_place) {
        EXPECT_EQ(in, before) << "the input was written to";
    }
}

void expect_sum(comm::Communicator& communicator, std::size_t elements, std::uint32_t seed) {
    expect_sum(communicator, ElementType::float32, Reduction::sum, elements, seed, false);
}

Result<comm::Handle> gather_in_place(comm::Communicator& communicator, std::vector<float>& values, Time deadline) {
    constexpr std::size_t part = 50;
    const std::vector<std::size_t> bytes(communicator.world(), part * sizeof(float));
    return communicator.all_gather(values.data() + communicator.rank() * part, values.data(), bytes, deadline);
}

void work_through(comm::Communicator& communicator) {
    const std::uint32_t world = communicator.world();
    const std::uint32_t rank = communicator.rank();
    const std::uint32_t root = world - 1;
    std::vector<std::size_t> counts(world, 1);
    counts[root] = 541;
    std::vector<std::size_t> bytes(world, 4);
    bytes[root] = 4 * counts[root];
    const std::vector<float> input(root + counts[root], static_cast<float>(rank + 1));
    const std::vector<float> sum(input.size(), static_cast<float>(world * (world + 1)) / 2);
    for (int round = 0; round < 2; ++round) {
        std::vector<float> part(counts[rank]);
        std::vector<float> whole(input.size());
        std::vector<float> rooted(input.size());
        std::vector<std::int64_t> integers(700, std::int64_t{1} << 40U);
        std::uint32_t word = rank == root ? 0xDEADBEEF : 0;
        for (const auto& work :
             {communicator.reduce_scatter(input.data(), part.data(), counts, ElementType::float32, Reduction::sum),
              communicator.all_gather(input.data(), whole.data(), bytes),
              communicator.reduce({input.data(), rooted.data(), input.size()}, ElementType::float32, Reduction::sum,
                                  root),
              sum_in_place(communicator, integers), communicator.broadcast(&word, sizeof word, root),
              communicator.barrier()}) {
            if (!succeeds(work)) return;
        }
        EXPECT_EQ(part, std::vector<float>(counts[rank], sum[0]));
        for (std::uint32_t from = 0; from < world; ++from) EXPECT_EQ(whole[from], static_cast<float>(from + 1));
        EXPECT_EQ(whole.back(), static_cast<float>(world));
        EXPECT_EQ(rooted, rank == root ? sum : std::vector<float>(input.size()));
        EXPECT_EQ(integers, std::vector<std::int64_t>(700, std::int64_t{world} << 40U));
        EXPECT_EQ(word, 0xDEADBEEF);
        if (!succeeds(communicator.push(3, input.data(), input.size(), ElementType::float32))) return;
    }
    std::vector<float> pulled(input.size());
    if (!succeeds(communicator.pull(3, pulled.data(), pulled.size(), ElementType::float32))) return;
    EXPECT_EQ(pulled, sum);
}

}  // namespace atp::test
