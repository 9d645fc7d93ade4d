// Prints the name and the checksum of every tensor of a part of a checkpoint, "model" or "optimizer", whatever files it
// is in, so that the saves of one process and of several can be compared.
//   gyre_list_tensors DIRECTORY PART
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>

#include "gyre/checkpoint/format/safetensors_header.h"
#include "gyre/core/files.h"

namespace {

void add_tensors(const std::filesystem::path& path, std::map<std::string, std::string>& checksums) {
  const gyre::MappedFile file(path);
  const auto header = gyre::parse_safetensors_header(file.bytes(), path.string());
  for (const gyre::TensorEntry& tensor : header.tensors) {
    gyre::Checksum checksum;
    checksum.update(file.bytes().data() + header.data_begin + tensor.begin, tensor.end - tensor.begin);
    checksums[tensor.name] = tensor.type + " " + checksum.hex();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    std::map<std::string, std::string> checksums;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(argv[2]) && name.ends_with(".safetensors")) add_tensors(entry.path(), checksums);
    }
    for (const auto& [name, checksum] : checksums) std::printf("%s %s\n", name.c_str(), checksum.c_str());
    return checksums.empty() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
