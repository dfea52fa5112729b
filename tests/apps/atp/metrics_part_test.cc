// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/metrics_part.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <string>

#include "net/resolve.h"

namespace atp::apps {
namespace {

TEST(MetricsPart, SwitchAtAllAddressesHasTheNameOfItsHost) {
    char host[HOST_NAME_MAX + 1] = {};
    ASSERT_EQ(gethostname(host, HOST_NAME_MAX), 0);
    EXPECT_EQ(name_of_switch(net::resolve("0.0.0.0:4790")->front()), std::string(host) + ":4790");
    EXPECT_EQ(name_of_switch(net::resolve("[::]:4790")->front()), std::string(host) + ":4790");
    EXPECT_EQ(name_of_switch(net::resolve("127.0.0.1:4790")->front()), "127.0.0.1:4790");
}

}  // namespace
}  // namespace atp::apps
