// Whatever its configuration, and at whatever system call it is killed, a run that is continued ends bit for bit like
// an undisturbed one. Runs the programme itself, as processes under ptrace(2).
//
// GYRE_CRASH_SEED=n draws other configurations, GYRE_CRASH_DRAWS=n sets their number, and GYRE_CRASH_DRAW=n runs only
// that one, to reproduce a failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "crash/drawn_configuration.h"
#include "crash/traced_process.h"
#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/random.h"
#include "gyre/data/prepare.h"
#include "gyre/report/tensorboard.h"
#include "support/temporary_directory.h"

namespace gyre::crash {
namespace {

namespace fs = std::filesystem;

constexpr int kMostAttempts = 300;  // draws of a configuration until one fits

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoll(text, nullptr, 10) : otherwise;
}

// Where a session is killed, as a share of the calls of an undisturbed run.
struct Kill {
  bool of_files = false;
  double where = 0;
  bool performed = false;
};

// Files do not change between two calls that change them, so most kills are at such calls. The rest are anywhere; most
// of those hit while libraries are loaded or workers wait for each other.
std::vector<Kill> draw_kills(RandomStream& random) {
  std::vector<Kill> kills(random.uniform() < 0.6 ? 1 : random.uniform() < 0.75 ? 2 : 3);
  for (Kill& kill : kills) kill = {random.uniform() < 0.7, random.uniform(), random.uniform() < 0.5};
  return kills;
}

KillPoint kill_point(const Kill& kill, const Calls& calls, bool resumes) {
  // A session that continues a run has less to write.
  const int64_t count = kill.of_files ? (resumes ? calls.of_files / 2 : calls.of_files) : calls.all;
  return {kill.of_files, 1 + static_cast<int64_t>(kill.where * static_cast<double>(count)), kill.performed};
}

// How far a run had got.
enum class Stand { NotThere, NoCheckpoint, Checkpoint, LastCheckpoint };
constexpr const char* kStands[] = {"before the run was there", "before its first checkpoint", "with a checkpoint",
                                   "with its last checkpoint"};

Stand stand_of(const fs::path& run) {
  if (!fs::exists(run / "config.toml")) return Stand::NotThere;
  if (fs::exists(run / "checkpoints" / "step-00000010")) return Stand::LastCheckpoint;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    if (entry.path().filename().string().rfind("step-", 0) == 0) return Stand::Checkpoint;
  }
  return Stand::NoCheckpoint;
}

// The records of steps, evaluations and, if `with_delays`, delays, without times.
std::string record_of(const fs::path& run, bool with_delays) {
  std::ifstream metrics(run / "metrics.jsonl");
  std::string text;
  for (std::string line; std::getline(metrics, line);) {
    auto fields = nlohmann::ordered_json::parse(line);
    const std::string event = fields["event"];
    if (event != "step" && event != "eval" && !(with_delays && event == "delay")) continue;
    fields.erase("tokens_per_second");
    fields.erase("seconds");
    text += fields.dump() + "\n";
  }
  return text;
}

// How the records of two runs differ; empty if they do not. If the run diverges, only the common length is compared:
// when one worker finds out, the others may have got more or less far.
std::string difference_of_records(const fs::path& one, const fs::path& other, bool diverged) {
  const std::string undisturbed = record_of(one, !diverged), continued = record_of(other, !diverged);
  const size_t length = diverged ? std::min(undisturbed.size(), continued.size()) : std::string::npos;
  if (undisturbed.substr(0, length) == continued.substr(0, length)) return "";
  return fmt::format("undisturbed:\n{}continued:\n{}", undisturbed, continued);
}

// TensorBoard's events must be those of the metrics, whatever was killed. Sizes are compared, since the events contain
// times.
std::string fault_of_events(const fs::path& run) {
  std::vector<uintmax_t> sizes;
  if (!fs::exists(run / "tensorboard")) return "";
  for (const auto& entry : fs::directory_iterator(run / "tensorboard")) {
    if (entry.file_size() > 0) sizes.push_back(entry.file_size());
  }
  const testing_support::TemporaryDirectory expected;
  const TensorBoardWriter writer(expected.path(), run / "metrics.jsonl", 0);
  const auto size = fs::directory_iterator(expected.path())->file_size();
  if (sizes.size() == 1 && sizes[0] == size) return "";
  return fmt::format(
      "tensorboard/ has {} files, the first of {} bytes, where one of {} bytes would have what the metrics "
      "say; ",
      sizes.size(), sizes.empty() ? 0 : sizes[0], size);
}

// The contents, by name, of all files except metrics, their exports and costs, which contain times.
std::map<std::string, std::string> files_of(const fs::path& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    const std::string name = entry.path().lexically_relative(run).string();
    const bool has_times = name == "metrics.jsonl" || name.find("costs.json") != std::string::npos ||
                           name.starts_with("tensorboard/events");
    if (entry.is_regular_file() && !has_times) files[name] = read_file(entry.path());
  }
  return files;
}

// What the programme prints about the run on standard output, without times and names.
std::string result_of(const Ended& ended) {
  if (ended.output.empty()) return "nothing";
  auto fields = nlohmann::ordered_json::parse(ended.output);
  for (const char* field :
       {"run", "tokens_per_second", "bubble_fraction", "seconds", "save_wait_seconds", "save_write_seconds"})
    fields.erase(field);
  return fields.dump();
}

std::string difference_of_files(const fs::path& one, const fs::path& other) {
  const auto files = files_of(one), other_files = files_of(other);
  std::string text;
  for (const auto& [name, content] : files) {
    const auto found = other_files.find(name);
    if (found == other_files.end()) text += name + " is missing; ";
    if (found != other_files.end() && found->second != content) text += name + " differs; ";
  }
  for (const auto& [name, content] : other_files) {
    if (!files.contains(name)) text += name + " is left over; ";
  }
  return text;
}

// The totals of all draws.
struct Counts {
  int64_t draws = 0, diverged = 0, sessions_killed = 0, killed_more_than_once = 0, not_reached = 0;
  int64_t refused = 0;               // contradictory configurations, found without the programme
  int64_t refused_by_programme = 0;  // of those given to it
  int64_t given_to_programme = 0;
  std::map<Stand, int64_t> stands;
  std::map<std::string, int64_t> calls;                          // the calls at which sessions were killed
  std::map<std::string, std::map<std::string, int64_t>> values;  // values by key, of the configurations that ran

  void add(const Counts& more) {
    draws += more.draws;
    diverged += more.diverged;
    sessions_killed += more.sessions_killed;
    killed_more_than_once += more.killed_more_than_once;
    not_reached += more.not_reached;
    refused += more.refused;
    refused_by_programme += more.refused_by_programme;
    given_to_programme += more.given_to_programme;
    for (const auto& [stand, count] : more.stands) stands[stand] += count;
    for (const auto& [call, count] : more.calls) calls[call] += count;
    for (const auto& [key, counted] : more.values) {
      for (const auto& [value, count] : counted) values[key][value] += count;
    }
  }
};

// One draw: a configuration, its undisturbed run, and the run that is killed.
class Trial {
 public:
  Trial(const fs::path& root, uint64_t seed, int64_t number)
      : seed_(seed), number_(number), place_(root / fmt::format("draw-{}", number)) {}

  // Returns what is wrong; empty if nothing is.
  std::string run() {
    fs::create_directories(place_ / "elsewhere");
    std::string problem;
    try {
      problem = begin();
      if (problem.empty()) problem = disturb();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (problem.empty()) fs::remove_all(place_);
    return problem.empty() ? problem : report(problem);
  }

  Counts counts;

 private:
  // Draws configurations until the programme accepts one, and runs it undisturbed.
  std::string begin() {
    // A contradictory configuration is given to the programme too, which must refuse it, but only one and only in some
    // draws: it takes time.
    bool has_shown = number_ % 4 != 0;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      RandomStream random(seed_, StreamPurpose::Test, static_cast<uint64_t>(number_), static_cast<uint32_t>(attempt));
      configuration_ = draw_configuration(random);
      if (!configuration_.refused.empty()) ++counts.refused;
      if (!configuration_.refused.empty() && has_shown) continue;
      has_shown = has_shown || !configuration_.refused.empty();
      write("run.toml", configuration_.toml());
      for (const char* name : {kScheduleText, kScheduleCsv}) write(name, configuration_.schedule_file);
      whole_ = start("whole", std::nullopt);
      ++counts.given_to_programme;
      if (whole_.code == 2) {
        ++counts.refused_by_programme;
        if (whole_.messages.empty()) return "refused without a word";
        if (fs::exists(place_ / "whole")) return "refused, but the run's directory was made";
        continue;
      }
      if (!configuration_.refused.empty()) {
        return fmt::format("was to be refused ({}), but: {}", configuration_.refused, describe(whole_));
      }
      if (whole_.code != 0 && whole_.code != 3) return "undisturbed: " + describe(whole_);
      kills_ = draw_kills(random);
      return "";
    }
    return "no configuration that fits was drawn";
  }

  std::string disturb() {
    const fs::path run = place_ / "killed";
    int64_t killed = 0;
    Ended last;
    for (const Kill& kill : kills_) {
      const KillPoint point = kill_point(kill, whole_.calls, fs::exists(run / "config.toml"));
      last = go_on(point);
      history_ += fmt::format("  call {} of {}: {}\n", point.number, point.of_files ? "files" : "all",
                              last.code ? "ended before it" : last.killed_at);
      if (last.code && last.code != whole_.code) return "before it was killed: " + describe(last);
      if (last.code) {
        ++counts.not_reached;
        continue;
      }
      ++killed;
      ++counts.stands[stand_of(run)];
      ++counts.calls[last.killed_in.empty() ? "another call" : last.killed_in];
    }
    last = go_on(std::nullopt);
    if (last.code != whole_.code) return "continued: " + describe(last);
    if (result_of(last) != result_of(whole_)) {
      return fmt::format("undisturbed: {}; continued: {}", result_of(whole_), result_of(last));
    }
    const bool diverged = whole_.code == 3;
    std::string what = difference_of_records(place_ / "whole", run, diverged);
    if (what.empty()) what = difference_of_files(place_ / "whole", run) + fault_of_events(run);
    if (!what.empty()) return what;
    counts.draws = 1;
    counts.diverged = diverged ? 1 : 0;
    counts.sessions_killed = killed;
    counts.killed_more_than_once = killed > 1 ? 1 : 0;
    for (const auto& [key, value] : configuration_.values) counts.values[key][value] = 1;
    return "";
  }

  Ended start(const std::string& run, const std::optional<KillPoint>& kill) const {
    return run_traced({GYRE_PROGRAM, "train", "run.toml", "--out", run, "--json"}, place_, kill);
  }
  // Does as a user would: begins the run if it does not exist and otherwise continues it from where it is.
  Ended go_on(const std::optional<KillPoint>& kill) const {
    const fs::path run = place_ / "killed";
    if (!fs::exists(run / "config.toml")) return start("killed", kill);
    return run_traced({GYRE_PROGRAM, "train", "--resume", run.string(), "--json"}, place_ / "elsewhere", kill);
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(place_ / name) << text; }
  static std::string describe(const Ended& ended) {
    return fmt::format("{}: {}", ended.code ? fmt::format("exit {}", *ended.code) : "killed", ended.messages);
  }
  std::string report(const std::string& problem) const {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return fmt::format(
        "draw {}: {}\nkilled at\n{}{}\n{}\nto see it again: GYRE_CRASH_SEED={} GYRE_CRASH_DRAW={} gyre_crash_test "
        "--gtest_filter={}.{}; its files are in {}",
        number_, problem, history_, configuration_.toml(), configuration_.schedule_file, seed_, number_,
        test->test_suite_name(), test->name(), place_.string());
  }

  uint64_t seed_;
  int64_t number_;
  fs::path place_;
  DrawnConfiguration configuration_;
  std::vector<Kill> kills_;
  Ended whole_;
  std::string history_;
};

class Draws : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_trace()) GTEST_SKIP() << "ptrace(2) is not permitted here, so no system call can be chosen";
    ::setenv("OMP_NUM_THREADS", "1", 1);  // as in all tests, for speed; pipeline.threads_per_worker decides
    for (const char* tokens : kTokens) prepare_tokens(root_ / fs::path(tokens).filename());
  }
  void TearDown() override {
    if (HasFailure()) root_.keep();
  }

  Counts run(int64_t draws, unsigned side_by_side) {
    const int64_t only = from_environment("GYRE_CRASH_DRAW", -1);
    const int64_t first = only >= 0 ? only : 0;
    const int64_t end = only >= 0 ? only + 1 : from_environment("GYRE_CRASH_DRAWS", draws);
    const auto seed = static_cast<uint64_t>(from_environment("GYRE_CRASH_SEED", 1));
    std::atomic<int64_t> next = first;
    std::mutex mutex;  // guards the counts and the output
    Counts counts;
    const auto work = [&] {
      for (int64_t number = next++; number < end; number = next++) {
        Trial trial(root_.path(), seed, number);
        const std::string problem = trial.run();
        const std::lock_guard lock(mutex);
        counts.add(trial.counts);
        if (!problem.empty()) ADD_FAILURE() << problem;
        if (counts.draws % 25 == 0) fmt::print("{} of {} draws\n", counts.draws, end - first);
      }
    };
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 1; i < side_by_side; ++i) threads.emplace_back(work);
      work();
    }
    return counts;
  }

 private:
  static void prepare_tokens(const fs::path& directory) {
    const fs::path text = directory.string() + ".txt";
    std::ofstream file(text);
    for (int i = 0; i < 200; ++i) file << directory.filename().string() << " " << i * 7919 % 1000 << " and so on\n";
    file.close();
    PrepareOptions options;
    options.texts = {text.string()};
    options.out = directory;
    prepare(options);
  }

  testing_support::TemporaryDirectory root_;
};

void print(const Counts& counts) {
  fmt::print("{} draws ended as the undisturbed run; {} diverged, as that did\n", counts.draws, counts.diverged);
  fmt::print("{} sessions killed, more than one in {} draws; {} ended before the call\n", counts.sessions_killed,
             counts.killed_more_than_once, counts.not_reached);
  for (const auto& [stand, count] : counts.stands) fmt::print("  {} {}\n", count, kStands[static_cast<int>(stand)]);
  for (const auto& [call, count] : counts.calls) fmt::print("  {} {}\n", count, call);
  fmt::print("{} configurations contradicted themselves; {} of {} that the programme was given were refused by it\n",
             counts.refused, counts.refused_by_programme, counts.given_to_programme);
  const auto enumerated = enumerated_values();
  for (const auto& [key, counted] : counts.values) {
    if (!enumerated.contains(key)) continue;
    fmt::print("  {}:", key);
    for (const auto& [value, count] : counted) fmt::print(" {} {}", value, count);
    fmt::print("\n");
  }
}

// Otherwise most of the work would be wasted, and the runs would cover only a corner of what can be drawn.
void expect_one_in_six_to_have_run(const Counts& counts) {
  EXPECT_LE(counts.refused + counts.refused_by_programme, 5 * counts.draws);
}

TEST(DrawnConfigurations, HaveEveryKey) {
  RandomStream random(1, StreamPurpose::Test, 0);
  const DrawnConfiguration drawn = draw_configuration(random);
  const auto keys = config_keys();
  for (const std::string& key : keys) {
    EXPECT_TRUE(drawn.values.contains(key))
        << key << " is new: draw it in drawn_configuration.cpp, or say there why not";
  }
  EXPECT_EQ(drawn.values.size(), keys.size());
}

TEST_F(Draws, KilledAnywhereEndAsIfNothingHadHappened) {
  const Counts counts = run(4, 1);
  print(counts);
}

TEST_F(Draws, SlowThreeHundredKilledAnywhereEndAsIfNothingHadHappened) {
  constexpr int64_t kDraws = 300;
  const Counts counts = run(kDraws, std::max(1U, std::thread::hardware_concurrency()));
  print(counts);
  expect_one_in_six_to_have_run(counts);
  if (counts.draws < kDraws) return;
  for (const auto& [key, values] : enumerated_values()) {
    for (const std::string& value : values) EXPECT_TRUE(counts.values.at(key).contains(value)) << key << " = " << value;
  }
  for (const Stand stand : {Stand::NotThere, Stand::NoCheckpoint, Stand::Checkpoint, Stand::LastCheckpoint}) {
    EXPECT_TRUE(counts.stands.contains(stand)) << "none was killed " << kStands[static_cast<int>(stand)];
  }
}

}  // namespace
}  // namespace gyre::crash
