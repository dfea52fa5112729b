// SPDX-License-Identifier: Apache-2.0
#include "gloo_group.h"

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <utility>
#include <vector>

namespace atp::bench {
namespace {

// Concurrent operations of a context must have different tags. The operations here are not concurrent, but have
// different tags anyway.
constexpr std::uint32_t tensor_tag = 1;
constexpr std::uint32_t number_tag = 2;
constexpr std::uint32_t barrier_tag = 3;

std::shared_ptr<gloo::transport::Device> open_device(const Membership& membership) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = membership.interface;
    attributes.hostname = membership.address;
    return gloo::transport::tcp::CreateDevice(attributes);
}

std::unique_ptr<gloo::Algorithm> build(const std::shared_ptr<gloo::Context>& context, Algorithm algorithm,
                                       std::span<float> bucket) {
    const std::vector<float*> buffers{bucket.data()};
    const int count = static_cast<int>(bucket.size());
    switch (algorithm) {
        case Algorithm::halving_doubling:
            return std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, buffers, count);
        case Algorithm::ring_chunked:
            return std::make_unique<gloo::AllreduceRingChunked<float>>(context, buffers, count);
        case Algorithm::ring:
        case Algorithm::bcube: break;
    }
    return nullptr;
}

}  // namespace

const std::map<std::string, Algorithm>& algorithms() {
    static const std::map<std::string, Algorithm> names{{"ring", Algorithm::ring},
                                                        {"bcube", Algorithm::bcube},
                                                        {"halving_doubling", Algorithm::halving_doubling},
                                                        {"ring_chunked", Algorithm::ring_chunked}};
    return names;
}

GlooGroup GlooGroup::join(const Membership& membership, Algorithm algorithm, std::vector<std::span<float>> buckets) {
    auto device = open_device(membership);
    gloo::rendezvous::FileStore store(membership.store);
    auto context = std::make_shared<gloo::rendezvous::Context>(membership.rank, membership.world);
    context->setTimeout(membership.timeout);
    context->connectFullMesh(store, device);
    return GlooGroup(std::move(context), algorithm, std::move(buckets));
}

GlooGroup::GlooGroup(std::shared_ptr<gloo::Context> context, Algorithm algorithm, std::vector<std::span<float>> buckets)
    : context_(std::move(context)), algorithm_(algorithm), buckets_(std::move(buckets)) {
    for (const std::span<float> bucket : buckets_) built_.push_back(build(context_, algorithm, bucket));
}

void GlooGroup::all_reduce(std::size_t bucket) {
    if (built_[bucket] != nullptr) {
        built_[bucket]->run();
        return;
    }
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(algorithm_ == Algorithm::ring ? gloo::AllreduceOptions::Algorithm::RING
                                                       : gloo::AllreduceOptions::Algorithm::BCUBE);
    options.setOutput(buckets_[bucket].data(), buckets_[bucket].size());
    options.setReduceFunction(static_cast<Reduce>(&gloo::sum<float>));
    options.setTag(tensor_tag);
    gloo::allreduce(options);
}

void GlooGroup::barrier() {
    gloo::BarrierOptions options(context_);
    options.setTag(barrier_tag);
    gloo::barrier(options);
}

double GlooGroup::largest(double value) { return reduce(value, &gloo::max<double>); }

double GlooGroup::total(double value) { return reduce(value, &gloo::sum<double>); }

double GlooGroup::reduce(double value, Reduce function) {
    gloo::AllreduceOptions options(context_);
    options.setOutput(&value, 1);
    options.setReduceFunction(function);
    options.setTag(number_tag);
    gloo::allreduce(options);
    return value;
}

}  // namespace atp::bench
