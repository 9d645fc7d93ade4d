// Runs of several processes whose hosts have run directories of their own: parts of a checkpoint lie in each, rank 0's
// manifest says where, and whatever goes wrong on any host leaves checkpoints whole or not there.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "gyre/core/host_name.h"
#include "gyre/inspect/trained_model.h"
#include "support/faulty_files.h"
#include "support/forwarding_files.h"
#include "train/ranked_fixture.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::RankedRuns;
namespace fs = std::filesystem;

class OwnDirectories : public RankedRuns {
 protected:
  static Session own(std::vector<std::string> set, bool resume = false) {
    set.emplace_back("run.shared_directory=false");
    return {.set = std::move(set), .resume = resume};
  }
  // Rank 0 in the run's directory, one process more in each of the others.
  static std::vector<Place> in(const std::vector<std::string>& others) {
    std::vector<Place> places(1);
    for (const std::string& other : others) places.push_back({.out = other.empty() ? fs::path() : path(other)});
    return places;
  }
  // What lies in one directory of the checkpoint of `step`, beside what lies in another.
  static void bring(const std::string& from, const std::string& to, const std::string& step) {
    fs::create_directories(saved(to, step));
    fs::copy(saved(from, step), saved(to, step), fs::copy_options::recursive | fs::copy_options::skip_existing);
  }
  // Checkpoints of a run, with what lies elsewhere, in a place of their own.
  static void gather(const std::string& name, const std::vector<std::string>& others, const std::string& to) {
    fs::remove_all(path(to));
    fs::create_directories(path(to) / "checkpoints");
    for (const int64_t step : list_checkpoints(path(name) / "checkpoints")) {
      const std::string number = fmt::format("{:02}", step);
      bring(name, to, number);
      for (const std::string& other : others) {
        if (fs::exists(saved(other, number))) bring(other, to, number);
      }
    }
  }
  std::string gathered(const std::string& name, const std::vector<std::string>& others) const {
    gather(name, others, "gathered");
    return contents("gathered");
  }
  static std::vector<int64_t> steps_in(const std::string& name) { return list_checkpoints(path(name) / "checkpoints"); }
  static std::set<std::string> names_in(const fs::path& directory) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
    return names;
  }
  static void expect_refused(const std::vector<End>& ends, const std::vector<std::string>& words) {
    for (const End& end : ends) EXPECT_EQ(end.code, 2) << end.error;
    EXPECT_THAT(ends[0].error, Not(HasSubstr("\n")));
    for (const std::string& some : words) EXPECT_THAT(ends[0].error, HasSubstr(some));
  }
};

TEST_F(OwnDirectories, HoldOneRunToTheBitsOfASharedOne) {
  run("whole", {.set = {"run.keep_checkpoints=2"}});
  for (const std::string background : {"false", "true"}) {
    for (const char* name : {"own", "own-b", "own-c"}) fs::remove_all(path(name));
    const auto set = own({"run.keep_checkpoints=2", "run.checkpoint_background=" + background});
    expect_sound(run_ranks("own", set, in({"own-b", "own-c"})));
    EXPECT_EQ(gathered("own", {"own-b", "own-c"}), contents("whole"));
    EXPECT_EQ(record("own"), record("whole"));
    for (const char* name : {"own", "own-b", "own-c"}) EXPECT_THAT(steps_in(name), ElementsAre(8, 12)) << name;
    EXPECT_EQ(names_in(saved("own-b", "12")),
              (std::set<std::string>{"model-00002-of-00003.safetensors", "optimizer-00002-of-00003.safetensors"}));
    EXPECT_EQ(names_in(path("own-b")), (std::set<std::string>{".lock", "checkpoints", "config.toml", "tokenizer"}));
    EXPECT_THAT(messages(), HasSubstr(fmt::format("directories rank 0 {} on {}, rank 1 {} on {}, rank 2 {} on {}\n",
                                                  path("own").string(), host_name(), path("own-b").string(),
                                                  host_name(), path("own-c").string(), host_name())));
  }
}

// Rank 0 has written its part, and its disk is not the one to look at.
TEST_F(OwnDirectories, ADiskOfAnotherHostThatDoesNotAnswerIsNamed) {
  // Holds a file of a checkpoint until rank 0 has told that the save takes long.
  class Holds final : public ForwardingFiles {
   public:
    int open(const Path& file, int flags, mode_t mode) override {
      if (file.filename() == "model-00002-of-00002.safetensors") {
        while (read_file(path("log")).find("takes longer than") == std::string::npos) std::this_thread::yield();
      }
      return ForwardingFiles::open(file, flags, mode);
    }
  } files;
  auto places = in({"slow-b"});
  places[1].files = &files;
  expect_sound(run_ranks("slow", own({"run.updates=4", "pipeline.stall_seconds=1"}), places));
  EXPECT_THAT(messages(), AllOf(HasSubstr("saving step 4 takes longer than 1 s (stall_seconds); waiting for rank 1 ("),
                                HasSubstr(fmt::format(" on {}), which writes to {}; does its disk answer?", host_name(),
                                                      (path("slow-b") / "checkpoints").string()))));
}

TEST_F(OwnDirectories, OfOneHostAreOne) {
  run("alone");
  expect_sound(run_ranks("crowd", own({}), in({"crowd-b", "crowd-b"})));
  EXPECT_EQ(gathered("crowd", {"crowd-b"}), contents("alone"));
  EXPECT_EQ(names_in(saved("crowd-b", "12")).size(), 4u);
  // Two names of one directory are one, and nothing lies elsewhere.
  fs::create_directories(path("seen"));
  fs::create_symlink(path("seen"), path("seen-too"));
  expect_sound(run_ranks("seen", own({}), in({"seen-too", "seen-too"})));
  EXPECT_EQ(contents("seen"), contents("alone"));
  EXPECT_FALSE(fs::exists(path("seen") / "checkpoints" / ".hosts"));
  EXPECT_THAT(read_file(saved("seen", "12") / "manifest.json"), HasSubstr("\"version\":2,"));
}

TEST_F(OwnDirectories, AreResumedAndClearedOfWhatBelongsToNothing) {
  const auto with = [](const std::string& updates) {
    return own({"optimizer.decay=constant", "run.eval_every=0", "run.updates=" + updates});
  };
  const auto again = [&](const std::string& updates) {
    Session session = with(updates);
    session.resume = true;
    return session;
  };
  run("straight", with("12"));
  const auto places = in({"resumed-b"});
  expect_sound(run_ranks("resumed", with("4"), places));
  expect_sound(run_ranks("resumed", again("8"), places));
  // What a save leaves that ended between the names of its parts and the manifest, and one in the middle of a part.
  fs::create_directories(saved("resumed-b", "12"));
  std::ofstream(saved("resumed-b", "12") / "model-00002-of-00002.safetensors") << "stale";
  fs::create_directories(path("resumed-b") / "checkpoints" / ".tmp-step-00000012-0123");
  expect_sound(run_ranks("resumed", again("9"), places));
  EXPECT_THAT(steps_in("resumed-b"), ElementsAre(4, 8, 9));
  EXPECT_EQ(names_in(path("resumed-b") / "checkpoints").count(".tmp-step-00000012-0123"), 0u);
  // Damage on the other host: both go back, and set it aside.
  flip(saved("resumed-b", "09") / "model-00002-of-00002.safetensors");
  expect_sound(run_ranks("resumed", again("12"), places));
  EXPECT_THAT(messages(), AllOf(HasSubstr("rank 1 (process "), HasSubstr("step 9 is set aside as damaged")));
  for (const char* name : {"resumed", "resumed-b"}) {
    EXPECT_THAT(steps_in(name), ElementsAre(4, 8, 12)) << name;
    EXPECT_TRUE(fs::exists(path(name) / "checkpoints" / "damaged-step-00000009")) << name;
  }
  EXPECT_EQ(record("resumed"), record("straight"));
  EXPECT_EQ(gathered("resumed", {"resumed-b"}), contents("straight"));
  // A run with nothing left to do is complete although rank 0 lacks some files.
  const auto before = files("resumed-b");
  for (const End& end : run_ranks("resumed", again("12"), places)) EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_THAT(messages(), HasSubstr("is at step 12 of 12 already; nothing to do"));
  EXPECT_EQ(files("resumed-b"), before);
}

TEST_F(OwnDirectories, AFileOnAnotherHostIsNamedWithItsPlaceAndMayBeBrought) {
  const std::string constant = "optimizer.decay=constant";
  run("entire", {.set = {constant}});
  expect_sound(run_ranks("far", own({"run.updates=4", constant}), in({"far-b"})));
  const std::string where = fmt::format("are not here; {} has them in {}: copy them into {} here", host_name(),
                                        saved("far-b", "04").string(), saved("far", "04").string());
  const std::string both = "model-00002-of-00002.safetensors, optimizer-00002-of-00002.safetensors ";
  EXPECT_THAT(complaint("far", {.set = {"run.updates=8"}, .resume = true}), HasSubstr(both + where));
  EXPECT_THAT(check_of("far", {.set = {"run.updates=8"}, .resume = true}), HasSubstr(both + where));
  const auto complaint_of = [&](Work work) -> std::string {
    try {
      open_trained_model(path("far"), work);
    } catch (const InputError& error) {
      return error.what();
    }
    return "opened";
  };
  EXPECT_THAT(complaint_of(Work::Diagnose), HasSubstr(both + where));
  EXPECT_THAT(complaint_of(Work::Evaluate),
              HasSubstr(fmt::format("{}/model-00002-of-00002.safetensors: is not here; {} has it in {}",
                                    saved("far", "04").string(), host_name(), saved("far-b", "04").string())));
  // Other hosts, or more: the process that lacks something says where it is.
  expect_refused(run_ranks("far", own({"run.updates=8", constant}, true), in({"far-b", "far-c"})),
                 {"rank 2 (process ", both, saved("far-b", "04").string(),
                  fmt::format("copy them into {} here", saved("far-c", "04").string())});
  EXPECT_FALSE(fs::exists(path("far-c")));

  fs::copy(path("far"), path("near"), fs::copy_options::recursive);
  bring("far-b", "near", "04");
  resume("near", {"run.updates=12"});
  EXPECT_EQ(contents("near"), contents("entire"));

  const fs::path brought = saved("far-c", "04");
  bring("far", "far-c", "04");
  fs::remove(brought / "manifest.json");
  fs::remove(brought / "model.safetensors.index.json");
  bring("far-b", "far-c", "04");
  // One that was not brought whole.
  const std::string file = "model-00002-of-00002.safetensors";
  std::ofstream(brought / file) << "the beginning";
  expect_refused(run_ranks("far", own({"run.updates=8", constant}, true), in({"far-b", "far-c"})),
                 {"rank 2 (process ", (brought / file).string() + ": its size differs", "copy it from there again"});
  fs::remove(brought / file);
  bring("far-b", "far-c", "04");
  expect_sound(run_ranks("far", own({"run.updates=8", constant}, true), in({"far-b", "far-c"})));
  expect_sound(run_ranks("far", own({"run.updates=12", constant}, true), in({"far-b", "far-c"})));
  EXPECT_EQ(gathered("far", {"far-b", "far-c"}), contents("entire"));

  gather("far", {"far-b", "far-c"}, "gathered");
  for (const char* of_run : {"config.toml", "metrics.jsonl"}) fs::copy(path("far") / of_run, path("gathered"));
  fs::copy(path("far") / "tokenizer", path("gathered") / "tokenizer");
  EXPECT_EQ(open_trained_model(path("gathered"), Work::Diagnose).checkpoint.weights.size(),
            checkpoint("entire").weights.size());
}

TEST_F(OwnDirectories, OfAnotherRunAreRefusedAndStayAsTheyAre) {
  expect_sound(run_ranks("one", own({"run.updates=4"}), in({"one-b"})));
  expect_sound(run_ranks("two", own({"run.updates=4"}), in({"two-b"})));
  const auto of_parts = files("one-b"), of_run = files("one");
  // Rank 0 where parts are, and parts where a run is.
  expect_refused(run_ranks("one-b", own({"run.updates=8"}, true), in({"one"})),
                 {"one-b: has only parts of checkpoints; the run's own directory is " + path("one").string()});
  expect_refused(run_ranks("three", own({"run.updates=8"}, true), in({"one"})),
                 {"rank 1 (process ", "one: is a run's own directory"});
  EXPECT_THAT(complaint("one-b", {.resume = true}), HasSubstr("has only parts of checkpoints"));
  // Parts of another run, and of one when another begins.
  expect_refused(run_ranks("two", own({"run.updates=8"}, true), in({"one-b"})),
                 {"rank 1 (process ", "one-b: has parts of another run, whose directory is " + path("one").string()});
  expect_refused(run_ranks("three", own({"run.updates=8"}), in({"one-b"})), {"one-b: has parts of another run"});
  fs::remove(path("two-b") / "checkpoints" / ".hosts");
  expect_refused(run_ranks("three", own({"run.updates=8"}), in({"two-b"})), {"two-b: a run is here already"});
  EXPECT_FALSE(fs::exists(path("three")));
  for (auto [name, before] : {std::pair("one-b", of_parts), std::pair("one", of_run)}) {
    auto after = files(name);
    EXPECT_EQ(after.size(), before.size());
    for (const auto& [file, was] : before) {
      EXPECT_TRUE(fs::path(file).filename() == ".lock" || after.at(file) == was) << file;
    }
  }
}

// The manifest could not tell where a file is. Here one path is two directories because of a link.
TEST_F(OwnDirectories, OfTheSamePathOnHostsOfTheSameNameAreRefused) {
  fs::create_directories(path("elsewhere") / "inside");
  fs::create_directory_symlink(path("elsewhere") / "inside", path("link"));
  expect_refused(run_ranks("same", own({"run.updates=4"}), in({"link/../same"})),
                 {"rank 1 (process ", path("same").string() + ": is another directory than rank 0's",
                  "give each host a name of its own, or this one another --out"});
  EXPECT_FALSE(fs::exists(path("same") / "config.toml"));
  EXPECT_FALSE(fs::exists(path("elsewhere") / "same" / "config.toml"));
}

// Parts in two directories cannot change places at one moment with others of their step.
TEST_F(OwnDirectories, AStepThatIsSavedIsNotSavedAgain) {
  expect_sound(run_ranks("still", own({"run.updates=4"}), in({"still-b"})));
  const auto before = files("still-b");
  std::stop_source stop;
  Session session = own({"run.updates=8"}, true);
  session.stop = stop.get_token();
  session.on_begun = [&] { stop.request_stop(); };
  run_ranks("still", session, in({"still-b"}));
  const auto after = files("still-b");
  for (const auto& [file, was] : before) {
    EXPECT_TRUE(file.find("step-") == std::string::npos || after.at(file) == was) << file;
  }
  expect_sound(run_ranks("still", own({"run.updates=8"}, true), in({"still-b"})));
}

// A disk with one amount of room at first and another later. It notes which checkpoints exist when that of step 12 gets
// its name.
class SmallDisk final : public ForwardingFiles {
 public:
  SmallDisk(int64_t room, int64_t later) : room_(room), later_(later) {}
  int64_t free_bytes(const Path&) override { return std::exchange(room_, later_); }
  int rename(const Path& from, const Path& to) override {
    if (to.filename() == "step-00000012") found_ = list_checkpoints(to.parent_path());
    return ForwardingFiles::rename(from, to);
  }
  const std::vector<int64_t>& found() const { return found_; }

 private:
  int64_t room_, later_;
  std::vector<int64_t> found_;
};

TEST_F(OwnDirectories, HaveRoomOrAreRefusedAndMakeRoomTogether) {
  const auto places = [](SmallDisk& disk) { return std::vector<Place>{{}, {.files = &disk, .out = path("small-b")}}; };
  const Session session = own({"run.keep_checkpoints=2"});
  SmallDisk none(1000, 1000);
  const auto ends = run_ranks("small", session, places(none));
  EXPECT_EQ(ends[0].code, 4);
  EXPECT_THAT(ends[0].error, AllOf(HasSubstr("rank 1 (process "), HasSubstr("small-b/checkpoints: a checkpoint needs"),
                                   HasSubstr("free there; free ")));
  EXPECT_FALSE(fs::exists(path("small-b")));
  const int64_t plenty = int64_t{1} << 30;
  SmallDisk enough(plenty, plenty), filled(plenty, 1000);
  expect_sound(run_ranks("small", session, places(enough)));
  EXPECT_THAT(enough.found(), ElementsAre(4, 8));
  for (const char* name : {"small", "small-b"}) fs::remove_all(path(name));
  expect_sound(run_ranks("small", session, places(filled)));
  EXPECT_THAT(filled.found(), ElementsAre(8));
  EXPECT_THAT(steps_in("small"), ElementsAre(8, 12));
}

// One call of one host fails, for every n-th of its calls; then the run is continued.
class OwnDirectoryFaults : public OwnDirectories {
 protected:
  void walk(int64_t every_of_first, int64_t every_of_second) {
    const Session session = own({"run.updates=6", "run.checkpoint_every=2", "run.eval_every=0",
                                 "run.keep_checkpoints=2", "run.checkpoint_background=true"});
    run("undisturbed", {.set = session.set});
    const std::string expected = contents("undisturbed"), steps = record("undisturbed");
    int64_t walked = 0;
    for (const size_t struck : {0, 1}) {
      const int64_t every = struck == 0 ? every_of_first : every_of_second;
      for (const Fault fault : kAllFaults) {
        for (int64_t at = static_cast<int64_t>(fault) % every;; at += every, ++walked) {
          for (const char* name : {"struck", "struck-b"}) fs::remove_all(path(name));
          FaultyFiles faulty(at, fault);
          FaultyFiles sound;
          std::vector<Place> places = {{.files = &sound}, {.files = &sound, .out = path("struck-b")}};
          places[struck].files = &faulty;
          const auto ends = run_ranks("struck", session, places);
          SCOPED_TRACE(fmt::format("rank {}: {} at call {}: {}", struck, to_string(fault), at, ends[0].error));
          if (!faulty.struck()) {
            expect_sound(ends);
            break;
          }
          gather("struck", {"struck-b"}, "gathered");
          for (const int64_t step : steps_in("gathered")) {
            ASSERT_NO_THROW(load_checkpoint(path("gathered") / "checkpoints", step));
          }
          Session again = session;
          again.resume = true;
          const auto continued = run_ranks("struck", again, in({"struck-b"}));
          ASSERT_EQ(continued[0].code, 0) << continued[0].error;
          ASSERT_EQ(gathered("struck", {"struck-b"}), expected);
          ASSERT_EQ(record("struck"), steps);
          // What was not removed goes when a session begins, if one does.
          if (ends[0].code != 0) {
            ASSERT_EQ(steps_in("struck-b"), steps_in("struck"));
          }
        }
      }
    }
    std::printf("%lld faults\n", static_cast<long long>(walked));
  }
};

TEST_F(OwnDirectoryFaults, OfAnyHostLoseNothing) {
  walk(25, 10);
}

TEST_F(OwnDirectoryFaults, SlowOfAnyHostAtAnyCallLoseNothing) {
  walk(1, 1);
}

// Its beats go on, so that it is neither silent nor stalled.
TEST_F(OwnDirectories, AProcessWhoseDiskDoesNotAnswerIsNamed) {
  class Hanging final : public ForwardingFiles {
   public:
    int lock(int descriptor) override {
      const auto is_told = [] { return read_file(path("log")).find("takes longer") != std::string::npos; };
      while (!is_told() && std::chrono::steady_clock::now() < deadline_) std::this_thread::yield();
      return ForwardingFiles::lock(descriptor);
    }

   private:
    const std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  } disk;
  auto places = in({"hangs-b"});
  places[1].files = &disk;
  expect_sound(run_ranks("hangs", own({"pipeline.stall_seconds=2", "run.updates=1"}), places));
  EXPECT_THAT(messages(), AllOf(HasSubstr("rank 1 (process "),
                                HasSubstr("takes longer than 2 s (stall_seconds) to prepare its run directory")));
}

}  // namespace
}  // namespace gyre
