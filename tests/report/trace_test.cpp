// Tests writing timelines as Chrome traces.
#include "gyre/report/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "gyre/core/files.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/schedule_settings.h"
#include "gyre/schedule/text.h"
#include "support/counted_writes.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

TEST(Trace, ShowsHowLongAMessageOfAnotherProcessWasUnderWay) {
  const Schedule schedule = make_schedule({"1f1b", 2, 1});
  const auto timed = [](const char* action, double start, double end, std::optional<double> came = {}) {
    return TimedAction{parse_action(action, 1), start, end, came};
  };
  const std::vector<std::vector<TimedAction>> actions = {
      {timed("0F0", 0, 1), timed("0F1", 1, 2), timed("0B0", 4, 5, 3.75)},
      {timed("1F0", 2, 3, 1.5), timed("1B0", 3, 3.5), timed("1F1", 4, 5, 1.75)},  // the two clocks differ slightly
  };
  const testing_support::TemporaryDirectory directory;
  write_trace(directory / "trace.json", schedule, actions);
  std::map<std::string, std::pair<double, double>> spans;
  const Json json = Json::parse(read_file(directory / "trace.json"));
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] != "under way") continue;
    const bool begins = event["ph"] == "b";
    EXPECT_TRUE(begins || event["ph"] == "e");
    (begins ? spans[event["id"]].first : spans[event["id"]].second) = event["ts"];
    EXPECT_EQ(event["tid"], event["id"].get<std::string>()[0] == 'a' ? 0 : 1) << "the track of the sender";
  }
  const std::map<std::string, std::pair<double, double>> expected = {
      {"a:0:0:0", {1e6, 1.5e6}}, {"a:0:0:1", {1.75e6, 1.75e6}}, {"g:0:1:0", {3.5e6, 3.75e6}}};
  EXPECT_EQ(spans, expected);
}

TEST(Trace, IsWrittenInPieces) {
  const Schedule schedule = make_schedule({"1f1b", 1, 1});
  constexpr size_t kActions = 40'000;  // more than 4 MiB
  const std::vector<std::vector<TimedAction>> actions = {
      std::vector<TimedAction>(kActions, {parse_action("0F0", 1), 0, 1, std::nullopt})};
  const testing_support::TemporaryDirectory directory;
  CountedWrites files;
  write_trace(directory / "trace.json", schedule, actions, files);
  const std::string text = read_file(directory / "trace.json");
  EXPECT_GT(text.size(), size_t{4} << 20);
  EXPECT_LT(files.most, size_t{2} << 20);
  EXPECT_EQ(text, trace_text(schedule, actions));
  EXPECT_EQ(Json::parse(text)["traceEvents"].size(), kActions + 1);  // and the worker's name
}

}  // namespace
}  // namespace gyre
