// SPDX-License-Identifier: Apache-2.0
#include "control/address_buckets.h"

#include <algorithm>

#include "control/host_key.h"

namespace atp::control {
namespace {

std::uint64_t hash_of(const Secret& secret, const wire::Address& from) {
    const HostKey key = HostKey::of(from);
    return std::max<std::uint64_t>(siphash(secret, key.host), 1);
}

}  // namespace

bool AddressBuckets::take(const wire::Address& from, Time now) {
    const std::uint64_t host = hash_of(secret_, from);
    HostBucket& place = places_[host % places];
    if (place.host != host) place = {.host = host, .bucket = {}};
    if (!place.bucket.has(rate_.each, rate_.most, now)) return false;
    place.bucket.charge(rate_.each, now);
    return true;
}

bool AnswerLimit::admit(const wire::Address& from, Time now) {
    const bool loaded = answers_.debt(now) > all.most / 2;
    if (!answers_.has(all.each, all.most, now) || (loaded && !hosts_.take(from, now))) {
        ++dropped_;
        return false;
    }
    answers_.charge(all.each, now);
    return true;
}

}  // namespace atp::control
