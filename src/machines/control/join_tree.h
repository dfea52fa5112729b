// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/memory_budget.h"
#include "base/siphash.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "control/address_range.h"
#include "control/branch.h"
#include "control/channel_key.h"
#include "control/departures.h"
#include "control/guarantees.h"
#include "control/question_pace.h"
#include "control/switch_room.h"
#include "control/tenants.h"
#include "control/timing.h"
#include "control/tree_notice.h"
#include "protocol/archive.h"
#include "protocol/variant.h"
#include "wire/control.h"
#include "wire/joining_message.h"
#include "wire/send_error.h"

namespace atp::control {
inline namespace ATP_VARIANT {

struct JoinTreeConfig {
    wire::Address parent;          // of no family: none; a job may name another one
    std::uint32_t jobs = 64;       // limit at a time
    std::uint32_t channels = 256;  // limit at a time, over all jobs
    std::shared_ptr<SwitchRoom>
        room{};  // limits shared by all trees of the switch; nullptr: `jobs` and `channels` limit this tree alone
    std::uint64_t server_bytes = std::uint64_t{4} << 30U;  // limit for all servers hosted here; 0: hosts none
    Duration hold = timing.hold;                           // a child or parent silent for longer is treated as lost
    Secret secret{};                                       // random: of values that no other host may guess
    // Hosts that all trees of the switch ask; nullptr: one of this tree alone.
    std::shared_ptr<QuestionPace> pace{};
    wire::Address self{};                      // of this switch
    std::vector<AddressRange> servers{};       // that a job may name as its server or root; empty: any host
    std::vector<AddressRange> groups{};        // to which a job may let the switch send results
    bool asks_path = false;                    // of jobs without a group, a switch in the path may copy results
    Secret ticket_key{};                       // random, and the same after a restart if jobs are to keep their places
    std::shared_ptr<const Tenants> tenants{};  // nullptr: the switch is open. A shared `room` has them from its owner
    std::shared_ptr<const crypto::TenantKey> parent_key{};  // with which it joins its parent; nullptr: none
    std::uint32_t trees = 1;            // of the switch, which divide the memory of each tenant's servers
    std::optional<JobKey> only{};       // the one job that may join; nullopt: any
    Duration impatient = timing.hurry;  // interval of JOINs upwards until the parent is ready, then refresh_of(hold)
};

struct TreeEvent {
    enum class Kind : std::uint8_t {
        admitted,  // all members of the channel have joined for the first time: accept packets of its job
        opened,    // this switch hosts the channel, and all members have joined: create the server
        closed,    // the channel ended: release all that belongs to it
    };
    Kind kind = Kind::admitted;
    std::uint32_t job = 0;
    std::uint64_t token = 0;
    std::uint16_t channel = 0;
    std::uint8_t level = 0;
    bool last_of_job = false;  // closed: the job has no other channel here
    wire::Address group{};  // closed: no other channel here has this group; no family: it had none, or another has it
};

// tools/write_events writes the counters of a tree from src/events.toml.
// Of the jobs that joined in a thread.
struct TreeCounters {
    std::uint64_t joins = 0;         // JOINs received
    std::uint64_t refused = 0;       // JOINs refused, and channels that could not open
    std::uint64_t expired = 0;       // members that sent no JOIN for `--hold` (3 s)
    std::uint64_t closed = 0;        // members whose host reported that their process ended
    std::uint64_t left = 0;          // members that sent LEAVE
    std::uint64_t stray_errors = 0;  // ICMP messages that quote no packet of a channel here, or one to no neighbour
    std::uint64_t forged = 0;        // control messages that cannot have come from a real neighbour
    std::uint64_t unproven = 0;      // control messages whose code is missing or wrong
    std::uint64_t stale = 0;         // JOINs and JOINEDs older than their sender's last one
    // JOINs of new channels that wait: in its first `--hold`, a switch keeps half of its tables for jobs from before
    // its restart
    std::uint64_t deferred = 0;
};

inline constexpr std::array tree_fields{
    counter<&TreeCounters::joins>("joins"),
    counter<&TreeCounters::refused>("joins_refused"),
    counter<&TreeCounters::expired>("members_expired"),
    counter<&TreeCounters::closed>("members_closed"),
    counter<&TreeCounters::left>("members_left"),
    counter<&TreeCounters::stray_errors>("stray_errors"),
    counter<&TreeCounters::forged>("control_forged"),
    counter<&TreeCounters::unproven>("control_unproven"),
    counter<&TreeCounters::stale>("control_stale"),
    counter<&TreeCounters::deferred>("joins_deferred"),
};
// End of the written part.

// The tree of one switch, or of one shard of it (docs/spec/joining.md). It is soft state: JOINs build and refresh
// it. Children without a JOIN for `hold`, or whose process ended, are removed. All neighbours then learn which edge of
// the tree failed first.
//
// Ownership: owns the branches, at most as many as configured. A pointer to a branch is valid until the next handle_*()
//   or could_not_open().
// Calling order: handle_*() for each control message, handle_timeout() at poll_timeout(). After each, poll_event() and
//   poll_transmit() until they return nothing. Answer the event `opened` with opened() or could_not_open().
//   poll_notice() is for the log: without calls to it, the oldest notices are dropped.
// Threads: none.
// Failure: a refused JOIN is answered with the reason and counted. It changes nothing, unless no member can go on: it
//   completes the channel with inconsistent ranks, or shows that the sums of the channel are lost. Then all members are
//   refused, and the channel is closed.
class JoinTree {
  public:
    explicit JoinTree(const JoinTreeConfig& config);

    // `bytes`: its length with padding. The answers have the same. `proof`: of its code; none if the switch is open.
    void handle_join(const wire::Join& join, const wire::Address& from, Time now, std::size_t bytes = 0,
                     const Proof& proof = {});
    void handle_leave(const wire::Leave& leave, const wire::Address& from, Time now);
    // From the parent: a switch, or the host of the server.
    void handle_joined(const wire::Joined& joined, const wire::Address& from, Time now);
    void handle_refused(const wire::Refused& refused, const wire::Address& from, Time now);
    // No key of the tenants proves this JOIN. `why` is for the log only: the sender must not learn which keys exist.
    void refuse_unproven(const wire::Join& join, const wire::Address& from, std::string why, Time now);
    // A message that its code does not prove, and that changes nothing.
    void note_unproven() { ++counters_.unproven; }
    // The parent proves no key that this switch knows.
    void give_up_parent(const ChannelKey& key, const std::string& why, Time now);
    void handle_retry(const wire::Retry& retry, const wire::Address& from, Time now);
    // A report about a packet that the switch sent.
    void handle_send_error(const wire::SendError& error, Time now);
    void handle_timeout(Time now);
    // From now on: members that have joined stay, but channels end that have one with a revoked key.
    void set_tenants(std::shared_ptr<const Tenants> tenants, Time now);
    // From now on: which hosts and groups a JOIN may name.
    void set_hosts(HostLists hosts);
    // Answers the event `opened`: the server exists.
    void opened(const ChannelKey& key);
    // Answers the event `opened`: the driver has no room. Sends `why` to all members and closes the channel.
    void could_not_open(const ChannelKey& key, std::string why);

    struct Transmit {
        wire::Address to;  // for a group, send on the interface that reaches `near`
        wire::JoiningMessage message;
        wire::Address near{};
        std::uint32_t padded_bytes = 0;  // least length of a JOIN or JOINED
    };
    std::optional<Transmit> poll_transmit();
    std::optional<TreeEvent> poll_event();
    std::optional<TreeNotice> poll_notice();
    [[nodiscard]] Time poll_timeout() const { return next_sweep_; }

    // nullptr: no member of the channel has joined.
    [[nodiscard]] Branch* find(const ChannelKey& key);
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const auto& [key, branch] : branches_) visit(*branch);
    }
    [[nodiscard]] std::size_t channels() const { return branches_.size(); }
    [[nodiscard]] const TreeCounters& counters() const { return counters_; }
    [[nodiscard]] const JoinTreeConfig& config() const { return config_; }
    // The servers of this tree take the memory for their sums from it.
    [[nodiscard]] MemoryBudget& memory() { return memory_; }

    // Defined in persist_join_tree.h.
    template <protocol::Archive Archive>
    void persist(Archive& archive);

  private:
    struct TreeJob {
        std::uint8_t level = 0;
        std::uint32_t channels = 0;
    };
    struct Objection {
        wire::Refusal reason;
        std::string text;
        std::string why{};  // for the operator, if the member must not know it
    };
    [[nodiscard]] static Objection of_another_tenant(const Owner& owner);
    [[nodiscard]] std::optional<Objection> objection_to_sender(const wire::Join& join, const wire::Address& from,
                                                               const Proof& proof) const;
    [[nodiscard]] std::optional<Objection> objection_to(const wire::Join& join, const wire::Address& from,
                                                        const Proof& proof, Time now);
    [[nodiscard]] std::optional<Objection> objection_to_new(const wire::Join& join, const wire::Address& from,
                                                            const Proof& proof, Time now) const;
    [[nodiscard]] wire::Address parent_of(const wire::ChannelTerms& terms) const;
    // To where the terms make this switch send, besides its parent and its members.
    [[nodiscard]] std::optional<Objection> objection_to_targets(const wire::Join& join, const wire::Address& from,
                                                                const Tenant* tenant) const;
    [[nodiscard]] std::optional<Objection> objection_to_named(const wire::Address& named, const wire::Address& from,
                                                              const Tenant* tenant) const;
    [[nodiscard]] std::optional<Objection> objection_to_group(const wire::Address& group, const Tenant* tenant) const;
    [[nodiscard]] std::optional<Objection> objection_to_server(const wire::ChannelTerms& terms, const Owner& owner,
                                                               Time now) const;
    // Takes room for a further channel. nullopt: this JOIN gets no answer, since its sender repeats it.
    struct Admission {
        std::optional<Objection> objection{};
    };
    [[nodiscard]] std::optional<Admission> take_place(const wire::Join& join, const Owner& owner, Time now);
    [[nodiscard]] Objection no_place(SwitchRoom::RoomAnswer answer, const Owner& owner) const;
    // join_shares.cc: who ends when another one finds no room.
    [[nodiscard]] bool may_end(const Branch& branch, Time now) const;
    void protect(const Branch& branch);
    void end_for_others(Branch& branch, std::string_view table, Time now);
    void end_marked(Time now);
    [[nodiscard]] std::map<Owner, std::uint64_t> memory_of_owners() const;
    // More would exceed the limit of the tenant.
    [[nodiscard]] std::optional<std::uint64_t> memory_limit_of(const Owner& owner) const;
    [[nodiscard]] bool exceeds_limit(std::uint64_t bytes, const Owner& owner) const;
    [[nodiscard]] std::uint64_t memory_left_to_others(const Owner& owner) const;
    void note_memory();
    void apply_limits();
    void end_revoked(Time now);
    [[nodiscard]] std::vector<Branch*> victims_for(std::uint64_t bytes, const Owner& owner, Time now) const;
    [[nodiscard]] bool could_reserve(std::uint64_t bytes, const Owner& owner, Time now) const;
    [[nodiscard]] bool reserve(std::uint64_t bytes, const Owner& owner, Time now);
    [[nodiscard]] static std::optional<Objection> objection_to_ranks(const wire::Join& join);
    [[nodiscard]] static std::optional<Objection> objection_to_shape(const Branch& branch, const wire::Join& join);
    [[nodiscard]] std::optional<Objection> objection_to_known(const Branch& branch, const wire::Join& join,
                                                              const wire::Address& from, Time now) const;
    // Not newer than the last message of the same process in this position.
    [[nodiscard]] bool is_old(const wire::Join& join, const Branch* branch) const;
    Branch& open_branch(const wire::Join& join, Time now);
    void admit(const Branch& branch);
    void attach(Branch& branch, const wire::Join& join, const wire::Address& from, Time now);
    // Removes a child because of `edge`. True: this was the last child, and the branch is destroyed.
    // `epoch`: of the last message of the child.
    bool detach(Branch& branch, const Branch::Position& position, std::uint32_t epoch, const wire::Edge& edge,
                Time now);
    // State of a branch before an input, so that settle() tells the children what changed.
    struct BranchStatus {
        bool ready = false;
        std::optional<wire::Edge> cause{};
        std::optional<wire::Edge> own_cause{};
    };
    [[nodiscard]] static BranchStatus status_of(const Branch& branch) {
        return {branch.ready(), branch.failures.first(), branch.failures.first_own()};
    }
    // Tells the neighbours of a branch what changed. True: all children were notified.
    bool settle(Branch& branch, const BranchStatus& before, Time now);
    void report_new_cause(const Branch& branch, const BranchStatus& before);
    void excuse_pause(Time now);
    void note_pause(Time now);
    // The child that reports an edge in its JOIN or LEAVE.
    struct Reporter {
        std::uint8_t unit = 0;
        wire::Address address;
        bool is_worker = false;
    };
    // What a child reports about its switch, as this switch knows it: while its process did not run, no link failed.
    [[nodiscard]] wire::Edge seen_here(const wire::Edge& edge, const Reporter& by, Time now);
    [[nodiscard]] std::optional<wire::Edge> edge_reported_by(const std::vector<wire::Edge>& edges, const Reporter& by,
                                                             Time now);
    // True: the branch is destroyed.
    bool examine_children(Branch& branch, Time now);
    void examine_parent(Branch& branch, Time now);
    // Sends the last message once more after each `hurry`, as its receiver asks for nothing that would repeat it.
    void repeat_last(Time now);
    void send_repeats(Time now);
    void ask(Branch& branch, Branch::Child& child, Time now);
    [[nodiscard]] Time next_look(const Branch& branch, Time now) const;
    [[nodiscard]] static wire::Edge edge_to(const Branch& branch, const Branch::Child& child, wire::Evidence evidence,
                                            Duration silent);
    [[nodiscard]] static wire::Edge edge_to_parent(const Branch& branch, wire::Evidence evidence, Duration silent);
    [[nodiscard]] Duration hold_of_parent(const Branch& branch) const {
        return branch.up_hold != Duration::zero() ? branch.up_hold : config_.hold;
    }
    // So long after its last answer, a parent is asked as often as needed. The second hold time is for the JOINs that
    // tell it that this switch no longer hears it.
    [[nodiscard]] bool has_answered(const Branch& branch, Time now) const {
        const Time last = branch.up_detector.received_at();
        return last != Time{} && now - last <= 2 * hold_of_parent(branch);
    }
    // Whether a message answers the JOINs upwards of this branch.
    [[nodiscard]] static bool is_of_parent(const Branch& branch, std::uint64_t nonce, const wire::Address& from);
    void note_answer(Branch& branch, Time now);
    // All members have joined, or had joined before one of them failed.
    [[nodiscard]] static bool may_ascend(const Branch& branch) { return branch.was_complete(); }
    [[nodiscard]] Duration interval_upwards(const Branch& branch) const {
        const bool calm = branch.up_ready && !branch.up_detector.suspects();
        return calm ? refresh_of(hold_of_parent(branch)) : config_.impatient;
    }
    // What only the JOINs of all members show, as the text of a REFUSED; nullopt: nothing.
    [[nodiscard]] std::optional<std::string> problem_of_all(const Branch& branch) const;
    // True: the branch is destroyed, for lack of memory.
    bool open_server(Branch& branch, Time now);
    [[nodiscard]] std::string no_memory_for(const wire::ChannelTerms& terms, const Owner& owner) const;
    [[nodiscard]] bool must_wait(const wire::Join& join, Time now);
    // `now`: also repeats it; never: the members' next JOINs get the same answer.
    void take_member(Branch& branch, const wire::Join& join, std::size_t bytes, const wire::Address& from,
                     std::uint32_t key, Time now);
    void refuse(const wire::Join& join, const wire::Address& from, const Proof& proof, Objection objection,
                Branch* branch, Time now);
    [[nodiscard]] bool refuse_barred(const wire::Join& join, const wire::Address& from);
    // Refuses all members, and closes the channel.
    void end_refused(Branch& branch, wire::Refused refused, Time now, const wire::Address& culprit = {});
    // JOINs of this channel get this answer for `hold`.
    void bar(const wire::Refused& refused, Time now);
    void unbar_expired(Time now);
    void refuse_all(const Branch& branch, wire::Refused refused, Time now);
    void ascend(Branch& branch, Time now);
    void ask_stranger(Branch& branch, Time now);
    void notify(Branch& branch, const Branch::Child& child);
    void notify_all(Branch& branch);
    // Of what members stated. A child that states something else in each JOIN makes this switch send to all of them, so
    // where many do, the others learn it later.
    void report_statements(Branch& branch, Time now);
    void notify_group(Branch& branch, const wire::Address& near, Time now);
    // `why`: the channel failed, because of `culprit` if it has a family; empty: its last member is gone.
    void close(Branch& branch, std::string why = {}, const wire::Address& culprit = {});
    void report(TreeNotice notice);
    void report(TreeNotice::Kind kind, const Branch& branch, const wire::Address& address = {},
                std::string reason = {});
    void report_formed(const Branch& branch, const wire::Address& from, const Proof& proof);
    void report_member(TreeNotice::Kind kind, const Branch& branch, const Branch::Child& child,
                       std::string_view reason = {});
    void report_failure(const Branch& branch, const wire::Edge& edge);
    [[nodiscard]] wire::Join question_of(Branch& branch) const;
    [[nodiscard]] wire::Join join_upwards(Branch& branch) const;
    [[nodiscard]] std::size_t most_join_bytes_upwards(const Branch& branch) const;
    [[nodiscard]] wire::Joined joined_of(const Branch& branch);
    [[nodiscard]] std::uint64_t group_number_of(const ChannelKey& key) const;
    [[nodiscard]] std::uint64_t up_nonce_of(const ChannelKey& key) const;
    void wake_at(Time when);

    JoinTreeConfig config_;
    std::map<ChannelKey, std::unique_ptr<Branch>> branches_;
    std::map<JobKey, TreeJob> jobs_;
    Guarantees own_memory_;
    MemoryBudget memory_;  // of servers; reserved for channels whose members have all joined (H68)
    Departures departures_;
    std::deque<Transmit> outbox_;
    struct Repeat {
        Transmit transmit;
        int left = 2;
        Time next{};
    };
    std::vector<Repeat> repeats_;
    struct Barred {
        wire::Refused refused;
        Time until{};
    };
    std::map<ChannelKey, Barred> barred_;  // at most `channels`
    std::deque<TreeEvent> events_;
    std::deque<TreeNotice> notices_;  // at most 1024
    TokenBucket statements_sent_;     // messages that report_statements() caused
    Time next_sweep_ = never;
    struct Pause {
        Duration lasted{};
        Time ended{};
    };
    Pause pause_;                      // the last one of this process
    Time began_at_ = never;            // first JOIN
    Time unproven_next_{};             // earliest time of the next notice of a JOIN that no key proves
    std::uint64_t last_branch_ = 0;    // number of the newest channel
    std::uint32_t last_up_epoch_ = 0;  // of all channels that ended: JOINs upwards of a later one are newer
    std::uint32_t number_ = 0;         // of the last JOINED. A member takes lower numbers for those of another process
    ChannelKey last_key_{};
    Branch* last_ = nullptr;  // result of the last find(): packets arrive in bursts of one channel
    TreeCounters counters_;
};

// Memory that the server of a channel needs before it grows.
[[nodiscard]] std::uint64_t server_bytes_of(const wire::ChannelTerms& terms);
// The longest packet of a channel; 0 for a protocol other than ATP.
[[nodiscard]] std::uint32_t packet_bytes_of(const wire::ChannelTerms& terms);
// A longer JOIN of this channel may not fit its path, and IP fragments are not sent.
[[nodiscard]] std::size_t most_join_bytes(const wire::ChannelTerms& terms);
[[nodiscard]] std::size_t bytes_of(const wire::Join& join);

}  // namespace ATP_VARIANT
}  // namespace atp::control
