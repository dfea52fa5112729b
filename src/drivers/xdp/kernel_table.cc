// SPDX-License-Identifier: Apache-2.0
#include "xdp/kernel_table.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>

#include "control/branch.h"
#include "kernel_switch_program.skel.h"
#include "net/clock.h"
#include "xdp/pinned_maps.h"
#include "xdp/program_calls.h"

namespace atp::xdp {
namespace {

// Keys of all jobs: the token of each, and the numbers of their groups.
std::uint32_t most_group_keys(std::uint32_t jobs) { return 7 * jobs; }
std::uint32_t most_job_keys(std::uint32_t jobs) { return jobs + most_group_keys(jobs); }

constexpr std::size_t verifier_log_bytes = 256 * 1024;
constexpr std::uint32_t slot_of_all = 0;

void add(const atp_xdp_counters& from, KernelCounters& to) {
    for (std::size_t i = 0; i < to.packets.events.size(); ++i) to.packets.events[i] += from.events[i];
    for (std::size_t i = 0; i < to.packets.refused.size(); ++i) to.packets.refused[i] += from.refused[i];
    to.packets.forged += from.forged;
    to.packets.ecn += from.ecn;
    to.packets.overflows += from.overflows;
    to.packets.no_room += from.no_room;
    to.oversized += from.oversized;
    to.damaged += from.damaged;
}

std::uint32_t ageing_us(Duration ageing) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ageing.count() / 1000, 0, 0x7fffffff));
}

// `end`: 0 for the sender, 1 for the receiver.
wire::Address address_of(const atp_xdp_queued_message& queued_message, unsigned end) {
    wire::Endpoint endpoint;
    endpoint.family = queued_message.version == 4 ? 4 : 6;
    endpoint.port = ntohs(queued_message.ports[end]);
    const std::size_t bytes = endpoint.family == 4 ? 4 : 16;
    std::memcpy(endpoint.host.data(), queued_message.hosts + bytes * end, bytes);
    return control::address_of(endpoint);
}

static_assert(static_cast<unsigned>(wire::ControlType::join) == ATP_TYPE_JOIN &&
              static_cast<unsigned>(wire::ControlType::joined) == ATP_TYPE_JOINED);

atp_xdp_member member_of(const control::PassedMember& member) {
    const wire::Endpoint endpoint = control::endpoint_of(member.address);
    atp_xdp_member entry{};
    entry.interface = member.entrance;
    entry.port = htons(endpoint.port);
    entry.version = endpoint.family == 4 ? 4 : 6;
    std::memcpy(entry.ethernet, member.ethernet.data(), sizeof entry.ethernet);
    std::memcpy(entry.host, endpoint.host.data(), endpoint.family == 4 ? 4 : 16);
    return entry;
}

}  // namespace

struct KernelTable::Skeleton {
    kernel_switch_program* program = nullptr;
    ring_buffer* queued_messages = nullptr;
    const Visit* visit = nullptr;  // while read_letters() runs

    Skeleton() = default;
    ~Skeleton() {
        ring_buffer__free(queued_messages);
        kernel_switch_program__destroy(program);
    }
    Skeleton(const Skeleton&) = delete;
    Skeleton& operator=(const Skeleton&) = delete;

    [[nodiscard]] int jobs() const { return bpf_map__fd(program->maps.atp_jobs); }
    [[nodiscard]] int counters() const { return bpf_map__fd(program->maps.atp_counters); }
    [[nodiscard]] int aggregators() const { return bpf_map__fd(program->maps.atp_aggregators); }
    [[nodiscard]] int members() const { return bpf_map__fd(program->maps.atp_members); }
    [[nodiscard]] int credits() const { return bpf_map__fd(program->maps.atp_credits); }
    [[nodiscard]] int ports() const { return bpf_map__fd(program->maps.atp_ports); }
    [[nodiscard]] int slices() const { return bpf_map__fd(program->maps.atp_slices); }
    [[nodiscard]] std::array<bpf_map*, 6> kept() const {
        return {program->maps.atp_aggregators, program->maps.atp_jobs,    program->maps.atp_slices,
                program->maps.atp_counters,    program->maps.atp_members, program->maps.atp_credits};
    }
    static int open_queued_message(void* self, void* data, std::size_t) {
        const auto& queued_message = *static_cast<const atp_xdp_queued_message*>(data);
        const auto bytes = std::as_bytes(std::span(queued_message.message));
        (*static_cast<Skeleton*>(self)->visit)(
            {.bytes = bytes.first(std::min<std::size_t>(queued_message.bytes, bytes.size())),
             .from = address_of(queued_message, 0),
             .to = address_of(queued_message, 1),
             .entrance = queued_message.entrance,
             .ethernet = std::bit_cast<std::array<std::byte, 12>>(std::to_array(queued_message.ethernet)),
             .is_plain = queued_message.is_plain != 0});
        return 0;
    }
    [[nodiscard]] int code() const { return bpf_program__fd(program->progs.atp_switch); }
    [[nodiscard]] int copy_code() const { return bpf_program__fd(program->progs.atp_copy); }
    [[nodiscard]] int egress_code() const { return bpf_program__fd(program->progs.atp_egress); }
    // If the verifier refuses a program, it fills this log.
    void log_to(std::span<char> log) const {
        bpf_program__set_log_buf(program->progs.atp_switch, log.data(), log.size());
        bpf_program__set_log_buf(program->progs.atp_copy, log.data(), log.size());
        bpf_program__set_log_buf(program->progs.atp_egress, log.data(), log.size());
    }
};

KernelTable::KernelTable(const KernelTableConfig& config)
    : config_(config), skeleton_(std::make_unique<Skeleton>()), free_slots_(config.jobs) {
    std::iota(free_slots_.rbegin(), free_slots_.rend(), slot_of_all + 1);
}

KernelTable::~KernelTable() = default;

Result<std::unique_ptr<KernelTable>> KernelTable::load(const KernelTableConfig& config) {
    std::unique_ptr<KernelTable> loaded(new KernelTable(config));
    libbpf_set_print(nullptr);  // libbpf would also print the error that the result reports
    kernel_switch_program* program = loaded->skeleton_->program = kernel_switch_program__open();
    if (program == nullptr) return fail_with_errno(Operation::open, errno, "XDP program");
    program->rodata->atp_port_be = htons(config.port);
    program->rodata->atp_ageing_us = ageing_us(config.ageing);
    program->rodata->atp_aggregator_count = config.aggregators;
    program->rodata->atp_clock_is_fixed = config.clock_is_fixed ? 1 : 0;
    bpf_map__set_max_entries(program->maps.atp_aggregators, config.aggregators);
    bpf_map__set_max_entries(program->maps.atp_jobs, most_job_keys(config.jobs));
    bpf_map__set_max_entries(program->maps.atp_slices, config.jobs + 1);
    bpf_map__set_max_entries(program->maps.atp_counters, config.jobs + 1);
    bpf_map__set_max_entries(program->maps.atp_members, most_group_keys(config.jobs));
    bpf_map__set_max_entries(program->maps.atp_credits, config.jobs + 1);
    if (auto pinned = loaded->pin(); !pinned) return tl::unexpected(pinned.error());
    std::vector<char> log(verifier_log_bytes);
    loaded->skeleton_->log_to(log);
    const int code = kernel_switch_program__load(program);
    loaded->skeleton_->log_to({});
    if (code != 0) return load_failure(-code, {log.data(), log.size()});
    Skeleton& skeleton = *loaded->skeleton_;
    skeleton.queued_messages = ring_buffer__new(bpf_map__fd(program->maps.atp_message_queue),
                                                &Skeleton::open_queued_message, &skeleton, nullptr);
    if (skeleton.queued_messages == nullptr) return fail_with_errno(Operation::open, errno, "XDP program");
    loaded->recover_slots();
    return loaded;
}

// Sets the pin paths before the load, which then opens the maps that exist there and pins those that do not.
Result<void> KernelTable::pin() {
    if (config_.pins.empty()) return {};
    for (bpf_map* map : skeleton_->kept()) {
        if (auto checked = check_pinned(config_.pins, map); !checked) return checked;
        const std::string path = pin_path(config_.pins, map);
        took_over_ = took_over_ || access(path.c_str(), F_OK) == 0;
        const int code = bpf_map__set_pin_path(map, path.c_str());
        if (code != 0) return fail_with_errno(Operation::open, -code, path);
    }
    return {};
}

void KernelTable::unpin() {
    if (config_.pins.empty()) return;
    for (bpf_map* map : skeleton_->kept()) bpf_map__unpin(map, nullptr);
}

// Jobs of an earlier start keep their counters.
void KernelTable::recover_slots() {
    for_each_job([&](const atp_xdp_job_key& key, const atp_xdp_job& entry) {
        std::erase(free_slots_, entry.slot);
        if (key.token != entry.token) ++group_keys_;
    });
}

// The visitor may change and delete entries.
template <class VisitJob>
void KernelTable::for_each_job(VisitJob&& visit) const {
    std::vector<std::pair<atp_xdp_job_key, atp_xdp_job>> found;
    atp_xdp_job_key key{};
    int code = bpf_map_get_next_key(skeleton_->jobs(), nullptr, &key);
    while (code == 0 && found.size() < most_job_keys(config_.jobs)) {
        atp_xdp_job entry{};
        if (bpf_map_lookup_elem(skeleton_->jobs(), &key, &entry) == 0) found.emplace_back(key, entry);
        const atp_xdp_job_key before = key;
        code = bpf_map_get_next_key(skeleton_->jobs(), &before, &key);
    }
    for (const auto& [each, entry] : found) visit(each, entry);
}

std::vector<control::AdmittedJob> KernelTable::jobs() const {
    std::vector<control::AdmittedJob> found;
    for_each_job([&](const atp_xdp_job_key& key, const atp_xdp_job& entry) {
        if (key.token == entry.token) {
            found.push_back({.job = key.job, .token = key.token, .level = entry.level, .key_id = entry.key});
        }
    });
    return found;
}

void KernelTable::read_queued_messages(std::chrono::milliseconds at_most, const Visit& visit) {
    skeleton_->visit = &visit;
    ring_buffer__poll(skeleton_->queued_messages, static_cast<int>(at_most.count()));
    skeleton_->visit = nullptr;
}

int KernelTable::descriptor() const { return skeleton_->code(); }

int KernelTable::copy_descriptor() const { return skeleton_->copy_code(); }

int KernelTable::egress_descriptor() const { return skeleton_->egress_code(); }

bool KernelTable::admit(std::uint32_t job, std::uint64_t token, std::uint8_t level, std::uint32_t key_id) {
    if (token == 0) return false;
    const atp_xdp_job_key key{.job = job, .zero = 0, .token = token};
    atp_xdp_job entry{};
    if (bpf_map_lookup_elem(skeleton_->jobs(), &key, &entry) == 0) return entry.token == token && entry.level == level;
    if (free_slots_.empty()) return false;
    entry = {.token = token,
             .slot = free_slots_.back(),
             .key = key_id,
             .level = level,
             .sender = ATP_SENDER_UNKNOWN,
             .unused = {}};
    clear_counters(entry.slot);
    atp_slice whole{};
    whole.now.size = config_.aggregators;
    put_slice(entry.slot, whole);
    if (bpf_map_update_elem(skeleton_->jobs(), &key, &entry, BPF_NOEXIST) != 0) return false;
    free_slots_.pop_back();
    return true;
}

bool KernelTable::learn_group(const control::JobKey& job, std::uint64_t group_number) {
    const atp_xdp_job_key key{.job = job.job, .zero = 0, .token = job.token};
    const atp_xdp_job_key by_group{.job = job.job, .zero = 0, .token = group_number};
    atp_xdp_job entry{};
    if (bpf_map_lookup_elem(skeleton_->jobs(), &by_group, &entry) == 0) {  // an earlier start may have learned it
        return entry.token == job.token && group_number != job.token;
    }
    if (group_keys_ >= most_group_keys(config_.jobs)) return false;
    if (bpf_map_lookup_elem(skeleton_->jobs(), &key, &entry) != 0) return false;
    if (bpf_map_update_elem(skeleton_->jobs(), &by_group, &entry, BPF_NOEXIST) != 0) return false;
    ++group_keys_;
    return true;
}

void KernelTable::forget_group(const control::JobKey& job, std::uint64_t group_number) {
    const atp_xdp_job_key by_group{.job = job.job, .zero = 0, .token = group_number};
    atp_xdp_job entry{};
    if (bpf_map_lookup_elem(skeleton_->jobs(), &by_group, &entry) != 0) return;
    if (entry.token != job.token || group_number == job.token) return;
    bpf_map_delete_elem(skeleton_->jobs(), &by_group);
    bpf_map_delete_elem(skeleton_->members(), &by_group);
    --group_keys_;
}

void KernelTable::set_members(const control::JobKey& job, std::uint64_t group_number,
                              std::span<const control::PassedMember> members) {
    const atp_xdp_job_key by_group{.job = job.job, .zero = 0, .token = group_number};
    if (members.size() > ATP_XDP_MEMBERS) {
        bpf_map_delete_elem(skeleton_->members(), &by_group);
        return;
    }
    atp_xdp_members entry{};
    if (bpf_map_lookup_elem(skeleton_->members(), &by_group, &entry) == 0 && entry.count > members.size()) return;
    entry = {};
    for (const control::PassedMember& member : members) entry.each[entry.count++] = member_of(member);
    bpf_map_update_elem(skeleton_->members(), &by_group, &entry, BPF_ANY);
}

void KernelTable::dismiss(const control::JobKey& job) {
    for_each_job([&](const atp_xdp_job_key& key, const atp_xdp_job& entry) {
        if (key.job != job.job || entry.token != job.token) return;
        bpf_map_delete_elem(skeleton_->jobs(), &key);
        if (key.token == job.token) {
            // The oldest is used again first: a late packet may still have read this one.
            free_slots_.insert(free_slots_.begin(), entry.slot);
        } else {
            bpf_map_delete_elem(skeleton_->members(), &key);
            --group_keys_;
        }
    });
}

void KernelTable::set_level(const control::JobKey& job, std::uint8_t level) { set(job, &atp_xdp_job::level, level); }

void KernelTable::set_key(const control::JobKey& job, std::uint32_t key_id) { set(job, &atp_xdp_job::key, key_id); }

void KernelTable::set_sender(const control::JobKey& job, std::uint8_t number) {
    set(job, &atp_xdp_job::sender, number);
}

// Also in the copies for its groups.
template <class Field>
void KernelTable::set(const control::JobKey& job, Field atp_xdp_job::*field, Field value) {
    for_each_job([&](const atp_xdp_job_key& key, atp_xdp_job entry) {
        if (key.job != job.job || entry.token != job.token || entry.*field == value) return;
        entry.*field = value;
        bpf_map_update_elem(skeleton_->jobs(), &key, &entry, BPF_EXIST);
    });
}

std::optional<std::uint32_t> KernelTable::slot_of(const control::JobKey& job) const {
    const atp_xdp_job_key key{.job = job.job, .zero = 0, .token = job.token};
    atp_xdp_job entry{};
    if (bpf_map_lookup_elem(skeleton_->jobs(), &key, &entry) != 0) return std::nullopt;
    return entry.slot;
}

std::optional<atp_slice> KernelTable::slice_in(std::uint32_t slot) const {
    atp_xdp_slice found{};
    if (bpf_map_lookup_elem_flags(skeleton_->slices(), &slot, &found, BPF_F_LOCK) != 0) return std::nullopt;
    return found.state;
}

void KernelTable::put_slice(std::uint32_t slot, const atp_slice& slice) {
    const atp_xdp_slice value{.lock = 0, .unused = 0, .state = slice};
    bpf_map_update_elem(skeleton_->slices(), &slot, &value, BPF_F_LOCK);
}

void KernelTable::set_slice(const control::JobKey& job, const atp_range& slice, std::uint32_t weight,
                            std::uint32_t margin) {
    const auto slot = slot_of(job);
    auto entry = slot ? slice_in(*slot) : std::nullopt;
    if (!entry) return;
    const bool is_new = entry->is_shared == 0 || entry->weight != weight;
    if (atp_slice_set(&*entry, slice, weight, margin) != 0 || is_new) put_slice(*slot, *entry);
}

void KernelTable::end_changes() {
    for_each_job([&](const atp_xdp_job_key& key, const atp_xdp_job& job) {
        auto entry = key.token == job.token ? slice_in(job.slot) : std::nullopt;
        if (!entry || (entry->before.size == 0 && entry->has_from == 0)) return;
        atp_slice_end_change(&*entry);
        put_slice(job.slot, *entry);
    });
}

bool KernelTable::set_port(std::uint32_t interface, std::uint64_t rate, std::uint32_t bytes_per_frame) {
    atp_xdp_port port{};
    port.marked = marked(interface);  // of the rate before
    port.bytes_per_frame = bytes_per_frame;
    port.queue = atp_shared_queue_of_link(rate, static_cast<std::uint64_t>(net::now().time_since_epoch().count()));
    return bpf_map_update_elem(skeleton_->ports(), &interface, &port, BPF_F_LOCK) == 0;
}

std::uint64_t KernelTable::marked(std::uint32_t interface) const {
    atp_xdp_port port{};
    const bool is_known = bpf_map_lookup_elem_flags(skeleton_->ports(), &interface, &port, BPF_F_LOCK) == 0;
    return is_known ? port.marked : 0;
}

std::optional<atp_range> KernelTable::slice_of(const control::JobKey& job) const {
    const auto slot = slot_of(job);
    const auto entry = slot ? slice_in(*slot) : std::nullopt;
    return entry && entry->is_shared != 0 ? std::optional(entry->now) : std::nullopt;
}

KernelCounters KernelTable::counters() const { return counters_in(slot_of_all); }

std::optional<KernelCounters> KernelTable::job_counters(const control::JobKey& job) const {
    const auto slot = slot_of(job);
    return slot ? std::optional(counters_in(*slot)) : std::nullopt;
}

KernelCounters KernelTable::counters_in(std::uint32_t slot) const {
    std::vector<atp_xdp_counters> of_processors(static_cast<std::size_t>(libbpf_num_possible_cpus()));
    KernelCounters sum;
    atp_xdp_credit credit{};
    if (bpf_map_lookup_elem(skeleton_->credits(), &slot, &credit) == 0) {
        sum.copied_bytes = credit.of_job.copied;
        sum.uncopied = credit.of_job.uncopied;
    }
    if (bpf_map_lookup_elem(skeleton_->counters(), &slot, of_processors.data()) != 0) return sum;
    for (const atp_xdp_counters& counters : of_processors) add(counters, sum);
    return sum;
}

void KernelTable::clear_counters(std::uint32_t slot) {
    const std::vector<atp_xdp_counters> zero(static_cast<std::size_t>(libbpf_num_possible_cpus()));
    const atp_xdp_credit none{};
    bpf_map_update_elem(skeleton_->counters(), &slot, zero.data(), BPF_ANY);
    bpf_map_update_elem(skeleton_->credits(), &slot, &none, BPF_ANY);
}

std::uint32_t KernelTable::occupied() const {
    std::uint32_t count = 0;
    atp_xdp_aggregator aggregator;
    for (std::uint32_t index = 0; index < config_.aggregators; ++index) {
        if (read(index, aggregator) && aggregator.state.status != ATP_AGGREGATOR_FREE) ++count;
    }
    return count;
}

bool KernelTable::read(std::uint32_t index, atp_xdp_aggregator& aggregator) const {
    return bpf_map_lookup_elem_flags(skeleton_->aggregators(), &index, &aggregator, BPF_F_LOCK) == 0;
}

bool KernelTable::write(std::uint32_t index, const atp_xdp_aggregator& aggregator) {
    return bpf_map_update_elem(skeleton_->aggregators(), &index, &aggregator, BPF_F_LOCK) == 0;
}

void KernelTable::set_now_us(std::uint32_t now_us) { skeleton_->program->bss->atp_standing_now_us = now_us; }

Result<Outcome> KernelTable::run(std::span<const std::byte> frame, std::uint32_t repeat) const {
    bpf_test_run_opts options{};
    options.repeat = static_cast<int>(repeat);
    auto outcome = run_program(skeleton_->code(), frame, options);
    if (outcome) outcome->disposition = disposition_of(options.retval);
    return outcome;
}

Result<Outcome> KernelTable::run_egress(std::span<const std::byte> frame, std::uint32_t segment_bytes) const {
    __sk_buff buffer{};
    buffer.gso_size = segment_bytes;
    bpf_test_run_opts options{};
    options.ctx_in = &buffer;
    options.ctx_size_in = sizeof buffer;
    auto outcome = run_program(skeleton_->egress_code(), frame, options);
    if (outcome) outcome->disposition = filter_disposition_of(options.retval);
    return outcome;
}

Result<Outcome> KernelTable::run_copy(std::span<const std::byte> frame) const {
    bpf_test_run_opts options{};
    auto outcome = run_program(skeleton_->copy_code(), frame, options);
    if (outcome) outcome->disposition = filter_disposition_of(options.retval);
    return outcome;
}

}  // namespace atp::xdp
