#include "gyre/exchange/export_llmc_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/output_file.h"
#include "gyre/core/stopped.h"
#include "gyre/exchange/exported_weights.h"
#include "gyre/exchange/llm_c/model_file.h"
#include "gyre/exchange/new_directory.h"
#include "gyre/tensors/shape.h"
#include "gyre/train/chosen_checkpoint.h"

namespace gyre {
namespace {

LlmcType llmc_type(const ExportType& type) {
  if (type.type == at::kFloat) return LlmcType::Fp32;
  if (type.type == at::kBFloat16) return LlmcType::Bf16;
  throw InputError(fmt::format("llm.c's models are in fp32 or bf16, not {}; give --dtype fp32 or bf16", type.name));
}

// What the file has of a tensor: the parameter, zeros if it is a bias that the model lacks, and zeros for the padding.
at::Tensor value_of(const LlmcTensor& tensor, const NamedTensors& weights, const ExportType& type) {
  std::vector<int64_t> shape = tensor.shape;
  const auto found = weights.find(tensor.ours);
  const bool has = found != weights.end();
  if (has && tensor.padding_rows == 0) return in_type(found->second, type, tensor.ours);
  shape.front() += tensor.padding_rows;
  const at::Tensor value = at::zeros(shape, type.type);
  if (has) value.narrow(0, 0, tensor.shape.front()).copy_(in_type(found->second, type, tensor.ours));
  return value;
}

}  // namespace

ExportResult export_llmc_model(const ExportOptions& options, const RunDirectory& run, const Config& config) {
  llmc_header_of(config.model, LlmcType::Fp32);  // refuses the model before anything is read
  const int64_t chosen = choose_checkpoint(run, options.step);
  NewDirectory out(options.out, ".exporting", *options.files);
  const auto [step, weights] = chosen_weights(options, run, config, chosen);
  const ExportTypes types(options.dtype, run, step);
  const LlmcHeader header = llmc_header_of(config.model, llmc_type(types.common()));

  FileWriter file(out.path() / kLlmcFile, *options.files);
  file.write(to_bytes(header));
  for (const LlmcTensor& tensor : llmc_tensors(header)) {
    throw_if_stopped(options.stop);
    const at::Tensor value = value_of(tensor, weights, types.common()).contiguous();
    file.write(value.data_ptr(), value.nbytes());
  }
  file.close();
  out.complete();
  ExportResult result{.model_type = "gpt2", .step = step, .files = 1, .side_files = {}};
  for (const auto& [name, weight] : weights) result.parameters += weight.numel();
  return result;
}

}  // namespace gyre
