// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "wire/datagram.h"

namespace atp::doctor {

struct TrainReport {
    std::uint32_t bytes = 0;  // of each question, and of each answer
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;            // questions
    std::uint32_t repeated = 0;            // answers that had come before
    std::uint32_t overtaken = 0;           // answers that came after one to a later question
    std::uint32_t most_newer = 0;          // how many later ones came before one of them, at most
    std::array<std::uint32_t, 4> marks{};  // answers by wire::Ecn

    [[nodiscard]] std::uint32_t lost() const { return sent - answered; }
};

// The books of a train of numbered questions, each of which is answered by its number.
//
// Calling order: handle_sent() for the numbers from 0 on, handle_answer() as they come, report() at any time.
// Threads: one. Failure: answers to what was not asked are ignored.
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
