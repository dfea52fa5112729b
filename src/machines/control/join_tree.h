// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/time.h"
#include "control/branch.h"
#include "control/switch_room.h"
#include "wire/control.h"

namespace atp::control {

struct JoinTreeConfig {
    wire::Address parent;          // of no family: this switch is the last
    bool serves_atp = true;        // to channels of that protocol
    bool serves_switchml = false;  // likewise
    std::uint32_t jobs = 64;       // at once
    std::uint32_t channels = 256;  // at once, of all jobs
    std::shared_ptr<SwitchRoom>
        room{};  // of all trees of the switch; none: `jobs` and `channels` are this tree's alone
    std::uint64_t server_bytes = std::uint64_t{1} << 30U;  // that the servers hosted here may take, together
    Duration hold = std::chrono::seconds(10);              // whoever is silent for so long is gone
    Duration refresh = std::chrono::seconds(1);            // how often a standing branch is confirmed upwards
    Duration impatient = std::chrono::milliseconds(50);    // and one that does not stand yet
};

struct TreeEvent {
    enum class Kind : std::uint8_t {
        admitted,  // a channel entered: its job's packets are to be accepted
        opened,    // hosts, and everybody is there for the first time: make the server, or give it slots
        closed,    // forget it
    };
    Kind kind = Kind::admitted;
    std::uint32_t job = 0;
    std::uint32_t token = 0;
    std::uint16_t channel = 0;
    std::uint8_t level = 0;
    wire::ChannelProtocol protocol = wire::ChannelProtocol::atp;
    bool last_of_job = false;  // closed: no other channel of the job is left here
};

struct TreeCounters {
    std::uint64_t joins = 0;
    std::uint64_t refused = 0;
    std::uint64_t forged = 0;   // answers or leaves that belong to nothing here
    std::uint64_t expired = 0;  // children that fell silent
    std::uint64_t left = 0;
};

// The tree of one switch (or of one shard of it): soft state that JOINs build and refresh, and that fades without them.
//
// Calling order: handle_*() for each control message, handle_timeout() at poll_timeout(); after each, poll_event() and
// poll_transmit() until they return nothing. opened() or could_not_open() answers the event of that name.
// Owns: the branches, at most as many as configured. A pointer to a branch holds until the next handle_*().
// Threads: none. Failure: what is refused is answered with the reason, counted, and changes nothing.
class JoinTree {
  public:
    explicit JoinTree(const JoinTreeConfig& config);

    void handle_join(const wire::Join& join, const wire::Address& from, Time now);
    void handle_leave(const wire::Leave& leave, const wire::Address& from, Time now);
    // From above: a switch or a server elsewhere.
    void handle_joined(const wire::Joined& joined, const wire::Address& from, Time now);
    void handle_refused(const wire::Refused& refused, const wire::Address& from);
    void handle_timeout(Time now);
    // The server of an opened event exists, or the channel has its slots, under the number of its stream.
    void opened(std::uint32_t job, std::uint16_t channel, std::uint8_t stream = 0);
    // There is no room for it, and why: everybody is told, and the channel is forgotten.
    void could_not_open(std::uint32_t job, std::uint16_t channel, std::string why);

    struct Transmit {
        wire::Address to;  // a group: where it is to be found, is where `near` is
        std::variant<wire::Join, wire::Joined, wire::Refused, wire::Leave> message;
        wire::Address near{};
    };
    std::optional<Transmit> poll_transmit();
    std::optional<TreeEvent> poll_event();
    [[nodiscard]] Time poll_timeout() const { return next_sweep_; }

    // nullptr where the channel did not join.
    [[nodiscard]] Branch* find(std::uint32_t job, std::uint16_t channel);
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const auto& [key, branch] : branches_) visit(*branch);
    }
    [[nodiscard]] std::size_t channels() const { return branches_.size(); }
    [[nodiscard]] const TreeCounters& counters() const { return counters_; }
    [[nodiscard]] const JoinTreeConfig& config() const { return config_; }

  private:
    struct Job {
        std::uint32_t token = 0;
        std::uint8_t level = 0;
        std::uint32_t channels = 0;
    };
    struct Objection {
        wire::Refusal reason;
        std::string text;
    };
    using Key = std::uint64_t;

    [[nodiscard]] static Key key_of(std::uint32_t job, std::uint16_t channel) {
        return (std::uint64_t{job} << 16U) | channel;
    }
    [[nodiscard]] std::optional<Objection> objection_to(const wire::Join& join, const wire::Address& from, Time now);
    [[nodiscard]] std::optional<Objection> objection_to_new(const wire::Join& join) const;
    // Takes room for a further channel, or says why there is none.
    [[nodiscard]] std::optional<Objection> take_room(std::uint32_t job);
    [[nodiscard]] std::optional<Objection> objection_to_protocol(const wire::Join& join) const;
    [[nodiscard]] std::optional<Objection> objection_to_server(const wire::ChannelTerms& terms) const;
    [[nodiscard]] static std::optional<Objection> objection_to_ranks(const wire::Join& join);
    [[nodiscard]] static std::optional<Objection> objection_to_shape(const Branch& branch, const wire::Join& join);
    [[nodiscard]] std::optional<Objection> objection_to_known(const Branch& branch, const wire::Join& join,
                                                              const wire::Address& from, Time now) const;
    Branch& open_branch(const wire::Join& join, Time now);
    void seat(Branch& branch, const wire::Join& join, const wire::Address& from, Time now);
    // True where nobody is left, and the branch is gone.
    bool unseat(Branch& branch, const Branch::Seat& seat);
    [[nodiscard]] static bool contradicts_itself(const Branch& branch);
    void open_server(const Branch& branch);
    void refuse_all(const Branch& branch, const wire::Refused& refused);
    void ascend(Branch& branch, Time now);
    void tell(const Branch& branch, const Branch::Child& child);
    void tell_all(const Branch& branch);
    void tell_group(Branch& branch, const wire::Address& near, Time now);
    void close(Branch& branch);
    [[nodiscard]] static wire::Join join_upwards(const Branch& branch);
    [[nodiscard]] static wire::Joined joined_of(const Branch& branch);
    void wake_at(Time when);

    JoinTreeConfig config_;
    std::unordered_map<Key, std::unique_ptr<Branch>> branches_;
    std::unordered_map<std::uint32_t, Job> jobs_;
    std::uint64_t server_bytes_ = 0;  // promised to the servers of branches
    std::deque<Transmit> outbox_;
    std::deque<TreeEvent> events_;
    Time next_sweep_ = never;
    Key last_key_ = 0;
    Branch* last_ = nullptr;  // packets come in bursts of one channel
    TreeCounters counters_;
};

// What a channel's server takes at most; SwitchML has none.
[[nodiscard]] std::uint64_t server_bytes_of(const wire::ChannelTerms& terms);

}  // namespace atp::control
