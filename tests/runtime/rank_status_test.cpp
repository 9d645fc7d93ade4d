// What a process reports about its workers arrives unchanged.
#include "gyre/runtime/ranks/rank_status.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

TEST(RankStatus, ReadsBack) {
  RankStatus status;
  status.steps = 7;
  status.parts = 8;
  status.stop = true;
  status.memory = {1, 2, 3, 4};
  WorkerStatus worker;
  worker.worker = 3;
  worker.inside = true;
  worker.action = "1:3F4";
  worker.needs = "room";
  worker.seconds = 1.0 / 3;
  worker.waited = {{kNobody, 0.25}, {2, 0.5}};
  worker.delays = {{0, {6.0, 3}}, {4, {0.0, 1}}};
  worker.activations = 5;
  worker.gradients = 6;
  worker.others = 7;
  status.workers = {worker, {}};
  status.workers[1].worker = 4;
  const RankStatus read = parse_rank_status(to_json(status));
  EXPECT_EQ(to_json(read), to_json(status));
  EXPECT_EQ(read.steps, 7u);
  EXPECT_EQ(read.parts, 8u);
  EXPECT_TRUE(read.stop);
  EXPECT_FALSE(read.computing);
  EXPECT_EQ(read.memory.peak_tensors, 4);
  ASSERT_EQ(read.workers.size(), 2u);
  EXPECT_EQ(read.workers[0].seconds, 1.0 / 3);
  EXPECT_EQ(read.workers[0].waited, worker.waited);
  EXPECT_EQ(read.workers[0].delays.at(0).gradients, 3);
  EXPECT_EQ(read.workers[0].others, 7);
  EXPECT_EQ(to_string(read.workers), "worker 3 inside 1:3F4; worker 4 has finished");
}

TEST(RankStatus, SaysWhatAWorkerWaitsFor) {
  WorkerStatus worker;
  worker.worker = 2;
  worker.action = "2F17";
  worker.needs = "the activation of 1F17 from worker 1";
  EXPECT_EQ(to_string(worker), "worker 2 at 2F17, waiting for the activation of 1F17 from worker 1");
}

}  // namespace
}  // namespace gyre
