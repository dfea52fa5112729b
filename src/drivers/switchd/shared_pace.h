// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "control/question_pace.h"

namespace atp::switchd {

// The pace of a switch whose threads have one tree each. Threads: any; called only for parents that have not answered a
// channel, and when they answer.
class SharedPace final : public control::QuestionPace {
  public:
    using QuestionPace::QuestionPace;

    [[nodiscard]] Time ask(const wire::Address& host, const wire::Address& asker, const control::ChannelKey& channel,
                           Time now) override {
        const std::scoped_lock lock(mutex_);
        return QuestionPace::ask(host, asker, channel, now);
    }
    bool handle_answer(const wire::Address& host, Time now) override {
        const std::scoped_lock lock(mutex_);
        return QuestionPace::handle_answer(host, now);
    }

  private:
    std::mutex mutex_;
};

}  // namespace atp::switchd
