// SPDX-License-Identifier: Apache-2.0
#include "comm/job_name.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace atp::comm {
namespace {

constexpr const char* variables[]{"ATP_JOB_NAME", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"};

class JobName : public testing::Test {
  protected:
    void SetUp() override { clear(); }
    void TearDown() override { clear(); }
    static void clear() {
        for (const char* const variable : variables) unsetenv(variable);
    }
};

TEST_F(JobName, OptionComesBeforeTheVariablesAndEachBeforeTheNext) {
    Options options;
    EXPECT_EQ(job_name_of(options), "");
    setenv("SLURM_JOB_ID", "4711", 1);
    EXPECT_EQ(job_name_of(options), "4711");
    setenv("TORCHELASTIC_RUN_ID", "run-1", 1);
    EXPECT_EQ(job_name_of(options), "run-1");
    setenv("ATP_JOB_NAME", "resnet-50", 1);
    EXPECT_EQ(job_name_of(options), "resnet-50");
    options.job_name = "mine";
    EXPECT_EQ(job_name_of(options), "mine");
}

TEST_F(JobName, RunThatNobodyNamedIsNoName) {
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    EXPECT_EQ(job_name_of({}), "");
    setenv("SLURM_JOB_ID", "4711", 1);
    EXPECT_EQ(job_name_of({}), "4711");
}

TEST_F(JobName, LongNameEndsWithAWholeCharacter) {
    EXPECT_EQ(short_job_name(std::string(64, 'x')), std::string(63, 'x'));
    EXPECT_EQ(short_job_name(std::string(62, 'x') + "\xC3\xA4"), std::string(62, 'x'));
    EXPECT_EQ(short_job_name(std::string(61, 'x') + "\xC3\xA4"), std::string(61, 'x') + "\xC3\xA4");
    EXPECT_EQ(short_job_name(std::string(64, '\x80')), "") << "no character begins";
}

}  // namespace
}  // namespace atp::comm
