#include "gyre/model/settings/model_kind.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/option_range.h"
#include "gyre/model/settings/bert_settings.h"
#include "gyre/model/settings/llama_settings.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

Registry<ModelKind>& model_kinds() {
  static Registry<ModelKind> kinds(
      "[model] kind",
      {
          {.name = "gpt", .meaning = "pre-norm decoder, trained to predict the next token", .continues_text = true},
          bert_kind(),
          llama_kind(),
      });
  return kinds;
}

void check_model(const ModelSettings& settings) {
  check_ranges("[model]", settings);
  check_ranges(fmt::format("[model.{}]", settings.kind), settings.own.of_kind(settings.kind));
  if (settings.vocabulary == 0) throw InputError("[model] vocabulary is 0; give the size of the tokens' vocabulary");
  check_faults("[model]", faults_of(settings));
}

std::vector<OptionFault> faults_of(const ModelSettings& settings) {
  std::vector<OptionFault> faults;
  const ModelKind& kind = model_kinds().at(settings.kind);
  if (!kind.sizes_heads && settings.width % settings.heads != 0) {
    faults.push_back(
        {{"heads", "width"},
         fmt::format("is {}, which does not divide width {}; choose heads that do", settings.heads, settings.width)});
  }
  if (kind.faults != nullptr) {
    for (OptionFault& fault : kind.faults(settings)) faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace gyre
