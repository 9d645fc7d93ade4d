#include "gyre/model/settings/bert_settings.h"

#include <fmt/format.h>

#include "gyre/model/settings/model_settings.h"

namespace gyre {
namespace {

constexpr int64_t kLeastBertContext = kTokensAroundSegments + 2;

std::vector<OptionFault> bert_faults(const ModelSettings& settings) {
  std::vector<OptionFault> faults;
  if (!settings.bias) faults.push_back({{"bias", "kind"}, "is false, and kind = \"bert\" has biases; leave it out"});
  if (settings.context < kLeastBertContext) {
    faults.push_back({{"context", "kind"},
                      fmt::format("is {}; kind = \"bert\" needs {} at least", settings.context, kLeastBertContext)});
  }
  return faults;
}

}  // namespace

ModelKind bert_kind() {
  return {.name = "bert",
          .meaning = "encoder that learns to fill masked tokens",
          .own = BertSettings(),
          .special_tokens = SpecialTokens::kCount,
          .tokens_around_text = kTokensAroundSegments,
          .faults = bert_faults};
}

}  // namespace gyre
