// The header of safetensors files: tensors fill the file exactly, and the header is written and read back the same.
#include "fuzz/targets.h"
#include "gyre/checkpoint/format/safetensors_header.h"

namespace gyre::fuzz {

void safetensors(std::string_view input) {
  const auto header = accepted([&] { return parse_safetensors_header(std::as_bytes(std::span(input)), "input"); });
  if (!header) return;
  uint64_t end = 0;
  for (const TensorEntry& tensor : header->tensors) {
    require(tensor.begin == end, "tensors lie one after the other");
    end = tensor.end;
  }
  require(header->data_begin + end == input.size(), "tensors take no more than the file");
  const std::string written = to_text(*header) + std::string(input.substr(header->data_begin));
  const SafetensorsHeader again = parse_safetensors_header(std::as_bytes(std::span(written)), "written");
  require(again.tensors == header->tensors, "a header comes back the same");
}

}  // namespace gyre::fuzz
