// Tests configurations: exact round trips, errors that say where and what to do, and that examples and reference are up
// to date.
#include "gyre/config/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "gyre/build/build.h"
#include "gyre/build/model_identity.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/optim/config.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/optim/settings/muon_settings.h"
#include "gyre/schedule/schedule_settings.h"
#include "support/source_directory.h"

namespace gyre {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kMinimal = "[data]\ntokens = \"x\"\n";

std::string complaint(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(toml, "file.toml", overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Config, ATextThatIsParsedOnceTakesEachSetOfOverridesByItself) {
  const ConfigWith config = config_with("[data]\ntokens = \"x\"\n[model]\nlayers = 6\n", "run.toml");
  EXPECT_EQ(config({"model.layers=3"}).model.layers, 3);
  EXPECT_EQ(config({}).model.layers, 6);
  EXPECT_THROW(config({"model.layers=x"}), InputError);
  EXPECT_EQ(config({"model.width=16"}).model.layers, 6);
}

TEST(Config, OptimizersDefaultsAreThoseOfTheOptimizersThemselves) {
  const OptimizerConfig adamw = optimizer_config(parse_config(kMinimal, "x", {"optimizer.kind=adamw"}));
  EXPECT_TRUE(static_cast<const AdamSettings&>(adamw) == AdamSettings());
  const OptimizerConfig rotation = optimizer_config(parse_config(kMinimal, "x", {"optimizer.kind=basis-rotation"}));
  EXPECT_EQ(rotation.beta2, 0.99);
  EXPECT_TRUE(rotation.own == OptionTable(BasisRotationSettings()));
  EXPECT_EQ(optimizer_config(parse_config(kMinimal, "x", {"optimizer.kind=nesterov-async"})).beta1, 0.99);
  EXPECT_EQ(optimizer_config(parse_config(kMinimal, "x", {"optimizer.betas=[0.8, 0.7]"})).beta2, 0.7);
}

TEST(Config, AKindOfModelHasDefaultsOfItsOwn) {
  const ModelSettings llama = parse_config(kMinimal, "x", {"model.kind=llama"}).model;
  EXPECT_EQ(llama.activation, "silu");
  EXPECT_FALSE(llama.bias);
  EXPECT_EQ(llama.layers, parse_config(kMinimal, "x", {}).model.layers);
  // What is given stays, and is refused where it does not fit.
  EXPECT_THAT(complaint(kMinimal, {"model.bias=true", "model.kind=llama"}),
              ::testing::AllOf(HasSubstr("--set model.bias=true"), HasSubstr("has no biases")));
  const ModelSettings gpt = parse_config(kMinimal, "x", {"model.kind=gpt"}).model;
  EXPECT_EQ(gpt.activation, "gelu");
  EXPECT_TRUE(gpt.bias);
}

// Another allowed value.
std::string another(const std::string& key) {
  const std::map<std::string, std::string> given = {{"optimizer.betas", "[0.8, 0.9]"},
                                                    {"optimizer.basis-rotation.refresh_lag", "2"},
                                                    {"optimizer.basis-rotation.covariance_every", "3"}};
  if (given.contains(key)) return given.at(key);
  const size_t dot = key.rfind('.');
  const nlohmann::ordered_json defaults = to_json(Config());
  const nlohmann::ordered_json& usual = defaults.at(key.substr(0, dot)).at(key.substr(dot + 1));
  for (const std::string& choice : config_choices(key)) {
    if (nlohmann::ordered_json(choice) != usual) return choice;
  }
  if (usual.is_boolean()) return usual.get<bool>() ? "false" : "true";
  if (usual.is_number_integer()) return fmt::format("{}", usual.get<int64_t>() + 1);
  return fmt::format("{}", usual.get<double>() / 2 + 0.001);
}

TEST(Config, EverySettingOfAnOptimizerReachesIt) {
  const std::vector<std::string> of_runs = {"lr",         "warmup",         "decay",      "floor",
                                            "cooldown",   "cooldown_shape", "ema_decay",  "clip",
                                            "clip_scope", "max_skipped",    "discrepancy"};
  int own_options = 0;
  for (const std::string& key : config_keys()) {
    if (key.rfind("optimizer.", 0) != 0) continue;
    const size_t dot = key.rfind('.');
    if (std::find(of_runs.begin(), of_runs.end(), key.substr(dot + 1)) != of_runs.end()) continue;
    std::vector<std::string> overrides;
    const std::string table = key.substr(0, dot);
    if (table != "optimizer") {
      overrides.push_back("optimizer.kind=" + table.substr(table.find('.') + 1));
      ++own_options;
    }
    if (key.ends_with(".sketch")) overrides.emplace_back("optimizer.basis-rotation.max_dimension=100");
    const OptimizerConfig usual = optimizer_config(parse_config(kMinimal, "x", overrides));
    overrides.push_back(key + "=" + another(key));
    EXPECT_FALSE(optimizer_config(parse_config(kMinimal, "x", overrides)) == usual) << key;
  }
  EXPECT_GE(own_options, 18);
}

TEST(Config, SingleKindsHaveTablesOfTheirOwn) {
  const std::string file =
      "[optimizer]\nkind = \"muon\"\n[optimizer.muon]\nmatrix_lr_ratio = 3\n" + std::string(kMinimal);
  EXPECT_EQ(parse_config(file, "x", {}).optimizer.own.get<MuonSettings>().matrix_lr_ratio, 3);
  EXPECT_EQ(
      parse_config(file, "x", {"optimizer.muon.matrix_lr_ratio=4"}).optimizer.own.get<MuonSettings>().matrix_lr_ratio,
      4);
  EXPECT_THAT(complaint("[optimizer]\nmatrix_lr_ratio = 3\n" + std::string(kMinimal)),
              HasSubstr("file.toml:2: unknown key 'matrix_lr_ratio' in [optimizer]; it is a key of [optimizer.muon]"));
  EXPECT_THAT(complaint("[optimizer.muon]\nlr = 3\n" + std::string(kMinimal)),
              HasSubstr("file.toml:2: unknown key 'lr' in [optimizer.muon]; it is a key of [optimizer]"));
  EXPECT_THAT(complaint("[optimizer.moun]\nlr = 3\n" + std::string(kMinimal)),
              HasSubstr("unknown table [optimizer.moun]; did you mean 'muon'?"));
  EXPECT_THAT(complaint("[run.fast]\nx = 3\n" + std::string(kMinimal)),
              HasSubstr("unknown table [run.fast]; [run] has no tables"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.moun.lr=3"}), HasSubstr("did you mean 'muon'?"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.intake=3"}), HasSubstr("unknown key 'intake' in [optimizer]"));
  EXPECT_THAT(complaint(kMinimal, {"pipeline.intake=3"}), HasSubstr("it is a key of [pipeline.amdp]"));
}

TEST(Config, NamesOfSourcesAreSuggestedOnlyWhereASourceIsMeant) {
  const std::string sources = "[[data.source]]\nname = \"web\"\ntokens = \"w\"\n";
  EXPECT_THAT(complaint(sources, {"data.source.wed.weight=3"}),
              HasSubstr("no [[data.source]] has the name 'wed'; did you mean 'web'?"));
  EXPECT_THAT(complaint(sources, {"data.sorce.web.weight=3"}),
              HasSubstr("unknown table [data.sorce.web]; [data] has no tables but [[data.source]]"));
  EXPECT_THAT(complaint("[data.sorce]\nweight = 3\n"),
              HasSubstr("unknown table [data.sorce]; [data] has no tables but [[data.source]]"));
  EXPECT_THAT(complaint(sources, {"data.weight=3"}),
              HasSubstr("unknown key 'weight' in [data]; it is a key of [[data.source]]"));
}

TEST(Config, TablesOfOtherKindsAreWrittenWhereTheySaySomething) {
  Config config = parse_config(kMinimal, "x", {});
  EXPECT_THAT(to_toml(config), HasSubstr("[optimizer.basis-rotation]\ninterval = 10\n"));
  EXPECT_THAT(to_toml(config), ::testing::Not(HasSubstr("[optimizer.muon]")));
  config.optimizer.own.get<MuonSettings>().matrix_lr_ratio = 7;
  config.pipeline.own.get<AmdpSettings>().intake = 3;
  EXPECT_THAT(to_toml(config), HasSubstr("[optimizer.muon]\nmatrix_lr_ratio = 7.0\n"));
  EXPECT_TRUE(parse_config(to_toml(config), "x", {}) == config);
}

TEST(Config, WrittenAndReadIsTheSame) {
  Config config = parse_config(kMinimal, "x", {});
  config.optimizer.lr = 0.1 / 3;
  config.optimizer.betas = {0.95, 1.0 / 3};
  config.optimizer.epsilon = 1e-12;
  config.run.drains = {3, 17};
  config.data.tokens = "a \"quoted\" \\ path\n";
  config.model.bias = false;
  config.pipeline.stall_seconds = 3;
  EXPECT_TRUE(parse_config(to_toml(config), "x", {}) == config);
  EXPECT_EQ(to_toml(parse_config(to_toml(config), "x", {})), to_toml(config));
}

TEST(Config, OverridesTakeTomlOrBareStrings) {
  const Config config = parse_config(kMinimal, "x",
                                     {"optimizer.lr=3e-4", "pipeline.schedule=gpipe", "run.drains=[3, 7]",
                                      "model.bias=false", "data.tokens=a/b", "optimizer.lr=1"});
  EXPECT_EQ(config.optimizer.lr, 1.0);
  EXPECT_EQ(config.pipeline.schedule, "gpipe");
  EXPECT_EQ(config.run.drains, (std::vector<int64_t>{3, 7}));
  EXPECT_FALSE(config.model.bias);
  EXPECT_EQ(config.data.tokens, "a/b");
}

TEST(Config, AModelIsIdentifiedByEveryOptionButDropout) {
  const Config bert = parse_config(kMinimal, "x", {"model.kind=bert"});
  const nlohmann::ordered_json saved = model_identity(bert);
  for (const std::string& key : config_keys()) {
    const bool of_bert = key.starts_with("model.bert.");
    if (!key.starts_with("model.") || key == "model.kind" || (key.find('.', 6) != std::string::npos && !of_bert))
      continue;
    const std::string other = key == "model.width" ? "264" : key == "model.heads" ? "4" : another(key);
    const std::string name = key.substr(key.rfind('.') + 1);
    Config changed = bert;
    if (key == "model.bias") {  // a BERT that is not configured so, but identified
      changed.model.bias = false;
    } else if (key.ends_with("_token")) {  // all or none
      changed = parse_config(kMinimal, "x",
                             {"model.kind=bert", "model.bert.classify_token=1", "model.bert.separator_token=2",
                              "model.bert.mask_token=3"});
    } else {
      changed = parse_config(kMinimal, "x", {"model.kind=bert", key + "=" + other});
    }
    const bool is_other = name != "dropout";
    if (is_other) {
      EXPECT_THROW(check_model_identity(saved, changed), InputError) << key;
    } else {
      EXPECT_NO_THROW(check_model_identity(saved, changed));
      continue;
    }
    // A checkpoint from before the key existed has its default.
    nlohmann::ordered_json older = saved;
    older.erase(name);
    EXPECT_NO_THROW(check_model_identity(older, bert)) << key;
    EXPECT_THROW(check_model_identity(older, changed), InputError) << key;
  }
}

TEST(Config, ErrorsSayWhereAndWhatInstead) {
  EXPECT_THAT(complaint("[model]\nwidht = 3\n"),
              HasSubstr("file.toml:2: unknown key 'widht' in [model]; did you mean 'width'?"));
  EXPECT_THAT(complaint("[modle]\nwidth = 3\n"), HasSubstr("unknown table [modle]; did you mean 'model'?"));
  EXPECT_THAT(complaint("[model]\n\nwidth = \"3\"\n"),
              HasSubstr("file.toml:3: [model] width is \"3\"; give a whole number"));
  EXPECT_THAT(complaint("[model]\nwidth = 3.5\n"), HasSubstr("give a whole number"));
  EXPECT_THAT(complaint("[optimizer]\nbetas = [0.9, \"x\"]\n"), HasSubstr("give a list of numbers"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.betas=0.9,0.95"}), HasSubstr("give a list of numbers, in brackets"));
  EXPECT_THAT(complaint("[run]\nprecision = \"fp8\"\n"), HasSubstr("give one of: fp32, bf16"));
  EXPECT_THAT(complaint("[run]\nupdates = 0\n"), HasSubstr("[run] updates is 0; give 1 to 10000000000"));
  EXPECT_THAT(complaint("[run\nupdates = 1\n"), HasSubstr("file.toml:1:"));
  EXPECT_THAT(complaint("x = 1\n"), HasSubstr("unknown table"));
  EXPECT_THAT(complaint("model = 1\n"), HasSubstr("must be a table"));
  EXPECT_THAT(complaint("[model]\nheads = 7\n" + std::string(kMinimal)), HasSubstr("does not divide width 256"));
  EXPECT_THAT(complaint("[optimizer]\nbetas = [0.9]\n" + std::string(kMinimal)), HasSubstr("give two"));
  EXPECT_THAT(complaint("[run]\nupdates = 1\n"), HasSubstr("[data] tokens is missing"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.lrr=1"}), HasSubstr("--set optimizer.lrr=1: unknown key 'lrr'"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.lr"}), HasSubstr("expected table.key=value"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.lr=fast"}), HasSubstr("--set optimizer.lr=fast"));
  EXPECT_EQ(complaint(kMinimal), "accepted");
}

TEST(Config, AKeyUnderAnotherTableIsFound) {
  EXPECT_THAT(complaint(kMinimal, {"model.lr=3"}),
              HasSubstr("unknown key 'lr' in [model]; it is a key of [optimizer]"));
  EXPECT_THAT(complaint(kMinimal, {"run.kind=gpt"}), HasSubstr("it is a key of [model] and [optimizer]"));
  EXPECT_THAT(complaint("[run]\nwidth = 3\n"),
              HasSubstr("file.toml:2: unknown key 'width' in [run]; it is a key of [model]"));
  EXPECT_THAT(complaint(kMinimal, {"lr=3"}),
              HasSubstr("expected table.key=value, such as optimizer.lr=3e-4; it is a key of [optimizer]"));
  EXPECT_THAT(complaint(kMinimal, {"nonsense=1"}), EndsWith("expected table.key=value, such as optimizer.lr=3e-4"));
}

// Absurdly large sizes are refused when they are read, before they are multiplied or narrowed.
TEST(Config, SizesAreBounded) {
  for (const char* key :
       {"model.vocabulary", "model.mlp_width", "pipeline.stages", "pipeline.replicas", "pipeline.microbatch",
        "pipeline.accumulate", "pipeline.interleaved-1f1b.chunks", "pipeline.amdp.pipelines", "pipeline.amdp.intake",
        "pipeline.threads_per_worker", "run.updates", "run.eval_every", "run.eval_batches", "run.checkpoint_every",
        "run.keep_checkpoints"}) {
    const std::string name = std::string(key).substr(std::string(key).rfind('.') + 1);
    EXPECT_THAT(complaint(kMinimal, {std::string(key) + "=1000000000000000000"}),
                HasSubstr("] " + name + " is 1000000000000000000; give "))
        << key;
    EXPECT_THAT(complaint(kMinimal, {std::string(key) + "=-1"}), HasSubstr("] " + name + " is -1; give ")) << key;
  }
  EXPECT_THAT(complaint(kMinimal, {"pipeline.accumulate=2000000000"}), HasSubstr("give 1 to 134217728"));
  EXPECT_THAT(complaint(kMinimal, {"run.keep_checkpoints=3000000000"}), HasSubstr("give 0 to 1000000"));
  EXPECT_THAT(complaint(kMinimal, {"run.drains=[5, 1000000000000000000]"}), HasSubstr("[run] drains is"));
  // Larger than any number of TOML.
  for (const char* digits : {"99999999999999999999", "-99999999999999999999"}) {
    EXPECT_THAT(complaint(kMinimal, {fmt::format("run.updates={}", digits)}),
                HasSubstr(fmt::format("[run] updates is {}; give 1 to 10000000000", digits)));
    EXPECT_THAT(complaint(kMinimal, {fmt::format("run.seed={}", digits)}),
                HasSubstr(fmt::format("[run] seed is {}; give 0 to 9223372036854775807", digits)));
  }
  EXPECT_THAT(complaint(kMinimal, {"model.dropout=1e999"}), HasSubstr("[model] dropout is 1e999; give 0 to 0.999"));
  EXPECT_THAT(complaint(kMinimal, {"pipeline.tb_over_tf=nan"}), HasSubstr("tb_over_tf is nan; give 0.001 to 1000"));
}

TEST(Config, AllFaultsAreToldAtOnceInTheOrderOfTheFile) {
  EXPECT_EQ(complaint("[run]\nupdates = 0\n[model]\nwidht = 3\nheads = \"x\"\ncontext = 0\n[optmizer]\nlr = 1\n",
                      {"optimizer.lr=fast", "run.sed=3", "optimizer.betas=[0.9]"}),
            "file.toml:2: [run] updates is 0; give 1 to 10000000000\n"
            "file.toml:4: unknown key 'widht' in [model]; did you mean 'width'?\n"
            "file.toml:5: [model] heads is \"x\"; give a whole number\n"
            "file.toml:6: [model] context is 0; give 1 to 16777216\n"
            "file.toml:7: unknown table [optmizer]; did you mean 'optimizer'?\n"
            "--set optimizer.lr=fast: [optimizer] lr is fast; give a number\n"
            "--set run.sed=3: unknown key 'sed' in [run]; did you mean 'seed'?\n"
            "--set optimizer.betas=[0.9]: [optimizer] betas has 1 numbers; give two, such as [0.9, 0.999], or none\n"
            "file.toml: [data] tokens is missing; give the directory that gyre prepare made");
}

// As where the file is no configuration but data.
TEST(Config, OfVeryManyFaultsTheFirstAreToldAndTheOthersCounted) {
  std::string text = "[model]\n";
  for (int i = 0; i < 20'000; ++i) text += fmt::format("unknown_{} = 1\n", i);
  const std::string told = complaint(text);
  EXPECT_THAT(told, StartsWith("file.toml:2: unknown key 'unknown_0' in [model]; known: "));
  EXPECT_THAT(told, HasSubstr("\nfile.toml:21: unknown key 'unknown_19' in [model]; known: "));
  EXPECT_THAT(told, EndsWith("\nand 19981 more"));  // tokens are missing too
  EXPECT_EQ(std::ranges::count(told, '\n'), 20);
}

TEST(Config, KeysThatContradictEachOtherAreToldWhereTheyStand) {
  EXPECT_EQ(complaint("[data]\ntokens = \"x\"\n[model]\nwidth = 64\nheads = 5\n"),
            "file.toml:5: [model] heads is 5, which does not divide width 64; choose heads that do");
  EXPECT_EQ(complaint("[data]\ntokens = \"x\"\n[model]\nwidth = 64\n", {"model.heads=5"}),
            "--set model.heads=5: [model] heads is 5, which does not divide width 64; choose heads that do");
  EXPECT_EQ(complaint("[data]\ntokens = \"x\"\n[model]\nwidth = \"wide\"\nheads = 7\n"),
            "file.toml:4: [model] width is \"wide\"; give a whole number")
      << "what 7 should divide is not known";
  EXPECT_THAT(complaint(kMinimal, {"optimizer.basis-rotation.refresh_lag=10"}),
              HasSubstr("give less than interval, 10"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.basis-rotation.covariance_every=11"}),
              HasSubstr("give interval, 10, or less"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.basis-rotation.sketch=11"}), HasSubstr("give max_dimension too"));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.betas=[0.9, 1]"}), HasSubstr("give less"));
}

TEST(Config, WhatATerminalCannotShowIsEscaped) {
  EXPECT_EQ(complaint("[data]\ntokens = \"a\\u0000b\"\n"),
            "file.toml:2: [data] tokens is \"a\\x00b\", which holds a NUL character; leave it out");
  EXPECT_THAT(complaint("[run]\nprecision = \"a\\nb\"\n"), HasSubstr("precision is \"a\\nb\"; give one of"));
  EXPECT_THAT(complaint("[run]\n\"a\\u001bb\" = 1\n"), HasSubstr("unknown key 'a\\x1bb'"));
  EXPECT_THAT(complaint(kMinimal, {"run.seed=1\n2"}), HasSubstr("--set run.seed=1\\n2: "));
  EXPECT_THAT(complaint(kMinimal, {"optimizer.clip=inf"}), HasSubstr("clip is inf; give a finite number"));
}

TEST(Config, TheTemplateIsEveryKeyAtItsDefault) {
  const std::string text = config_template();
  EXPECT_THAT(complaint(text), HasSubstr("[data] tokens is missing")) << "which is all that a user must give";
  EXPECT_TRUE(parse_config(text, "x", {"data.tokens=x"}) == parse_config(kMinimal, "x", {}));
  for (const std::string& key : config_keys()) {
    EXPECT_THAT(text, HasSubstr(fmt::format("\n{} = ", key.substr(key.rfind('.') + 1)))) << key;
  }
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    EXPECT_LE(end - begin, 110U) << text.substr(begin, end - begin);
  }
  EXPECT_THAT(text,
              HasSubstr("architecture of the model (one of: gpt, bert, llama; default \"gpt\")\nkind = \"gpt\"\n"));
  EXPECT_THAT(text, HasSubstr("a whole number, 1 to 100000; default 8)\nlayers = 8\n"));
}

TEST(Config, WholeNumbersServeAsNumbers) {
  EXPECT_EQ(parse_config("[optimizer]\nlr = 1\nbetas = [0, 0.5]\n" + std::string(kMinimal), "x", {}).optimizer.betas[0],
            0.0);
}

TEST(Config, ExamplesAreRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing_support::source_directory() / "examples")) {
    if (entry.path().extension() != ".toml") continue;
    if (entry.path().filename().string().rfind("study-", 0) == 0) continue;  // tests/study reads those
    EXPECT_NO_THROW(load_config(entry.path(), {})) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 4);
}

TEST(Config, EveryOptimizerCanBeNamedAndNoOther) {
  for (const std::string& name : optimizer_kinds().names()) {
    EXPECT_EQ(complaint(kMinimal, {"optimizer.kind=" + name}), "accepted");
  }
  EXPECT_THAT(complaint(kMinimal, {"optimizer.kind=adamv"}), HasSubstr("did you mean 'adamw'?"));
}

TEST(Config, TheReferenceIsInStep) {
  // Made by: gyre train --help-config > docs/configuration.md
  EXPECT_EQ(read_file(testing_support::source_directory() / "docs/configuration.md"), describe_config());
}

}  // namespace
}  // namespace gyre
