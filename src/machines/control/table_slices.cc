// SPDX-License-Identifier: Apache-2.0
#include "control/table_slices.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace atp::control {
namespace {

constexpr Duration kept_after_last_job = std::chrono::seconds(1);

bool operator==(const atp_range& a, const atp_range& b) { return a.base == b.base && a.size == b.size; }

// What claims without their least divide, by their weights.
struct Divided {
    std::uint64_t rest = 0;
    std::uint64_t weights = 0;
};

Divided divided(std::uint32_t aggregators, std::span<const SliceClaim> claims, const std::vector<bool>& is_bound) {
    Divided all{.rest = aggregators};
    for (std::size_t i = 0; i < claims.size(); ++i) {
        if (is_bound[i]) all.rest -= std::min(all.rest, claims[i].least);
        if (!is_bound[i]) all.weights += claims[i].weight;
    }
    return all;
}

// Claims that by weight would get less than their least get exactly that, and the others divide the rest.
std::vector<bool> bound_by_least(std::uint32_t aggregators, std::span<const SliceClaim> claims) {
    std::vector<bool> is_bound(claims.size());
    for (bool again = true; again;) {
        again = false;
        const auto [rest, weights] = divided(aggregators, claims, is_bound);
        for (std::size_t i = 0; i < claims.size(); ++i) {
            if (is_bound[i] || claims[i].least * weights <= rest * claims[i].weight) continue;
            is_bound[i] = again = true;
        }
    }
    return is_bound;
}

}  // namespace

std::vector<atp_range> slices_of(std::uint32_t aggregators, std::span<const SliceClaim> claims, SliceSize size) {
    const std::vector<bool> is_bound = bound_by_least(aggregators, claims);
    const auto [rest, weights] = divided(aggregators, claims, is_bound);
    std::vector<atp_range> slices;
    std::uint64_t base = 0;
    std::uint64_t weight_before = 0;
    for (std::size_t i = 0; i < claims.size(); ++i) {
        // Each end is rounded, and not each size, so that nothing of the rest is left over.
        const std::uint64_t begin = weights == 0 ? 0 : rest * weight_before / weights;
        if (!is_bound[i]) weight_before += claims[i].weight;
        const std::uint64_t share = is_bound[i] ? claims[i].least : rest * weight_before / weights - begin;
        const auto whole = static_cast<std::uint32_t>(std::min(share, aggregators - base));
        slices.push_back({.base = static_cast<std::uint32_t>(base),
                          .size = size == SliceSize::power_of_two ? std::bit_floor(whole) : whole});
        base += whole;
    }
    return slices;
}

void TableSlices::set_tenants(std::shared_ptr<const Tenants> tenants) {
    tenants_ = is_open(tenants.get()) ? nullptr : std::move(tenants);
    least_ = Guarantees(tenants_.get(), config_.aggregators, [this](const Tenant& tenant) {
        return tenant.aggregators ? std::optional(*tenant.aggregators / config_.tables) : std::nullopt;
    });
    is_due_ = !jobs_.empty();
}

void TableSlices::add(const JobKey& job, std::string_view tenant) {
    jobs_[job].tenant = tenant;
    is_due_ = true;
}

void TableSlices::take_over(const JobKey& job, std::string_view tenant, const std::optional<atp_range>& slice,
                            Time now) {
    jobs_.try_emplace(job, SlicedJob{.tenant = std::string(tenant), .slice = slice});
    is_due_ = true;
    if (slice) change_ends_ = now + config_.change;
}

void TableSlices::remove(const JobKey& job, Time now) {
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) return;
    const std::string tenant(known(found->second.tenant));
    jobs_.erase(found);
    if (tenants_ != nullptr && !has_jobs(tenant)) kept_until_[tenant] = now + kept_after_last_job;
}

std::string_view TableSlices::known(std::string_view tenant) const {
    return tenants_ == nullptr || tenants_->named(tenant) == nullptr ? std::string_view() : tenant;
}

bool TableSlices::has_jobs(std::string_view tenant) const {
    return std::ranges::any_of(jobs_, [&](const auto& each) { return known(each.second.tenant) == tenant; });
}

TableSlices::Claims TableSlices::claims() const {
    std::vector<std::string> names;
    std::vector<SliceClaim> claims;
    const auto add_claim = [&](std::string_view name, std::uint32_t weight) {
        if (!has_jobs(name) && !kept_until_.contains(name)) return;
        names.emplace_back(name);
        claims.push_back({.least = least_.of({.tenant = names.back()}), .weight = weight});
    };
    for (const Tenant& tenant : tenants_->all()) add_claim(tenant.name, tenant.weight);
    add_claim("", 1);
    const std::vector<atp_range> slices = slices_of(config_.aggregators, claims, config_.size);
    Claims by_name;
    for (std::size_t i = 0; i < names.size(); ++i) by_name[names[i]] = {slices[i], claims[i].weight};
    return by_name;
}

void TableSlices::handle_timeout(SlicedTable& table, Time now) {
    if (now >= change_ends_) {
        table.end_changes();
        change_ends_ = never;
        is_due_ = true;
    }
    if (std::erase_if(kept_until_, [&](const auto& each) { return now >= each.second; }) != 0) is_due_ = true;
    if (!is_due_) return;
    is_due_ = false;
    const bool may_change = change_ends_ == never;
    const Claims all = tenants_ == nullptr ? Claims() : claims();
    const Claimed whole{.slice = {0, config_.aggregators}};
    for (auto& [key, job] : jobs_) {
        // The last SIGHUP may have opened the switch.
        if (tenants_ == nullptr && !job.slice) continue;
        const Claimed& claimed = tenants_ == nullptr ? whole : all.find(known(job.tenant))->second;
        const bool moves = job.slice && !(*job.slice == claimed.slice);
        if (moves && !may_change) continue;
        // The first slice of a job may overlap one that another has still to leave, which ends within twice that time.
        if (moves) change_ends_ = now + config_.change;
        job.slice = claimed.slice;
        table.set_slice(key, claimed.slice, claimed.weight);
    }
}

Time TableSlices::poll_timeout() const {
    Time next = is_due_ ? Time{} : change_ends_;
    for (const auto& [tenant, until] : kept_until_) next = std::min(next, until);
    return next;
}

}  // namespace atp::control
