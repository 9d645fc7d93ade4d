// What is wrong with a run's data is reported before anything is written.
#include "gyre/train/checked_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

TEST(CheckedRun, TokensThatNobodyEvaluatesMustBeSound) {
  const testing_support::TemporaryDirectory place;
  Config config;
  config.model.layers = 1;
  config.model.width = config.model.context = 8;
  config.model.heads = 2;
  config.pipeline.stages = 1;
  config.pipeline.microbatch = 2;
  config.run.eval_every = 0;
  config.data.tokens = place.path();
  config.data.vocabulary = 50;
  write_file_atomic(place / "train.bin", std::string(1000, '\0'));
  write_file_atomic(place / "val.bin", std::string(4, '\0'));
  EXPECT_NO_THROW(CheckedRun{config});
  write_file_atomic(place / "val.bin", "1234");
  try {
    const CheckedRun run(config);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("val.bin: token 12849 at 0 is outside the vocabulary of 50"));
  }
}

}  // namespace
}  // namespace gyre
