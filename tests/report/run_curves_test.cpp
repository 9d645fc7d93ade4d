// Tests the curves of metrics.jsonl: times add up over sessions.
#include "gyre/report/run_curves.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"

namespace gyre {
namespace {

std::string step(int64_t number, const std::string& loss, double seconds) {
  return fmt::format(
      R"({{"event":"step","step":{},"loss":{},"lr":0.1,"grad_norm":1,"tokens":{},"tokens_per_second":5,"seconds":{}}})"
      "\n",
      number, loss, number * 64, seconds);
}

RunCurves curves_of(const std::string& metrics, size_t max_points) {
  CurveCollector collector;
  for_each_metrics_line(metrics, "metrics", "", [&](const MetricsLine& line) { collector.take(line); });
  return collector.curves(max_points);
}

TEST(RunCurves, TimesOfSessionsAddUpAndWhatIsNotFiniteIsLeftOut) {
  const std::string text = step(1, "3.5", 2) + step(2, "null", 4) + R"({"event":"eval","step":2,"val_loss":3.25})" +
                           "\n" + R"({"event":"delay","stage":0,"histogram":{"0":1,"10":5}})" + "\n" +
                           R"({"event":"resume","step":2,"changed":{}})" + "\n" + step(3, "2.5", 1) +
                           R"({"event":"delay","stage":0,"histogram":{"2":7}})" + "\n" + R"({"event":"step","st)";
  const RunCurves run = curves_of(text, 100);
  EXPECT_EQ(run.steps, 3);
  ASSERT_EQ(run.curves.size(), 5u);
  EXPECT_EQ(run.curves[0].name, "loss");
  ASSERT_EQ(run.curves[0].points.size(), 2u);
  EXPECT_EQ(run.curves[0].points[1].step, 3);
  EXPECT_EQ(run.curves[0].points[1].seconds, 5);
  EXPECT_EQ(run.curves[0].points[1].tokens, 192);
  EXPECT_EQ(run.curves[1].name, "val_loss");
  EXPECT_EQ(run.curves[1].points[0].seconds, 4) << "an evaluation is at the update before it";
  const std::map<int64_t, std::map<int64_t, int64_t>> delays = {{0, {{2, 7}}}};
  EXPECT_EQ(run.delays, delays) << "the last session's";
  EXPECT_FALSE(run.end);
  EXPECT_EQ(curves_of("", 100).curves.size(), 0u);
  for (const char* histogram : {R"({"a":1})", R"({"":1})", R"({"-1":1})", R"({"0":-1})", R"({"0":1.5})",
                                R"({"0":18446744073709551615})", R"({"9223372036854775808":1})"}) {
    const std::string line = fmt::format("{{\"event\":\"delay\",\"stage\":0,\"histogram\":{}}}\n", histogram);
    EXPECT_THROW(curves_of(line, 9), InputError) << histogram;
  }
}

TEST(RunCurves, MemoryIsTheMostOfTheLastSession) {
  const auto segment = [](const char* tensors, const char* resident) {
    return fmt::format(R"({{"event":"segment","step":1,"peak_tensor_bytes":{},"peak_resident_bytes":{}}})"
                       "\n",
                       tensors, resident);
  };
  const std::string first = segment("[7,8]", "[70,80]");
  EXPECT_EQ(curves_of(first, 9).peak_resident, (std::vector<double>{70, 80}));
  const RunCurves run = curves_of(first + R"({"event":"resume","step":1,"changed":{}})" + "\n" +
                                      segment("[3,2]", "[30,20]") + segment("[1,4]", "[10,40]"),
                                  9);
  EXPECT_EQ(run.peak_tensors, (std::vector<double>{3, 4}));
  EXPECT_EQ(run.peak_resident, (std::vector<double>{30, 40}));
  EXPECT_TRUE(curves_of(R"({"event":"segment","step":1})"
                        "\n",
                        9)
                  .peak_tensors.empty());
}

// A session's first update may have a larger "seconds" than the last update of the session before.
TEST(RunCurves, ASessionAfterAShorterOneAddsUpToo) {
  const std::string text =
      step(1, "3.5", 2) + R"({"event":"resume","step":1,"changed":{}})" + "\n" + step(2, "2.5", 7) + step(3, "2", 1);
  const auto points = curves_of(text, 100).curves[0].points;
  EXPECT_EQ(points[1].seconds, 9);
  EXPECT_EQ(points[2].seconds, 10) << "no line says that it went on, but its clock did";
}

}  // namespace
}  // namespace gyre
