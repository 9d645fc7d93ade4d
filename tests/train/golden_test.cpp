// The bits of short runs, against those in golden.txt: what a change of structure must leave alone. Every schedule with
// every weight policy, model and precision; every optimizer under every schedule, and with every model and precision;
// every option that changes what is computed. Each run is made by `replay` and by `threads`.
// A line "NAME: ?" stands for bits that a change altered, and that were not yet written down on that machine.
// scripts/golden writes the file anew, where a change is meant to alter bits, and compares two commits on a machine
// whose bits are others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <torch/version.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/faulty_files.h"
#include "support/source_directory.h"
#include "support/temporary_directory.h"
#include "train/fixture.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::UnorderedElementsAreArray;
using Settings = std::vector<std::string>;  // "table.key=value", over those of base.toml
struct Case {
  std::string name;
  Settings set;
};

const std::vector<std::string> kSchedules = {"gpipe",   "1f1b",      "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v",
                                             "chimera", "pipedream", "pipedream-2bw",    "paci",  "amdp"};
const std::vector<std::string> kOptimizers = {"adamw",         "basis-rotation", "nesterov-async",    "pipedream-lr",
                                              "pipemare",      "prediction",     "delay-compensated", "muon",
                                              "error-feedback"};

const std::vector<std::string> kWeights = {"stash", "latest", "predict", "corrected"};
const std::vector<std::string> kModels = {"gpt", "bert", "llama"}, kPrecisions = {"fp32", "bf16"};

void as_the_kind_wants(const std::string& model, Settings& set) {
  if (model != "llama") return;
  for (const char* setting : {"activation=silu", "bias=false", "llama.key_value_heads=1"}) {
    set.push_back(std::string("model.") + setting);
  }
}

// Every schedule × weight policy × model × precision.
std::vector<Case> schedules() {
  std::vector<Case> cases;
  for (const std::string& schedule : kSchedules) {
    for (const std::string& weights : kWeights) {
      for (const std::string& model : kModels) {
        for (const std::string& precision : kPrecisions) {
          Settings set = {"pipeline.schedule=" + schedule, "pipeline.weights=" + weights, "model.kind=" + model,
                          "run.precision=" + precision};
          if (schedule == "pipedream") set.push_back("pipeline.accumulate=1");  // delays of more than one update
          if (model == "llama" && weights != "stash") continue;                 // to the runtime it is another GPT
          as_the_kind_wants(model, set);
          cases.push_back({fmt::format("{} {} {} {}", schedule, weights, model, precision), set});
        }
      }
    }
  }
  return cases;
}

// Two replicas of every schedule, and of some with other models and optimizers.
std::vector<Case> replicas() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& what, Settings set) {
    set.emplace_back("pipeline.replicas=2");
    cases.push_back({what + " of 2 replicas", set});
  };
  for (const std::string& schedule : kSchedules) {
    const std::string accumulate = schedule == "pipedream" ? "1" : "4";
    add(schedule, {"pipeline.schedule=" + schedule, "pipeline.accumulate=" + accumulate});
  }
  for (const std::string schedule : {"1f1b", "pipedream", "amdp"}) {
    add(schedule + " bert bf16 basis-rotation",
        {"pipeline.schedule=" + schedule, "pipeline.accumulate=4", "model.kind=bert", "run.precision=bf16",
         "optimizer.kind=basis-rotation"});
  }
  return cases;
}

// Every optimizer × schedule, with the weight policy that suits both, and × model × precision, under one of them.
std::vector<Case> optimizers() {
  std::vector<Case> cases;
  for (const std::string& optimizer : kOptimizers) {
    for (const std::string& schedule : kSchedules) {
      Settings set = {"optimizer.kind=" + optimizer, "pipeline.schedule=" + schedule};
      if (schedule == "pipedream") set.push_back("pipeline.accumulate=1");
      cases.push_back({fmt::format("{} {}", optimizer, schedule), set});
    }
    for (const std::string& model : kModels) {
      for (const std::string& precision : kPrecisions) {
        if (model == "gpt" && precision == "fp32") continue;  // as above
        Settings set = {"optimizer.kind=" + optimizer, "model.kind=" + model, "run.precision=" + precision};
        as_the_kind_wants(model, set);
        cases.push_back({fmt::format("{} {} {}", optimizer, model, precision), set});
      }
    }
  }
  return cases;
}

// Options of models, pipelines and optimizers, one or a few at a time.
std::vector<Case> options() {
  std::vector<Case> cases;
  const auto add = [&](const Settings& set) {
    std::string name;
    for (const std::string& setting : set) {
      name += fmt::format("{}{}", name.empty() ? "" : " ", setting.substr(setting.rfind('.', setting.find('=')) + 1));
    }
    cases.push_back({name, set});
  };
  for (const std::string model : {"gpt", "bert"}) {
    const std::string kind = "model.kind=" + model;
    add({kind, "model.dropout=0.2"});
    add({kind, "model.dropout=0.2", "pipeline.recompute=true"});
    add({kind, "model.dropout=0.2", "pipeline.recompute=true", "pipeline.weights=latest"});
    add({kind, "model.activation=gelu-tanh"});
    add({kind, "model.activation=relu", "run.precision=bf16"});
    add({kind, "model.mlp_width=24"});
    add({kind, "pipeline.schedule=1f1b", "optimizer.clip=0.1"});
    add({kind, "optimizer.clip=0.1"});
  }
  add({"model.bias=false"});
  add({"model.kind=bert", "model.bert.norm=pre"});
  add({"model.kind=bert", "model.bert.sentence_order=true"});
  add({"pipeline.schedule=amdp", "pipeline.accumulate=16", "pipeline.stages=4", "pipeline.amdp.pipelines=2"});
  add({"pipeline.schedule=amdp", "pipeline.accumulate=16", "pipeline.stages=4", "pipeline.amdp.intake=3"});
  add({"pipeline.schedule=interleaved-1f1b", "pipeline.stages=6", "pipeline.interleaved-1f1b.chunks=3"});
  add({"pipeline.stages=1"});
  add({"pipeline.stages=8"});
  add({"pipeline.microbatch=1", "pipeline.accumulate=3"});
  add({"optimizer.decay=linear", "optimizer.floor=0", "optimizer.weight_decay=0.1", "optimizer.betas=[0.8, 0.9]"});
  add({"optimizer.kind=adamw", "optimizer.delay_warmup=4"});

  const auto rotation = [&](Settings set) {
    set.insert(set.begin(), "optimizer.kind=basis-rotation");
    add(set);
  };
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.products=fp32"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.source=first"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.geometry=unilateral"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.refresh=stage-aware"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.refresh=adaptive",
            "optimizer.basis-rotation.drift=0.01"});
  rotation({"optimizer.basis-rotation.interval=3", "optimizer.basis-rotation.refresh_lag=2"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.covariance_beta=0.9",
            "optimizer.basis-rotation.covariance_every=2"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.long_sides=whole"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.max_dimension=20",
            "optimizer.basis-rotation.sketch=8"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.max_dimension=20"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.transport=true"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.basis-rotation.look_ahead=0.7"});
  rotation({"optimizer.basis-rotation.interval=2", "optimizer.delay_warmup=4"});
  // Wide enough for products in bf16.
  const Settings wide = {"model.width=256", "model.layers=2", "pipeline.stages=2",
                         "optimizer.basis-rotation.interval=2", "run.precision=bf16"};
  for (const std::string products : {"products", "covariance_products", "iteration_products"}) {
    Settings set = wide;
    for (const std::string other : {"products", "covariance_products", "iteration_products"}) {
      set.push_back(fmt::format("optimizer.basis-rotation.{}={}", other, other == products ? "bf16" : "fp32"));
    }
    rotation(set);
  }
  for (const std::string kind : {"adamw", "muon"}) {
    Settings set = wide;
    set.push_back("optimizer.kind=" + kind);
    add(set);
  }
  return cases;
}

// What bits depend on besides the code.
std::string machine() {
  std::ifstream file("/proc/cpuinfo");
  std::map<std::string, std::string> first;  // of the first processor
  for (std::string line; std::getline(file, line) && !line.empty();) {
    std::smatch match;
    if (std::regex_match(line, match, std::regex("([^\\t:]*)\\s*: (.*)"))) first[match[1]] = match[2];
  }
  std::string text = fmt::format("libtorch {}, compiler {}; {} family {} model {}", TORCH_VERSION, __VERSION__,
                                 first["vendor_id"], first["cpu family"], first["model"]);
  std::istringstream flags(first["flags"]);
  for (std::string flag; flags >> flag;) {
    if (flag == "avx2" || flag == "avx512f" || flag == "avx512_bf16" || flag == "amx_bf16") text += " " + flag;
  }
  return text;
}

class Golden : public testing_support::Runs {
 protected:
  static void SetUpTestSuite() {
    root_ = std::make_unique<testing_support::TemporaryDirectory>();
    std::ofstream text(root() / "text");
    for (int i = 0; i < 400; ++i)
      text << i << " ships sailed past " << i * i % 97 << " rocks and " << i * 31 % 53 << ".\n";
    text.close();
    PrepareOptions options;
    options.texts = {(root() / "text").string()};
    options.out = root() / "tokens";
    options.tokenizer = "byte";
    prepare(options);
    std::ofstream(root() / "run.toml") << "[model]\nlayers = 6\nwidth = 16\nheads = 2\ncontext = 16\n"
                                       << "[data]\ntokens = \"" << (root() / "tokens").string() << "\"\n"
                                       << "[pipeline]\nstages = 4\nmicrobatch = 2\naccumulate = 8\n"
                                       << "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\nbetas = [0.9, 0.99]\nwarmup = 2\n"
                                       << "[run]\nupdates = 8\nprecision = \"fp32\"\neval_every = 5\neval_batches = 2\n"
                                       << "checkpoint_minutes = 0\n";
  }

  // "NAME: losses of updates / validation losses / checksum of weights", losses to the bit.
  std::string bits(const Case& one, const std::string& executor) {
    fs::remove_all(path("run"));
    Settings set = one.set;
    set.push_back("pipeline.executor=" + executor);
    FaultyFiles unsynced;  // no fault, and no waiting for the disk
    run("run", {.set = set, .files = &unsynced});
    std::string text = one.name + ":";
    for (const auto& step : lines("run", "step")) text += fmt::format(" {:a}", step["loss"].get<double>());
    for (const auto& eval : lines("run", "eval")) text += fmt::format(" / {:a}", eval["val_loss"].get<double>());
    return text + " / " + file_checksum(path("run") / "checkpoints" / "step-00000008" / "model.safetensors");
  }

  // Compares with golden.txt, or adds to the file that GYRE_GOLDEN_WRITE names.
  void check(const std::vector<Case>& cases) {
    const std::string here = "# " + machine();
    const char* write = std::getenv("GYRE_GOLDEN_WRITE");
    const fs::path golden = testing_support::source_directory() / "tests/train/golden.txt";
    std::set<std::string> known;
    std::ifstream file(golden);
    for (std::string line; std::getline(file, line);) known.insert(line);
    if (write == nullptr && known.count(here) == 0) {
      GTEST_SKIP() << golden << " is of another machine; this is " << here;
    }
    std::ofstream out;
    if (write != nullptr) {
      const bool begins = !fs::exists(write);
      out.open(write, std::ios::app);
      if (begins) out << here << "\n";
    }
    for (const Case& one : cases) {
      const std::string replay = bits(one, "replay");
      EXPECT_EQ(replay, bits(one, "threads"));
      out << replay << "\n";
      const bool is_unknown = known.count(one.name + ": ?") == 1;
      EXPECT_TRUE(write != nullptr || is_unknown || known.count(replay) == 1)
          << "other bits than in golden.txt: " << replay;
    }
  }
};

// A kind that is added has its bits here from then on.
TEST(GoldenCases, NameEveryRegisteredKind) {
  EXPECT_THAT(kSchedules, UnorderedElementsAreArray(schedule_names()));
  EXPECT_THAT(kOptimizers, UnorderedElementsAreArray(optimizer_kinds().names()));
  EXPECT_THAT(kModels, UnorderedElementsAreArray(model_kinds().names()));
  std::vector<std::string> choices = kWeights;
  choices.emplace_back("auto");
  EXPECT_THAT(choices, UnorderedElementsAreArray(weight_choices()));
}

TEST_F(Golden, SchedulesHaveTheirBits) {
  check(schedules());
}
TEST_F(Golden, ReplicasHaveTheirBits) {
  check(replicas());
}
TEST_F(Golden, OptimizersHaveTheirBits) {
  check(optimizers());
}
TEST_F(Golden, OptionsHaveTheirBits) {
  check(options());
}

}  // namespace
}  // namespace gyre
