#include "gyre/exchange/exported_weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <set>

#include "gyre/build/model_identity.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/stopped.h"
#include "gyre/core/text.h"
#include "gyre/exchange/hugging_face/provenance.h"
#include "gyre/train/chosen_checkpoint.h"

namespace gyre {
namespace {

constexpr ExportType kTypes[] = {{"fp32", "F32", "float32", at::kFloat},
                                 {"bf16", "BF16", "bfloat16", at::kBFloat16},
                                 {"fp16", "F16", "float16", at::kHalf}};
constexpr const char* kAuto = "auto";

const ExportType& type_called(const std::string& name, const char* ExportType::*field) {
  for (const ExportType& type : kTypes) {
    if (name == type.*field) return type;
  }
  throw InputError(fmt::format("the type {} of a tensor is unknown; give --dtype", printable(name)));
}

}  // namespace

std::vector<std::string> export_dtypes() {
  std::vector<std::string> names = {kAuto};
  for (const ExportType& type : kTypes) names.emplace_back(type.name);
  return names;
}

ExportTypes::ExportTypes(const std::string& asked, const RunDirectory& run, int64_t step)
    : default_(asked == kAuto ? &kTypes[0] : &type_called(asked, &ExportType::name)) {
  const std::filesystem::path path = run.hugging_face() / kProvenanceFile;
  if (asked != kAuto || step != 0 || !is_there(path)) return;
  try {
    for (const auto& [name, type] : parse_provenance(read_file(path)).dtypes) {
      types_[name] = &type_called(type, &ExportType::in_file);
    }
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

const ExportType& ExportTypes::of(const std::string& theirs) const {
  const auto found = types_.find(theirs);
  if (found != types_.end()) return *found->second;
  return types_.empty() ? *default_ : common();
}

const ExportType& ExportTypes::common() const {
  std::set<const ExportType*> seen;
  for (const auto& [name, type] : types_) seen.insert(type);
  return seen.size() == 1 ? **seen.begin() : *default_;
}

at::Tensor in_type(const at::Tensor& values, const ExportType& type, const std::string& name) {
  const at::Tensor written = values.to(type.type);
  if (type.type == at::kFloat) return written;
  const at::Tensor lost = values.isfinite().logical_and_(written.isfinite().logical_not_());
  if (!lost.any().item<bool>()) return written;
  throw InputError(fmt::format("'{}' has {:g}, beyond {}; give --dtype {}", name,
                               values.masked_select(lost)[0].item<float>(), type.name,
                               type.type == at::kHalf ? "bf16" : "fp32"));
}

std::pair<int64_t, NamedTensors> chosen_weights(const ExportOptions& options, const RunDirectory& run,
                                                const Config& config, int64_t chosen) {
  const auto wanted = [&](const std::string&) {  // every tensor, as long as they are wanted at all
    throw_if_stopped(options.stop);
    return true;
  };
  return read_chosen(run, options.step, chosen, [&](int64_t there) {
    const CheckpointReader checkpoint(run.checkpoints(), there);
    check_model_identity(checkpoint.record().model, config);
    const bool ema = options.weights == ModelWeights::Ema;
    return std::pair(there, ema ? map_averages(checkpoint) : checkpoint.map(Part::Model, wanted));
  });
}

}  // namespace gyre
