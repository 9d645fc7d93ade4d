#include "gyre/report/top/figures.h"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_text.h"
#include "gyre/core/wrong_file.h"
#include "gyre/report/study_directory.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

void take(const MetricsLine& line, TopMetrics& metrics, LossCurve& losses) {
  if (line.is("step")) {
    MetricsStep step;
    step.step = line.step();
    step.loss = line.real("loss").value_or(std::nan(""));
    step.lr = line.real("lr").value_or(std::nan(""));
    step.grad_norm = line.real("grad_norm").value_or(std::nan(""));
    step.tokens = line.integer("tokens");
    step.tokens_per_second = line.real("tokens_per_second").value_or(std::nan(""));
    step.seconds = line.real("seconds").value_or(std::nan(""));
    if (std::isfinite(step.loss)) losses.add({step.step, step.loss});
    metrics.last = step;
    metrics.end.reset();
  } else if (line.is("eval")) {
    metrics.val_loss = line.real("val_loss");
  } else if (line.is("segment")) {
    metrics.delays = line.reals("delays");
    metrics.peak_resident = line.reals("peak_resident_bytes");
  } else if (line.is("end")) {
    metrics.end = line.end();
  } else if (line.is("resume")) {
    metrics.end.reset();
  }
}

}  // namespace

TopReader::TopReader(std::filesystem::path run)
    : run_(std::move(run)), follower_(run_ / "metrics.jsonl", "put it right") {
  refuse_file(run_, "the run's directory", "config.toml");
  if (!is_there(run_)) throw InputError(fmt::format("{}: no run is here; give the directory of one", run_.string()));
  if (is_study(run_)) {
    throw InputError(fmt::format("{}: is a study; give the directory of one of its runs", run_.string()));
  }
  if (!is_there(run_ / "config.toml")) {
    throw InputError(fmt::format("{}: no run is here (no config.toml)", run_.string()));
  }
}

TopFigures TopReader::read(double now) {
  if (!is_there(run_ / "config.toml")) {
    throw InputError(fmt::format("{}: the run is not there any more; was it moved or removed, or has its disk gone?",
                                 run_.string()));
  }
  const auto begin = [this] {
    metrics_ = {};
    losses_ = {};
    totals_ = {};
  };
  follower_.read(begin, [this](const MetricsLine& line) {
    take(line, metrics_, losses_);
    totals_.take(line);
  });
  metrics_.totals = totals_.totals();
  TopFigures figures;
  figures.name = run_.string();
  figures.now = now;
  figures.metrics = metrics_;
  figures.metrics.losses = losses_.points();
  const auto live = run_ / "live.json";
  if (is_there(live)) {
    figures.live = parse_live_run(read_file(live), live.string());
    figures.gone = is_gone(*figures.live, now);
    figures.in_sight = is_in_sight(*figures.live);
  }
  figures.begun = figures.live || metrics_.last;
  return figures;
}

void TopReader::update(TopFigures& figures, double now) {
  try {
    figures = read(now);
  } catch (const std::exception& error) {
    figures.now = now;
    figures.problem = error.what();
  }
}

std::string to_json(const TopFigures& figures) {
  Json json = {{"run", figures.name},
               {"running", figures.running()},
               {"begun", figures.begun},
               {"now", figures.now},
               {"live", figures.live ? Json::parse(to_json(*figures.live)) : Json(nullptr)},
               {"last_step", nullptr},
               {"val_loss", json_number(figures.metrics.val_loss)},
               {"end", figures.metrics.end ? Json(figures.metrics.end->status) : Json(nullptr)}};
  if (const auto& last = figures.metrics.last) {
    json["last_step"] = {{"step", last->step},          {"loss", json_number(last->loss)},
                         {"lr", json_number(last->lr)}, {"grad_norm", json_number(last->grad_norm)},
                         {"tokens", last->tokens},      {"tokens_per_second", json_number(last->tokens_per_second)}};
  }
  return json_text(json, 2) + "\n";
}

}  // namespace gyre
