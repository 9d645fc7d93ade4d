// Tests the text of the HTML report: what is in it, what it refuses, and that data cannot become markup.
#include "gyre/report/html/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/report/html/assets.h"
#include "gyre/report/html/report_data.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void make_run(const fs::path& path, const std::string& metrics, const std::vector<std::string>& overrides = {}) {
  fs::create_directories(path);
  const Config config = parse_config("[data]\ntokens = \"tokens\"\n", "run", overrides);
  write_file_atomic(path / "config.toml", to_toml(config));
  if (!metrics.empty()) write_file_atomic(path / "metrics.jsonl", metrics);
}

nlohmann::json data_of(const std::string& html) {
  const std::string mark = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(mark) + mark.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

constexpr const char* kStep =
    R"({"event":"step","step":1,"loss":2.25,"lr":0.1,"grad_norm":1,"tokens":9,"tokens_per_second":5,"seconds":1})"
    "\n";

TEST(ReportPage, HasTheRunsUnderNamesThatTellThemApart) {
  const testing_support::TemporaryDirectory directory;
  make_run(directory / "a/run", kStep);
  make_run(directory / "b/run", kStep, {"optimizer.lr=0.5"});
  const Report report = make_report({{directory / "a/run/", directory / "b/run"}, "9"});
  const auto data = data_of(report.html);
  EXPECT_EQ(data["runs"][0]["name"], "a/run");
  EXPECT_EQ(data["runs"][1]["name"], "b/run");
  EXPECT_EQ(data["runs"][1]["config"]["optimizer"]["lr"], "0.5");
  EXPECT_EQ(data["runs"][0]["curves"][0]["value"], nlohmann::json({2.25}));
  EXPECT_EQ(report.summary, "2 runs");
  EXPECT_EQ(data_of(make_report({{directory / "a/run", directory / "a/run"}, "9"}).html)["runs"][1]["name"], "run (2)");
  // Each has only as many parts as it needs.
  make_run(directory / "b/a/run", kStep);
  make_run(directory / "b/other", kStep);
  const auto more = data_of(make_report({{directory / "a/run", directory / "b/run", directory / "b/a/run",
                                          directory / "b/other", directory / "b/a/run"},
                                         "9"})
                                .html);
  std::vector<std::string> names;
  for (const auto& run : more["runs"]) names.push_back(run["name"]);
  EXPECT_THAT(names, ElementsAre(HasSubstr("/a/run"), "b/run", "b/a/run", "other", "b/a/run (2)"));
}

TEST(ReportPage, ARunThatWentOnHasTheFiguresOfAllItsSessions) {
  const testing_support::TemporaryDirectory directory;
  make_run(directory / "run", std::string(kStep) +
                                  R"({"event":"segment","step":1,"seconds":2,"bubbles":[0.5]})"
                                  "\n"
                                  R"({"event":"resume","step":1,"changed":{}})"
                                  "\n"
                                  R"({"event":"step","step":2,"loss":2,"tokens":18,"seconds":3})"
                                  "\n"
                                  R"({"event":"segment","step":2,"seconds":4,"bubbles":[0.875]})"
                                  "\n"
                                  R"({"event":"end","status":"finished","step":2,"tokens_per_second":2.25,)"
                                  R"("bubble_fraction":0.875,"seconds":5})"
                                  "\n");
  const auto run = data_of(make_report({{directory / "run"}, "9"}).html)["runs"][0];
  EXPECT_EQ(run["totals"], (nlohmann::json{{"seconds", 6}, {"tokens_per_second", 3}, {"bubble_fraction", 0.75}}));
  EXPECT_EQ(run["end"],
            (nlohmann::json{{"status", "finished"}, {"tokens_per_second", 2.25}, {"bubble_fraction", 0.875}}))
      << "those of the last session";
}

constexpr const char* kResumedAt100 = R"({"event":"resume","step":100,"changed":{}})"
                                      "\n";

// metrics.jsonl was emptied, so that the run went on without a record of its first 100 updates.
TEST(ReportPage, CountsUpdatesThatHaveNoRecord) {
  const testing_support::TemporaryDirectory directory;
  const auto steps = [&] { return data_of(make_report({{directory / "run"}, "9"}).html)["runs"][0]["steps"]; };
  make_run(directory / "run", kResumedAt100);
  EXPECT_EQ(steps(), 100);
  EXPECT_THAT(make_report({{directory / "run"}, "9"}).notes[0], HasSubstr("there are no curves"));
  make_run(directory / "run",
           std::string(kResumedAt100) + R"({"event":"step","step":101,"loss":2,"tokens":909})" + "\n");
  EXPECT_EQ(steps(), 101);
}

TEST(ReportPage, PredictsNothingFromCostsOfAnotherPipeline) {
  const testing_support::TemporaryDirectory directory;
  const auto note_of = [&](const std::vector<std::string>& overrides) {
    make_run(directory / "run", kStep, overrides);
    const Report report = make_report({{directory / "run"}, "9"});
    const auto run = data_of(report.html)["runs"][0];
    EXPECT_EQ(run["stages"].size(), run["schedule"]["stages"]) << "the schedule is there";
    EXPECT_EQ(run.contains("predicted"), report.notes.empty());
    return report.notes.empty() ? "" : report.notes[0];
  };
  make_run(directory / "run", kStep);
  write_file_atomic(
      directory / "run/costs.json",
      R"({"format": "gyre-costs 1", "tokens_per_microbatch": 1024, "stages": [{"forward": 1, "backward": 2}]})");
  const std::vector<std::string> fitting = {"pipeline.microbatch=8", "model.context=128"};
  const auto with = [&](const char* other) { return std::vector<std::string>{fitting[0], fitting[1], other}; };
  EXPECT_EQ(note_of(fitting), "");
  EXPECT_EQ(note_of(with("pipeline.stages=2")),
            "run: nothing is predicted: its costs.json is of an earlier session, with 1 stage and microbatches of 1024 "
            "tokens, and the run now has 2 stages and microbatches of 1024 tokens");
  EXPECT_THAT(note_of(with("pipeline.microbatch=4")), HasSubstr("now has 1 stage and microbatches of 512 tokens"));
  write_file_atomic(directory / "run/costs.json", "{");
  EXPECT_THAT(note_of(fitting), HasSubstr("run: nothing is predicted: "));
}

TEST(ReportPage, NothingOfARunBecomesMarkupAndNothingIsAskedOfTheNetwork) {
  const testing_support::TemporaryDirectory directory;
  const fs::path run = directory / "<img src=x onerror=alert(1)> <!-- <script>";
  make_run(run, kStep);
  const std::string html = make_report({{run}, "9"}).html;
  EXPECT_EQ(html.find("<img"), std::string::npos);
  size_t scripts = 0;
  for (size_t at = html.find("<script"); at != std::string::npos; at = html.find("<script", at + 1)) ++scripts;
  EXPECT_EQ(scripts, 3u) << "data, library, and the page's own";
  EXPECT_EQ(data_of(html)["runs"][0]["name"], "<img src=x onerror=alert(1)> <!-- <script>");
  for (const char* word : {"sourceMappingURL", "src=\"http", "@import", "url(", "href=\"http"}) {
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, HasSubstr("Dygraph"));
  EXPECT_THAT(std::string(find_asset("page.css")), HasSubstr("--page"));
}

TEST(ReportPage, SaysWhatItLacks) {
  const testing_support::TemporaryDirectory directory;
  make_run(directory / "new", "");
  make_run(directory / "other", kStep, {"model.width=96", "data.tokens=elsewhere"});
  EXPECT_THAT(make_report({{directory / "new"}, "9"}).notes,
              ElementsAre("new: no update is recorded yet: there are no curves of it"));
  const Report report = make_report({{directory / "new", directory / "other"}, "9"});
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("no update"), HasSubstr("no costs.json"),
                                        "new and other have neither their model nor their data in common: their losses "
                                        "do not compare"));
  EXPECT_EQ(data_of(report.html)["notes"].size(), 3u);
}

TEST(ReportPage, HasAStudysTablesAndTheRunsThatCount) {
  const testing_support::TemporaryDirectory directory;
  make_run(directory / "study/runs/adamw-p1/lr0.1-seed1", kStep);
  make_run(directory / "study/runs/adamw-p1/trial5-lr0.1-seed1", kStep);
  write_file_atomic(directory / "study/runs/adamw-p1/lr0.1-seed1.log", "what it said");
  write_file_atomic(directory / "study/results.json", R"({"study": "s", "targets": [], "arms": []})");
  const Report report = make_report({{directory / "study"}, "9"});
  EXPECT_EQ(report.summary, "1 study, 1 run");
  EXPECT_EQ(data_of(report.html)["studies"][0]["study"], "s");
  EXPECT_EQ(data_of(report.html)["runs"][0]["name"], "lr0.1-seed1");
}

TEST(ReportPage, OfAStudyThatGoesOnHasItsRuns) {
  const testing_support::TemporaryDirectory directory;
  make_run(directory / "study/runs/adamw-p1/lr0.1-seed1", kStep);
  const Report report = make_report({{directory / "study/"}, "9"});
  EXPECT_EQ(report.summary, "1 study, 1 run");
  const char* note = "study: the study has no results yet: here are its runs that have begun, without short trials";
  EXPECT_EQ(report.notes[0], note);
  make_run(directory / "tried/runs/adamw-p1/trial5-lr0.1-seed1", kStep);
  const Report trials = make_report({{directory / "tried"}, "9"});
  EXPECT_EQ(trials.summary, "1 study") << "that so far has only trials";
  EXPECT_EQ(data_of(trials.html)["runs"].size(), 0u);
}

TEST(ReportPage, OfWhatGoesOnAsksItsServerAlone) {
  const std::string live = live_page("9");
  EXPECT_THAT(live, HasSubstr("connect-src 'self'"));
  EXPECT_EQ(data_of(live)["live"], true);
  const testing_support::TemporaryDirectory directory;
  make_run(directory / "run", kStep);
  EXPECT_THAT(make_report({{directory / "run"}, "9"}).html, HasSubstr("connect-src 'none'"));
}

TEST(ReportData, ReadsAgainWhatHasChanged) {
  const testing_support::TemporaryDirectory directory;
  make_run(directory / "a", kStep);
  make_run(directory / "b", kStep);
  ReportData data({directory / "a", directory / "b"});
  const auto first = data.read();
  EXPECT_EQ(data.read(), first);
  write_file_atomic(directory / "b/metrics.jsonl", "");
  const auto second = data.read();
  EXPECT_EQ(second->json["runs"][0]["steps"], 1);
  EXPECT_EQ(second->json["runs"][1]["steps"], 0);
  write_file_atomic(directory / "a/trace.json",
                    R"({"traceEvents":[{"ph":"X","name":"0F0","cat":"forward","pid":0,"tid":0,"ts":1,"dur":2}]})");
  const auto third = data.read();
  EXPECT_EQ(third->timelines.size(), 1u);
  EXPECT_EQ(data.read(), third);
}

TEST(ReportData, CurvesOfManyRunsHaveFewerPoints) {
  const testing_support::TemporaryDirectory directory;
  std::string metrics;
  for (int i = 1; i <= 2000; ++i) metrics += fmt::format("{{\"event\":\"step\",\"step\":{},\"loss\":2}}\n", i);
  const auto add = [&](int runs) {
    for (int i = 0; i < runs; ++i) make_run(directory / fmt::format("study/runs/arm/run{}", i), metrics);
  };
  ReportData data({directory / "study"});
  const auto points = [&] { return data.read()->json["runs"][0]["curves"][0]["step"].size(); };
  add(50);
  EXPECT_EQ(points(), 2000u);
  add(51);
  EXPECT_EQ(points(), 1000u);
}

TEST(ReportPage, NumbersOfCurvesHaveNoMoreDigitsThanAFloat) {
  const testing_support::TemporaryDirectory directory;
  const auto step = [](const char* loss) {
    return fmt::format("{{\"event\":\"step\",\"step\":1,\"loss\":{},\"seconds\":3.0000000001}}\n", loss);
  };
  make_run(directory / "run", step("2.7999999523162842") + step("0.1") + step("1e300") + step("1e-300") + step("0"));
  const auto curve = data_of(make_report({{directory / "run"}, "9"}).html)["runs"][0]["curves"][0];
  EXPECT_EQ(curve["value"].dump(), "[2.8,0.1,1e+300,1e-300,0.0]");
  EXPECT_EQ(curve["seconds"][0].dump(), "3.0");
}

TEST(ReportData, ReadsOfARunThatGoesOnOnlyWhatIsNew) {
  const testing_support::TemporaryDirectory directory;
  const auto step = [](int number) { return fmt::format("{{\"event\":\"step\",\"step\":{},\"loss\":2}}\n", number); };
  std::string metrics;
  for (int i = 1; i <= 10; ++i) metrics += step(i);
  make_run(directory / "run", metrics);
  ReportData data({directory / "run"});
  EXPECT_EQ(data.read()->json["runs"][0]["steps"], 10);
  const fs::path file = directory / "run/metrics.jsonl";
  std::ofstream(file, std::ios::in | std::ios::out) << "not read again";  // over the first line
  std::ofstream(file, std::ios::app) << step(11);
  EXPECT_EQ(data.read()->json["runs"][0]["steps"], 11);
  write_file_atomic(file, kStep);
  EXPECT_EQ(data.read()->json["runs"][0]["steps"], 1) << "another file";
}

TEST(ReportData, ForgetsARunThatIsGone) {
  const testing_support::TemporaryDirectory directory;
  const fs::path run = directory / "study/runs/arm/run", away = directory / "away";
  make_run(directory / "study/runs/arm/other", kStep);
  std::string metrics;
  for (int i = 0; i < 10; ++i) metrics += kStep;
  make_run(run, metrics);
  ReportData data({directory / "study"});
  EXPECT_EQ(data.read()->json["runs"].size(), 2u);
  fs::rename(run, away);
  EXPECT_EQ(data.read()->json["runs"].size(), 1u);
  std::ofstream(away / "metrics.jsonl", std::ios::in | std::ios::out) << "read again";  // over the first line
  std::ofstream(away / "metrics.jsonl", std::ios::app) << kStep;
  fs::rename(away, run);
  EXPECT_THROW(data.read(), InputError) << "it goes on where it was";
}

TEST(ReportPage, RefusesWhatItCannotShow) {
  const testing_support::TemporaryDirectory directory;
  fs::create_directories(directory / "empty");
  fs::create_directories(directory / "study");
  write_file_atomic(directory / "study/results.json", "{\"arms\": 3}");
  write_file_atomic(directory / "text", "no trace");
  const auto refusal = [&](const char* what) {
    try {
      make_report({{directory / what}, "9"});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("absent"), HasSubstr("is not there"));
  EXPECT_THAT(refusal("empty"), HasSubstr("neither a run"));
  EXPECT_THAT(refusal("study"), HasSubstr("is not what gyre study wrote"));
  EXPECT_THAT(refusal("text"), HasSubstr("is no trace"));
}

}  // namespace
}  // namespace gyre
