// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ring.h"
#include "protocol/sequence.h"

namespace atp::protocol {

// Finds lost fragments. If three newer fragments have ACKs, every worker has sent the older fragment, so its gradient
// or its ACK was lost (ATP §3.7). If the newer fragments were first sent after a resend, the resend was lost too. A
// server counts completions instead of ACKs.
//
// Ownership: owns two rings of `resends` entries, allocated at construction.
// Calling order: note_ack() for the first ACK of each fragment, note_resend() for each resend, and advance() when the
//   oldest fragment without ACK changes. Then poll() until it returns nothing; note_wait() for what shall come again.
// Threads: none.
// Failure: more than `resends` resends or waits at a time are not tracked. A timer covers their loss.
class LossDetector {
  public:
    static constexpr std::size_t proof = 3;  // newer ACKs

    enum class What : std::uint8_t { first, resend, wait };
    struct Overtaken {
        std::uint32_t seq = 0;
        What what = What::first;
    };

    LossDetector(std::uint32_t first_seq, std::size_t resends);

    void note_ack(std::uint32_t seq);
    // `next_seq`: next fragment to be sent for the first time.
    void note_resend(std::uint32_t seq, std::uint32_t next_seq) { (void)resent_.push({seq, next_seq}); }
    // Every fragment before `expected` has an ACK, which need not have been noted. Without this, old marks would
    // compare as newer after 2^31 further fragments.
    void advance(std::uint32_t expected) {
        if (before(scanned_until_, expected)) scanned_until_ = expected;
        for (std::uint32_t& ack : newest_acks_) {
            if (before(ack, expected - 1)) ack = expected - 1;
        }
    }
    // The caller waits for what happens to a fragment until three fragments from `until` on have ACKs.
    void note_wait(std::uint32_t seq, std::uint32_t until) { (void)waits_.push({seq, until}); }
    [[nodiscard]] bool has_overtaken(std::uint32_t seq) const { return !before(newest_acks_.front(), seq); }
    // The next fragment that newer ACKs have overtaken. The fragment may have an ACK in the meantime: the caller
    // checks.
    std::optional<Overtaken> poll() {
        const std::uint32_t third = newest_acks_.front();
        if (before(scanned_until_, third)) return Overtaken{scanned_until_++, What::first};
        if (const auto seq = poll(resent_, third)) return Overtaken{*seq, What::resend};
        if (const auto seq = poll(waits_, third)) return Overtaken{*seq, What::wait};
        return std::nullopt;
    }
    // Forgets all resends and waits.
    void clear() { resent_.clear(), waits_.clear(); }

    template <class Archive>
    void persist(Archive& archive) {
        for (std::uint32_t& seq : newest_acks_) archive.value(seq);
        archive.value(scanned_until_);
        resent_.persist(archive);
        waits_.persist(archive);
    }

  private:
    struct Sending {
        std::uint32_t seq = 0;
        std::uint32_t next_seq = 0;
        template <class Archive>
        void persist(Archive& archive) {
            archive.value(seq), archive.value(next_seq);
        }
    };

    static std::optional<std::uint32_t> poll(Ring<Sending>& sendings, std::uint32_t third) {
        if (sendings.empty() || before(third, sendings.front().next_seq)) return std::nullopt;
        const std::uint32_t seq = sendings.front().seq;
        sendings.pop();
        return seq;
    }

    std::array<std::uint32_t, proof> newest_acks_{};  // the highest acknowledged sequence numbers, ascending
    std::uint32_t scanned_until_;                     // poll() has handled every earlier fragment
    Ring<Sending> resent_;                            // resends in flight
    Ring<Sending> waits_;                             // of note_wait(), until `next_seq`
};

}  // namespace atp::protocol
