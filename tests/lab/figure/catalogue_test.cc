// SPDX-License-Identifier: Apache-2.0
#include "figure/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace atp::figure {
namespace {

TEST(Catalogue, EveryFigureHasSourceClaimAndSetup) {
    std::set<std::string_view> ids;
    for (const Figure* figure : catalogue()) {
        EXPECT_TRUE(ids.insert(figure->id).second) << figure->id << " is there twice";
        EXPECT_EQ(find_figure(figure->id), figure);
        EXPECT_FALSE(figure->title.empty()) << figure->id;
        EXPECT_FALSE(figure->source.empty()) << figure->id;
        EXPECT_FALSE(figure->claim.empty()) << figure->id;
        EXPECT_FALSE(figure->setup.empty()) << figure->id;
        EXPECT_NE(figure->draw, nullptr) << figure->id;
    }
}

TEST(Catalogue, EveryFigureOfAPaperListsItsInputs) {
    for (const Figure* figure : catalogue()) {
        EXPECT_EQ(figure->inputs.empty(), figure->id.starts_with("beyond-")) << figure->id;
        for (const Input& input : figure->inputs) {
            EXPECT_FALSE(input.name.empty()) << figure->id;
            EXPECT_FALSE(input.source.empty()) << figure->id;
        }
    }
}

TEST(Catalogue, RealFigureHasTheClaimOfTheSimulatedOne) {
    for (const Figure* figure : real_catalogue()) {
        const Figure* simulated = find_figure(figure->id);
        ASSERT_NE(simulated, nullptr) << figure->id;
        EXPECT_EQ(figure->claim, simulated->claim);
        EXPECT_EQ(find_figure(figure->id, real_catalogue()), figure);
        EXPECT_LE(figure->basis, Basis::kernel) << figure->id;
        EXPECT_FALSE(figure->inputs.empty()) << figure->id;
        EXPECT_FALSE(figure->setup.empty()) << figure->id;
    }
}

TEST(Catalogue, UnknownIdHasSimilarIds) {
    EXPECT_EQ(find_figure("fig99"), nullptr);
    EXPECT_THAT(ids_near("fig99"), testing::Contains("fig9"));
    EXPECT_THAT(ids_near("fgi9"), testing::Contains("fig9"));
    EXPECT_THAT(ids_near("beyond"), testing::Contains("beyond-mtu"));
    EXPECT_THAT(ids_near("fig13"), testing::ElementsAre("fig13a", "fig13b", "fig13c"));
    EXPECT_THAT(ids_near("something else"), testing::IsEmpty());
}

}  // namespace
}  // namespace atp::figure
