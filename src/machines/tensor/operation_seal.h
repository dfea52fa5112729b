// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "crypto/crypto.h"
#include "crypto/linear_code.h"
#include "protocol/tensor.h"
#include "protocol/waker.h"

namespace atp::tensor {

// Of one formation. No switch has them, nor what they are derived from.
struct SealKeys {
    crypto::SecretKey factors{};
    crypto::SecretKey words{};
};

// What a rank sends instead of a number without an integer, which an addition could not carry.
enum class Extreme : std::uint8_t { nan = 1, infinity = 2, minus_infinity = 3 };

// Elements of a tensor that are so on a rank.
struct ExtremeRun {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    Extreme value = Extreme::nan;
};

// What a tensor's words stand for.
struct SealedWords {
    crypto::WordKind kind = crypto::WordKind::balanced;
    bool may_wrap = false;  // their sums are modulo 2^32

    // No sum of some of them leaves an int32.
    [[nodiscard]] bool fits() const { return kind == crypto::WordKind::balanced && !may_wrap; }
};

// What a rank tells the others about an operation, sealed with a key that no switch has.
struct SealWord {
    static constexpr std::size_t most_runs = 16;
    static constexpr std::size_t plain_bytes = 32 + most_runs * 16;
    static constexpr std::size_t sealed_bytes = plain_bytes + crypto::seal_bytes;

    std::uint64_t sent = 0;          // code of the words that this rank sent
    std::uint64_t got = 0;           // code of the sums that it got
    std::uint32_t largest = 0;       // magnitude of its words whose sums may leave 32 bits
    bool misfits = false;            // a finite number of it has no integer
    bool demands = false;            // it was asked for floats, or told of an overflow, which none of its sums has
    std::vector<ExtremeRun> runs{};  // at most most_runs

    void encode(std::span<std::byte, plain_bytes> bytes) const;
    [[nodiscard]] static SealWord decode(std::span<const std::byte, plain_bytes> bytes);
};

// Proves to each rank that the sums which all ranks got are those of what they sent, whatever the switches did
// (docs/spec/sealing.md).
//
// Ownership: a value that the tensors of an operation share; shares `feed`.
// Calling order: expect() for each tensor before any word is sent; note() for each part of a tensor when its sum
//   arrives; ready(), then own_word() any number of times; keep() for the words of the other ranks; then check().
// Threads: any. Failure: check() tells what failed.
class OperationSeal {
  public:
    struct Rules {
        std::uint64_t operation = 0;  // number of the call
        std::uint32_t rank = 0;
        std::uint32_t ranks = 1;
        std::array<std::byte, 16> call{};  // what the ranks called, as their words are bound to it
        SealKeys keys{};
        std::shared_ptr<protocol::Waker> feed{};
    };

    explicit OperationSeal(Rules rules);

    // Returns the number of the first word.
    [[nodiscard]] std::uint64_t expect(std::uint64_t words);
    [[nodiscard]] std::uint32_t ranks() const { return rules_.ranks; }
    // No sum of words up to this magnitude leaves 32 bits.
    [[nodiscard]] std::uint32_t bound() const {
        return std::uint32_t{std::numeric_limits<std::int32_t>::max()} / ranks();
    }

    // What a rank found in its own words and in their sums: at most LinearCode::most_words of them.
    struct SealedPart {
        std::uint64_t first = 0;  // number
        std::span<const std::byte> sent{};
        std::span<const std::byte> got{};
        SealedWords words{};
    };
    void note(const SealedPart& part);
    void note(const ExtremeRun& run);
    void note_misfit();
    void note_demand();

    // All sums arrived. After false, advance() of the feed is called when they have.
    [[nodiscard]] bool ready() const { return words_left_.load(std::memory_order_acquire) == 0; }
    [[nodiscard]] std::span<const std::byte> own_word();
    // Some bytes of the word of another rank.
    void keep(std::uint32_t rank, std::size_t offset, std::span<const std::byte> bytes);

    enum class SealFinding : std::uint8_t {
        holds,
        lied,     // a switch changed something, or a rank that has the key did
        wraps,    // sums of integers may have left 32 bits
        misfits,  // a number had no integer
        demands,  // the sums are right, but a switch asked for something that nobody could prove
    };
    [[nodiscard]] SealFinding check();
    // Of all ranks, after check().
    [[nodiscard]] const std::vector<ExtremeRun>& extremes() const { return extremes_; }

  private:
    using Sealed = std::array<std::byte, SealWord::sealed_bytes>;

    [[nodiscard]] crypto::Nonce nonce_of(std::uint32_t rank) const;
    [[nodiscard]] std::optional<SealWord> opened(std::uint32_t rank) const;

    Rules rules_;
    crypto::LinearCode code_;
    std::uint64_t words_ = 0;
    std::atomic<std::uint64_t> words_left_{0};
    std::mutex mutex_;  // guards all below
    SealWord own_;
    bool sealed_ = false;
    std::vector<Sealed> words_of_ranks_;
    std::vector<ExtremeRun> extremes_;
};

}  // namespace atp::tensor
