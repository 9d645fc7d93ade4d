#include "gyre/model/settings/special_tokens.h"

#include <algorithm>
#include <vector>

namespace gyre {
namespace {

std::vector<TokenOption> options_of(ModelSettings& settings) {
  const ModelKind& kind = model_kinds().at(settings.kind);
  return kind.token_options == nullptr ? std::vector<TokenOption>() : kind.token_options(settings);
}

bool is_open(const TokenOption& option) {
  return *option.number < 0;
}

}  // namespace

std::map<std::string, int64_t> given_tokens(const ModelSettings& settings) {
  ModelSettings copy = settings;
  std::map<std::string, int64_t> numbers;
  for (const TokenOption& option : options_of(copy)) {
    if (!is_open(option)) numbers[option.text] = *option.number;
  }
  return numbers;
}

std::map<std::string, int64_t> used_tokens(const ModelSettings& settings) {
  ModelSettings copy = settings;
  const std::vector<TokenOption> options = options_of(copy);
  std::map<std::string, int64_t> numbers = given_tokens(settings);
  int64_t next = settings.vocabulary - static_cast<int64_t>(options.size());
  for (const TokenOption& option : options) numbers.emplace(option.text, next++);
  return numbers;
}

bool has_open_tokens(const ModelSettings& settings) {
  ModelSettings copy = settings;
  return std::ranges::any_of(options_of(copy), is_open);
}

void take_tokens(const std::map<std::string, int64_t>& numbers, ModelSettings& settings) {
  const std::vector<TokenOption> options = options_of(settings);
  const auto can_take = [&](const TokenOption& option) {
    const auto found = numbers.find(option.text);
    if (!is_open(option) || found == numbers.end()) return false;
    return settings.vocabulary == 0 || found->second < settings.vocabulary;
  };
  if (!std::ranges::all_of(options, can_take)) return;
  for (const TokenOption& option : options) *option.number = numbers.at(option.text);
}

void leave_as_begun(const ModelSettings& begun, ModelSettings& settings) {
  if (settings.vocabulary != 0) return;
  settings.vocabulary = begun.vocabulary;
  if (settings.kind == begun.kind) take_tokens(given_tokens(begun), settings);
}

}  // namespace gyre
