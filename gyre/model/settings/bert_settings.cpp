#include "gyre/model/settings/bert_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/model/settings/model_settings.h"

namespace gyre {
namespace {

constexpr int64_t kMinBertContext = kTokensAroundSegments + 2;

std::vector<OptionFault> bert_faults(const ModelSettings& settings) {
  std::vector<OptionFault> faults;
  if (!settings.bias) faults.push_back({{"bias", "kind"}, "is false, and kind = \"bert\" has biases; leave it out"});
  if (settings.context < kMinBertContext) {
    faults.push_back({{"context", "kind"},
                      fmt::format("is {}; kind = \"bert\" needs {} at least", settings.context, kMinBertContext)});
  }
  const auto own = settings.own.of_kind("bert").get<BertSettings>();
  const int64_t tokens[] = {own.classify_token, own.separator_token, own.mask_token};
  const auto given = std::ranges::count_if(tokens, [](int64_t token) { return token >= 0; });
  if (given != 0 && given != SpecialTokens::kCount) {
    faults.push_back({{"kind"},
                      "is \"bert\", and [model.bert] has only some of classify_token, separator_token and "
                      "mask_token; give all three, or none"});
  }
  const int64_t largest = *std::ranges::max_element(tokens);
  if (settings.vocabulary > 0 && largest >= settings.vocabulary) {
    faults.push_back({{"vocabulary", "kind"},
                      fmt::format("is {}, and [model.bert] has a special token {}; give a larger vocabulary",
                                  settings.vocabulary, largest)});
  }
  return faults;
}

int64_t bert_special_tokens(const ModelSettings& settings) {
  return settings.own.of_kind("bert").get<BertSettings>().classify_token < 0 ? SpecialTokens::kCount : 0;
}

std::vector<TokenOption> bert_token_options(ModelSettings& settings) {
  auto& own = settings.own.get<BertSettings>();
  return {{"[CLS]", &own.classify_token}, {"[SEP]", &own.separator_token}, {"[MASK]", &own.mask_token}};
}

bool bert_sums_losses(const ModelSettings& settings) {
  return settings.own.of_kind("bert").get<BertSettings>().sentence_order;
}

}  // namespace

SpecialTokens::SpecialTokens(const BertSettings& settings, int64_t vocabulary) : SpecialTokens(vocabulary - kCount) {
  if (settings.classify_token < 0) return;
  classify = settings.classify_token;
  separator = settings.separator_token;
  mask = settings.mask_token;
  text = vocabulary;
}

ModelKind bert_kind() {
  return {.name = "bert",
          .meaning = "encoder, trained to fill in masked tokens",
          .own = BertSettings(),
          .special_tokens = bert_special_tokens,
          .token_options = bert_token_options,
          .sums_losses = bert_sums_losses,
          .tokens_around_text = kTokensAroundSegments,
          .faults = bert_faults};
}

}  // namespace gyre
