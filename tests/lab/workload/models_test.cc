// SPDX-License-Identifier: Apache-2.0
// Compares the tables of layers with published counts of parameters, and checks the buckets that they form.
#include "workload/models.h"

#include <gtest/gtest.h>

#include <string>

namespace atp::workload {
namespace {

TEST(Models, HaveTheKnownNumbersOfParameters) {
    const struct {
        const char* name;
        std::uint64_t parameters;
    } known[] = {{"AlexNet", 61'100'840},  {"VGG11", 132'863'336},    {"VGG16", 138'357'544},    {"VGG19", 143'667'240},
                 {"ResNet50", 25'557'032}, {"ResNet101", 44'549'160}, {"ResNet152", 60'192'808}, {"GPT2", 124'439'808}};
    EXPECT_EQ(models().size(), std::size(known));
    for (const auto& entry : known) {
        const Model* model = find_model(entry.name);
        ASSERT_NE(model, nullptr) << entry.name;
        EXPECT_EQ(model->parameters(), entry.parameters) << entry.name;
    }
}

// Billions of multiply-add operations of an image's forward pass, as publications give them.
TEST(Models, HaveTheKnownNumbersOfOperations) {
    EXPECT_NEAR(find_model("AlexNet")->forward_flops() / 2e9, 0.71, 0.01);
    EXPECT_NEAR(find_model("VGG16")->forward_flops() / 2e9, 15.5, 0.1);
    EXPECT_NEAR(find_model("ResNet50")->forward_flops() / 2e9, 4.1, 0.05);
    EXPECT_NEAR(find_model("ResNet152")->forward_flops() / 2e9, 11.5, 0.1);
}

TEST(Models, AreFoundInUpperAndLowerCase) {
    EXPECT_EQ(find_model("vgg16"), find_model("VGG16"));
    EXPECT_EQ(find_model("LeNet"), nullptr);
    EXPECT_EQ(find_model(""), nullptr);
}

TEST(Models, IterationTimeFollowsTheThroughput) {
    for (const Model& model : models()) {
        const double seconds = static_cast<double>(workload_of(model, {}).compute().count()) / 1e9;
        EXPECT_NEAR(seconds, model.batch / model.samples_per_s, seconds * 1e-4) << model.name;
    }
}

TEST(Models, BucketsHoldEveryParameterOnceBackToFront) {
    for (const Model& model : models()) {
        const Bucketing bucketing{.bytes = 4'000'000};
        const Workload workload = workload_of(model, bucketing);
        EXPECT_EQ(workload.elements(), model.parameters()) << model.name;
        Duration last{};
        for (const Workload::Bucket& bucket : workload.buckets) {
            EXPECT_LE(bucket.elements * sizeof(float), bucketing.bytes);
            EXPECT_GE(bucket.ready, last);
            last = bucket.ready;
        }
        // The layer next to the input needs the last bucket, the layer next to the output the first.
        EXPECT_EQ(workload.forward.front().last, workload.buckets.size()) << model.name;
        const bool output_has_parameters = !model.layers.back().tensors.empty();
        EXPECT_EQ(workload.forward.back().first, 0U);
        EXPECT_EQ(workload.forward.back().last != 0, output_has_parameters) << model.name;
    }
}

TEST(Models, ScaleDividesParametersAndTimes) {
    const Model& model = *find_model("VGG16");
    const Workload whole = workload_of(model, {});
    const Workload part = workload_of(model, {.scale = 100});
    ASSERT_EQ(part.buckets.size(), whole.buckets.size());
    EXPECT_NEAR(static_cast<double>(part.elements()), static_cast<double>(whole.elements()) / 100,
                static_cast<double>(whole.buckets.size()));
    EXPECT_NEAR(static_cast<double>(part.compute().count()), static_cast<double>(whole.compute().count()) / 100, 100);
}

TEST(Models, SlownessAndBatchMultiplyTimesOnly) {
    const Model& model = *find_model("VGG16");
    const Workload usual = workload_of(model, {});
    const Workload slow = workload_of(model, {.slowness = 10, .batch = 2 * model.batch});
    EXPECT_EQ(slow.elements(), usual.elements());
    ASSERT_EQ(slow.buckets.size(), usual.buckets.size());
    EXPECT_NEAR(to_seconds(slow.compute()), 20 * to_seconds(usual.compute()), 1e-4);
}

}  // namespace
}  // namespace atp::workload
