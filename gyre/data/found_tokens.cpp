#include "gyre/data/found_tokens.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/utf8.h"
#include "gyre/data/megatron_index.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

enum class Format { Llmc, NanoGpt, Megatron };

const char* name_of(Format format) {
  switch (format) {
    case Format::Llmc:
      return "llm.c";
    case Format::NanoGpt:
      return "nanoGPT";
    case Format::Megatron:
      return "Megatron";
  }
  return "";
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

fs::path with_extension(fs::path path, const char* extension) {
  return path.replace_extension(extension);
}

// What a file's name says it is for; the last such word counts.
enum class Use { Unsaid, Train, Val };
Use use_of(const fs::path& path) {
  Use use = Use::Unsaid;
  std::string word;
  for (const char c : path.stem().string() + ".") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (word == "train" || word == "training") use = Use::Train;
    if (word == "val" || word == "valid" || word == "validation") use = Use::Val;
    word.clear();
  }
  return use;
}

std::vector<fs::path> matches(const std::string& pattern) {
  glob_t found{};
  const int state = ::glob(pattern.c_str(), 0, nullptr, &found);
  const std::unique_ptr<glob_t, decltype(&::globfree)> hold(&found, ::globfree);
  std::vector<fs::path> paths;
  for (size_t i = 0; state == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  return paths;
}

// The .bin files that `path` means. An .idx stands for its .bin.
std::vector<fs::path> files_of(const std::string& path) {
  std::error_code ignored;
  std::vector<fs::path> found;
  if (fs::is_directory(path, ignored)) {
    std::error_code error;
    found = entries_of(path, error);
    if (error) throw InputError(fmt::format("{}: cannot be read: {}", path, error.message()));
    std::erase_if(found, [](const fs::path& file) { return file.extension() != ".bin" && file.extension() != ".idx"; });
  } else if (is_file(path)) {
    found.emplace_back(path);
  } else if (is_file(path + ".bin") && is_file(path + ".idx")) {
    found.emplace_back(path + ".bin");
  } else {
    found = matches(path);
  }
  for (fs::path& file : found) {
    if (file.extension() != ".idx") continue;
    const fs::path tokens = with_extension(file, ".bin");
    if (!is_file(tokens))
      throw InputError(fmt::format("{}: has no {} beside it", file.string(), tokens.filename().string()));
    file = tokens;
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<Format> format_of(const fs::path& path) {
  if (!is_file(path))
    throw InputError(fmt::format("{}: is not a regular file, so it cannot be a token file", path.string()));
  if (is_file(with_extension(path, ".idx"))) return Format::Megatron;
  const InputFile file(path);
  std::array<std::byte, 4> first{};
  const size_t there = std::min<uint64_t>(first.size(), file.size());
  file.read_at(0, first.data(), there);
  if (has_token_file_header(std::span(first).first(there))) return Format::Llmc;
  // nanoGPT's files can be recognised only by their names.
  if (path.filename() == "train.bin" || path.filename() == "val.bin") return Format::NanoGpt;
  return std::nullopt;
}

void check_name(const fs::path& file) {
  if (is_utf8(file.filename().string())) return;
  throw InputError(fmt::format(
      "{}: its name is not UTF-8, as a run's meta.json, which will name it, must be; rename it, or give a link to it",
      file.string()));
}

TokenFile open(const fs::path& path, Format format) {
  if (format == Format::Llmc) return TokenFile(path);
  const uint64_t bytes = InputFile(path).size();
  if (format == Format::Megatron) {
    const fs::path index = with_extension(path, ".idx");
    return {path, read_megatron_index(InputFile(index), index.string(), bytes)};
  }
  if (bytes % 2 != 0) {
    throw InputError(
        fmt::format("{}: has {} bytes, and nanoGPT's tokens have two each; is it complete?", path.string(), bytes));
  }
  return {path, {static_cast<int64_t>(bytes / 2), TokenType::U16, 0}};
}

}  // namespace

FoundTokens find_tokens(const std::string& path) {
  const std::vector<fs::path> files = files_of(path);
  if (files.empty()) {
    std::error_code error;
    if (!fs::exists(path, error) && error) {
      throw InputError(fmt::format("{}: cannot be read: {}", path, error.message()));
    }
    if (path.find_first_of("*?[") != std::string::npos) {
      throw InputError(fmt::format("{}: no file has a name that fits this pattern", path));
    }
    throw InputError(
        fmt::format("{}: no prepared text is here (no meta.json), and no token files (.bin); make it with gyre prepare "
                    "TEXT --out {}",
                    path, path));
  }
  std::optional<Format> format;
  for (const fs::path& file : files) {
    check_name(file);
    const auto own = format_of(file);
    if (!own) {
      throw InputError(
          fmt::format("{}: is not a token file: it has no llm.c header, and no Megatron .idx is beside it (nanoGPT's "
                      "files are called train.bin and val.bin); to make tokens of text, use gyre prepare",
                      file.string()));
    }
    if (format && format != own) {
      throw InputError(fmt::format(
          "{}: has token files of {} ({}) and of {} ({}); give one of them, or each as a "
          "[[data.source]]",
          path, name_of(*format), files.front().filename().string(), name_of(*own), file.filename().string()));
    }
    format = own;
  }
  FoundTokens found;
  found.format = name_of(*format);
  found.directory = files.front().parent_path();
  if (files.size() == 1) {
    found.train.push_back(open(files.front(), *format));
    return found;
  }
  const bool named =
      std::any_of(files.begin(), files.end(), [](const auto& file) { return use_of(file) != Use::Unsaid; });
  for (const fs::path& file : files) {
    const Use use = use_of(file);
    if (named && use == Use::Unsaid) {
      throw InputError(
          fmt::format("{}: its name has neither train nor val in it, as names of other files beside it have; give a "
                      "pattern that leaves it out",
                      file.string()));
    }
    (use == Use::Val ? found.val : found.train).push_back(open(file, *format));
  }
  return found;
}

}  // namespace gyre
