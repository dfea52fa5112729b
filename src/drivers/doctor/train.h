// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "wire/datagram.h"

namespace atp::doctor {

struct TrainReport {
    std::uint32_t bytes = 0;  // of each question and of each answer
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;              // questions
    std::optional<std::uint32_t> arrived{};  // questions that the switch counted; nullopt: not known
    std::uint32_t repeated = 0;              // answers to a question that was answered before
    std::uint32_t overtaken = 0;             // answers that came after the answer to a later question
    std::uint32_t most_newer = 0;            // largest number of answers to later questions that came before one answer
    std::array<std::uint32_t, 4> marks{};    // answers by wire::Ecn

    [[nodiscard]] std::uint32_t lost() const { return sent - answered; }
    // Requires `arrived`.
    [[nodiscard]] std::uint32_t lost_there() const { return sent - *arrived; }
    [[nodiscard]] std::uint32_t lost_back() const { return *arrived - answered; }
};

// Statistics of a train of numbered questions, whose answers carry the number of the question.
//
// Calling order: handle_sent() for the numbers from 0 in order, handle_answer() for each answer, report() at any time.
// Threads: one.
// Failure: answers to questions that were not sent are ignored.
class Train {
  public:
    explicit Train(std::uint32_t bytes) { report_.bytes = bytes; }

    void handle_sent();
    void handle_answer(std::uint64_t number, wire::Ecn ecn);
    [[nodiscard]] bool complete() const { return report_.answered == report_.sent; }
    [[nodiscard]] const TrainReport& report() const { return report_; }

  private:
    TrainReport report_;
    std::vector<bool> answered_;
};

}  // namespace atp::doctor
