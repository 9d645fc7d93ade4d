#include "gyre/model/settings/model_kind.h"

#include <fmt/format.h>

#include "gyre/core/option_range.h"
#include "gyre/model/settings/model_settings.h"
#include "gyre/model/settings/special_tokens.h"

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

Registry<ModelKind>& model_kinds() {
  static Registry<ModelKind> kinds(
      "[model] kind",
      {
          {.name = "gpt", .meaning = "pre-norm decoder that learns the next token", .continues_text = true},
          {.name = "bert",
           .meaning = "encoder that learns to fill masked tokens",
           .own = BertSettings(),
           .special_tokens = SpecialTokens::kCount,
           .tokens_around_text = kTokensAroundSegments,
           .faults = bert_faults},
      });
  return kinds;
}

void check_model(const ModelSettings& settings) {
  check_ranges("[model]", settings);
  if (settings.vocabulary == 0) throw InputError("[model] vocabulary is 0; give that of the tokens");
  check_faults("[model]", faults_of(settings));
}

std::vector<OptionFault> faults_of(const ModelSettings& settings) {
  std::vector<OptionFault> faults;
  if (settings.width % settings.heads != 0) {
    faults.push_back(
        {{"heads", "width"},
         fmt::format("is {}, which does not divide width {}; choose heads that do", settings.heads, settings.width)});
  }
  const ModelKind& kind = model_kinds().at(settings.kind);
  if (kind.faults != nullptr) {
    for (OptionFault& fault : kind.faults(settings)) faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace gyre
