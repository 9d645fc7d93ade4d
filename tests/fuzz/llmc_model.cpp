// Model files of llm.c: the header of an accepted one is written back the same, and its tensors fill the file.
#include "gyre/exchange/llm_c/model_file.h"

#include <algorithm>

#include "fuzz/targets.h"

namespace gyre::fuzz {

void llmc_model(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  const auto first = bytes.first(std::min(bytes.size(), kLlmcHeaderBytes));
  const auto header = accepted([&] { return parse_llmc_header(first, input.size(), "input"); });
  if (!header) return;
  check_model(model_of(*header));
  require(is_llmc_model(first), "what is accepted is known as a model of llm.c");
  const std::string written = to_bytes(*header);
  require(parse_llmc_header(std::as_bytes(std::span(written)), input.size(), "written") == *header,
          "a header comes back the same");
  const uint64_t width = header->type == LlmcType::Fp32 ? 4 : 2;
  uint64_t next = kLlmcHeaderBytes;
  for (const LlmcTensor& tensor : llmc_tensors(*header)) {
    require(tensor.offset == next, "tensors follow each other");
    uint64_t elements = static_cast<uint64_t>(tensor.shape.front() + tensor.padding_rows);
    for (size_t i = 1; i < tensor.shape.size(); ++i) elements *= static_cast<uint64_t>(tensor.shape[i]);
    next += width * elements;
  }
  require(next == input.size(), "tensors fill the file");
}

}  // namespace gyre::fuzz
