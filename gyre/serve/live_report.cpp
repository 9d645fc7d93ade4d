#include "gyre/serve/live_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_text.h"

namespace gyre {
namespace {

constexpr std::chrono::seconds kMinPause{1};
constexpr int kRestPerWork = 20;

}  // namespace

LiveReport::LiveReport(std::vector<std::filesystem::path> what, Clock clock)
    : clock_(std::move(clock)), data_(std::move(what)) {
  page_ = data_.read();
  summary_ = page_->summary;
  notes_ = page_->notes;
}

void LiveReport::read() {
  std::shared_ptr<const ReportData::Page> page = page_;
  std::string problem;
  try {
    page = data_.read();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (texts_ && page == page_ && problem == problem_) return;
  LiveTexts texts;
  if (texts_ && page == page_) {
    texts = *texts_;
  } else if (page) {
    texts.timelines = json_text(page->timelines);
    texts.timelines_tag = text_checksum(texts.timelines);
  }
  nlohmann::ordered_json json = page ? page->json : nlohmann::ordered_json::object();
  json["timelines_tag"] = texts.timelines_tag;
  if (!problem.empty()) json["problem"] = problem;
  texts.data = json_text(json);
  texts.data_tag = text_checksum(texts.data);
  page_ = std::move(page);
  problem_ = std::move(problem);
  texts_ = std::make_shared<const LiveTexts>(std::move(texts));
}

std::shared_ptr<const LiveTexts> LiveReport::now() {
  const std::lock_guard lock(mutex_);
  const auto begin = clock_();
  if (texts_ && begin < next_) return texts_;
  read();
  const auto end = clock_();
  next_ = end + std::max<std::chrono::steady_clock::duration>(kMinPause, kRestPerWork * (end - begin));
  return texts_;
}

}  // namespace gyre
