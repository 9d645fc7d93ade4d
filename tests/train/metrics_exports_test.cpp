// Exports of metrics that cannot be written: said once, and the run goes on; Prometheus' file is tried again.
#include "gyre/train/metrics_exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/report/metrics.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct MetricsExportsTest : ::testing::Test {
  std::string messages() const {
    std::fflush(log.get());
    return read_file(root / "log");
  }
  testing_support::TemporaryDirectory root;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> log{std::fopen((root / "log").c_str(), "w"), &std::fclose};
  Progress progress{log.get(), false};
  RunDirectory run{root.path()};
  Config config;
};

TEST_F(MetricsExportsTest, WhatCannotBeWrittenIsSaidOnce) {
  fs::create_directory(root / "other");
  config.run.tensorboard = true;
  config.run.prometheus = root / "other/gyre.prom";
  std::ofstream(root / "tensorboard") << "in the way";
  MetricsExports exports(run, config, 0, progress, system_files());
  EXPECT_THAT(messages(), HasSubstr("tensorboard"));

  MetricsWriter metrics(run.metrics());
  metrics.tell(exports);
  metrics.eval(1, 2.0);
  EXPECT_THAT(read_file(config.run.prometheus), HasSubstr("gyre_validation_loss"));
  fs::remove_all(root / "other");
  for (const int64_t step : {2, 3}) metrics.eval(step, 1.0);
  const std::string said = messages();
  const size_t first = said.find("gyre.prom");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_THAT(said, HasSubstr("the run goes on without that file"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;
  EXPECT_THAT(read_file(run.metrics()), HasSubstr("\"step\":3"));

  fs::create_directory(root / "other");  // as where a disk had no room for a moment
  metrics.end({});
  EXPECT_THAT(read_file(config.run.prometheus), AllOf(HasSubstr("validation_loss{run="), HasSubstr("gyre_running{")));
  EXPECT_THAT(read_file(config.run.prometheus), HasSubstr("\"} 0\n"));
  EXPECT_EQ(messages(), said);
}

TEST_F(MetricsExportsTest, ADirectoryThatComesBackGetsItsFile) {
  config.run.prometheus = root / "other/gyre.prom";
  check_exports(config, true);
  MetricsExports exports(run, config, 0, progress, system_files());
  const std::string said = messages();
  EXPECT_THAT(said, HasSubstr("gyre.prom: cannot be written: No such file or directory; the run goes on without"));
  MetricsWriter metrics(run.metrics());
  metrics.tell(exports);
  metrics.eval(1, 2.0);
  EXPECT_EQ(messages(), said);
  fs::create_directory(root / "other");
  metrics.eval(2, 1.0);
  EXPECT_THAT(read_file(config.run.prometheus), HasSubstr("gyre_validation_loss"));
  config.run.prometheus = root / "run.toml";
  EXPECT_THROW(check_exports(config, true), InputError) << "a name that this session has given";
}

TEST_F(MetricsExportsTest, AFileThatCannotBeIsRefusedBeforeTheWork) {
  config.run.prometheus = root / "nowhere/gyre.prom";
  EXPECT_THROW(check_exports(config, false), InputError);
  fs::create_directory(root / "directory.prom");
  config.run.prometheus = root / "directory.prom";
  EXPECT_THROW(check_exports(config, false), InputError) << "a directory";
  config.run.prometheus = root / "run.toml";
  EXPECT_THROW(check_exports(config, false), InputError) << "node-exporter would not read it, and it may be the user's";
  config.run.prometheus = root / "gyre.prom";
  check_exports(config, false);
  EXPECT_FALSE(fs::exists(config.run.prometheus)) << "a check writes nothing";
  config.run.prometheus = "";
  check_exports(config, false);
}

}  // namespace
}  // namespace gyre
