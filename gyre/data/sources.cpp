#include "gyre/data/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/data/found_tokens.h"
#include "gyre/data/token_shards.h"
#include "gyre/tokenizers/hugging_face_files.h"

namespace gyre {
namespace {

constexpr const char* kTrainPart = "train";
constexpr const char* kValPart = "val";

// What helps if there are too few tokens to train or to validate on.
constexpr const char* kMoreToTrainOn = "prepare more text";
constexpr const char* kMoreToValidateOn = "give more text to validate on";
constexpr const char* kLargerPrepared = "run gyre prepare again with more text or a larger --val-fraction";
constexpr const char* kLargerCut = "give more text or a larger [data] val_fraction";

void check_count(const std::vector<TokenFile>& files, int64_t expected) {
  int64_t tokens = 0;
  for (const TokenFile& file : files) tokens += file.size();
  if (tokens == expected) return;
  throw InputError(fmt::format("{}{}: has {} tokens, meta.json says {}; run gyre prepare again",
                               files.front().path().string(), files.size() > 1 ? ", with the files after it" : "",
                               tokens, expected));
}

DataIdentity tokenizer_of(const DatasetMeta& meta) {
  DataIdentity files;
  for (const auto& [name, checksum] : meta.checksums) {
    if (part_of(name) == DataPart::Tokenizer) files[name] = checksum;
  }
  return files;
}

std::string known_checksum(const DataIdentity& identity, const std::string& file) {
  const auto found = identity.find(file);
  return found == identity.end() ? "none" : found->second;
}

// Numbers a name that was given before: a, a#2, a#3.
class UniqueNames {
 public:
  std::string next(const std::string& name) {
    std::string unique = name;
    int& number = numbers_.try_emplace(name, 1).first->second;
    while (!taken_.insert(unique).second) unique = fmt::format("{}#{}", name, ++number);
    return unique;
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, int> numbers_;  // the last that was tried, by name: none up to it is free
};

}  // namespace

bool is_prepared(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) && is_there(std::filesystem::path(path) / kMetaFile);
}

std::optional<DataPart> part_of(const std::string& name) {
  const auto tokenizer = tokenizer_files();
  if (std::find(tokenizer.begin(), tokenizer.end(), name) != tokenizer.end()) return DataPart::Tokenizer;
  const std::string part = std::filesystem::path(name).parent_path().filename();
  if (is_shard_of(name, kTrainFile) || part == kTrainPart) return DataPart::Train;
  if (is_shard_of(name, kValFile) || part == kValPart) return DataPart::Val;
  return std::nullopt;
}

// Builds a dataset from one source after the other.
struct Dataset::Opener {
  Dataset data;
  int64_t vocabulary;  // from the settings; 0: not given
  int64_t if_unstated;
  double val_fraction;
  std::string vocabulary_origin;  // the prepared directory or tokenizer that vocabulary and tokenizer come from
  UniqueNames names = {};         // of the files in both splits, which differ by their part

  std::vector<size_t> add_files(std::vector<TokenFile> files) {
    std::vector<size_t> indices;
    for (TokenFile& file : files) {
      indices.push_back(data.files_.size());
      data.files_.push_back({std::make_shared<const TokenFile>(std::move(file)), ""});
    }
    return indices;
  }

  TokenSequence sequence(const std::vector<size_t>& files, const std::string& name) const {
    std::vector<std::shared_ptr<const TokenFile>> parts;
    for (const size_t file : files) parts.push_back(data.files_[file].tokens);
    std::string own = files.size() == 1 ? parts.front()->path().string() : name;
    return {std::move(parts), std::move(own)};
  }

  // In a mixture, the names of a source's files begin with the source's name.
  void add(Split& split, const DataSource& source, const char* part, const std::vector<size_t>& files,
           TokenSequence tokens, const char* if_too_few) {
    for (const size_t file : files) {
      const auto place = std::filesystem::path(source.name) / part / data.files_[file].tokens->path().filename();
      // A pattern may match files of the same name in several directories.
      split.files.push_back({names.next(place), file});
    }
    split.sources.push_back({source.name, source.weight, std::move(tokens), if_too_few});
  }

  void take_tokenizer(const std::string& path) {
    vocabulary_origin = path;
    data.tokenizer_ = read_tokenizer(path);
    describe_tokenizer(*data.tokenizer_, data.meta_);
    data.meta_.vocabulary = make_tokenizer(*data.tokenizer_, path)->vocabulary_size();
  }

  void take_meta(const std::string& directory, const DatasetMeta& meta) {
    if (data.tokenizer_) {
      throw InputError(
          fmt::format("[data] tokenizer is for token files of other programs, and {} has its own; leave "
                      "it out",
                      directory));
    }
    if (vocabulary_origin.empty()) {
      vocabulary_origin = directory;
      data.prepared_ = directory;
      data.meta_ = meta;
    } else if (meta.vocabulary != data.meta_.vocabulary || meta.end_of_document != data.meta_.end_of_document ||
               tokenizer_of(meta) != tokenizer_of(data.meta_)) {
      throw InputError(fmt::format("{} and {}: were made with different tokenizers; prepare both with one",
                                   vocabulary_origin, directory));
    }
  }

  // Adds a directory that gyre prepare made. Returns the indices of its training and its validation files.
  std::pair<std::vector<size_t>, std::vector<size_t>> add_prepared(const std::string& path) {
    const std::filesystem::path directory = path;
    const DatasetMeta meta = DatasetMeta::load(directory);
    for (const char* file : {kTrainFile, kValFile}) {
      if (meta.checksums.count(file) > 0) continue;
      throw InputError(
          fmt::format("{}: has no tokens (meta.json has no checksum of {}); make them with gyre prepare", path, file));
    }
    const auto opened = [&](const char* first, int64_t tokens) {
      std::vector<TokenFile> files;
      for (const std::string& name : shards_of(first, meta.checksums)) files.emplace_back(directory / name);
      check_count(files, tokens);
      return files;
    };
    std::vector<TokenFile> train = opened(kTrainFile, meta.train_tokens), val = opened(kValFile, meta.val_tokens);
    take_meta(path, meta);
    return {add_prepared_files(std::move(train), meta), add_prepared_files(std::move(val), meta)};
  }

  std::vector<size_t> add_prepared_files(std::vector<TokenFile> files, const DatasetMeta& meta) {
    std::vector<size_t> indices = add_files(std::move(files));
    for (const size_t file : indices) {
      data.files_[file].expected = meta.checksums.at(data.files_[file].tokens->path().filename());
    }
    return indices;
  }

  void add_val(const DataSource& source, const std::string& path) {
    std::vector<size_t> files;
    if (is_prepared(path)) {
      files = add_prepared(path).second;
    } else {
      FoundTokens found = find_tokens(path);
      files = add_files(std::move(found.val.empty() ? found.train : found.val));
    }
    add_val_files(source, files, path);
  }

  // `path`: where the files were found.
  void add_val_files(const DataSource& source, const std::vector<size_t>& files, const std::string& path) {
    const char* if_too_few = is_prepared(path) ? kLargerPrepared : kMoreToValidateOn;
    add(data.val_, source, kValPart, files, sequence(files, path), if_too_few);
  }

  // Adds the source's training tokens and, if `validates`, its validation tokens.
  void add_source(const DataSource& source, bool validates) {
    std::vector<size_t> train, val;
    if (is_prepared(source.tokens)) {
      std::tie(train, val) = add_prepared(source.tokens);
    } else {
      FoundTokens found = find_tokens(source.tokens);
      if (found.train.empty()) {
        throw InputError(
            fmt::format("{}: all files are for validation, by their names; give files to train on", source.tokens));
      }
      train = add_files(std::move(found.train));
      val = add_files(std::move(found.val));
    }
    TokenSequence all = sequence(train, source.tokens);
    const bool own_val = !val.empty() || !source.val_tokens.empty() || !validates;
    const auto kept = own_val ? 0 : static_cast<int64_t>(std::floor(static_cast<double>(all.size()) * val_fraction));
    add(data.train_, source, kTrainPart, train, all.part(0, all.size() - kept), kMoreToTrainOn);
    if (!validates) return;
    if (!source.val_tokens.empty()) {
      add_val(source, source.val_tokens);
    } else if (!val.empty()) {
      add_val_files(source, val, source.tokens);
    } else {
      data.cuts_validation_ = true;
      add(data.val_, source, kValPart, train, all.part(all.size() - kept, kept), kLargerCut);
    }
  }

  void settle_vocabulary() {
    if (!vocabulary_origin.empty() && vocabulary > 0 && vocabulary != data.meta_.vocabulary) {
      throw InputError(fmt::format("[data] vocabulary is {}, and {} has one of {}; leave it out", vocabulary,
                                   vocabulary_origin, data.meta_.vocabulary));
    }
    data.has_own_vocabulary_ = !vocabulary_origin.empty();
    const int64_t given = vocabulary > 0 ? vocabulary : if_unstated;
    data.vocabulary_ = data.has_own_vocabulary_ ? data.meta_.vocabulary : given;
    if (data.vocabulary_ > 0) return;
    throw InputError(
        fmt::format("{}: token files do not say their vocabulary; set [data] tokenizer, or [data] vocabulary (GPT-2's "
                    "tokens: 50257)",
                    data.description_));
  }
};

Dataset Dataset::open(const DataSettings& settings, int64_t if_unstated) {
  Opener opener{{}, settings.vocabulary, if_unstated, settings.val_fraction, ""};
  Dataset& data = opener.data;
  std::vector<DataSource> sources = settings.source;
  // The order of sources in the settings must not matter.
  std::sort(sources.begin(), sources.end(), [](const DataSource& a, const DataSource& b) { return a.name < b.name; });
  if (sources.empty()) {
    data.description_ = settings.tokens;
    if (settings.tokens.empty()) throw InputError("[data] tokens is empty; give the directory that gyre prepare made");
    sources.push_back({"", settings.tokens, 1, settings.val_tokens});
  } else {
    data.description_ = counted(std::ssize(sources), "source");
  }
  if (!settings.tokenizer.empty()) opener.take_tokenizer(settings.tokenizer);
  const bool one_val = !settings.source.empty() && !settings.val_tokens.empty();
  for (const DataSource& source : sources) opener.add_source(source, !one_val);
  if (one_val) opener.add_val({"", "", 1, ""}, settings.val_tokens);
  opener.settle_vocabulary();
  data.is_prepared_ = settings.source.empty() && settings.val_tokens.empty() && data.prepared_.has_value();
  for (Split* split : {&data.train_, &data.val_}) {
    for (Named& named : split->files) {
      if (data.is_prepared_) named.name = data.files_[named.file].tokens->path().filename();
    }
  }
  return std::move(opener.data);
}

Dataset Dataset::open_to_validate(const DataSettings& settings, int64_t if_unstated) {
  if (is_prepared(settings.tokens)) return open(settings, if_unstated);
  Opener opener{{}, settings.vocabulary, if_unstated, settings.val_fraction, ""};
  opener.data.description_ = settings.tokens;
  if (!settings.tokenizer.empty()) opener.take_tokenizer(settings.tokenizer);
  opener.add_val({"", settings.tokens, 1, ""}, settings.tokens);
  opener.settle_vocabulary();
  return std::move(opener.data);
}

int64_t Dataset::tokens_in(const Split& split) {
  int64_t tokens = 0;
  for (const WeightedTokens& source : split.sources) tokens += source.tokens.size();
  return tokens;
}

uint64_t Dataset::bytes() const {
  uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.tokens->stamp().bytes;
  return bytes;
}

void Dataset::verify(const File& file) const {
  if (file.verified) return;
  const std::string path = file.tokens->path().string();
  const InputFile::Stamp before = file.tokens->stamp();
  const TokenFile::Content content = file.tokens->scan(vocabulary_, stop_);
  if (content.outside_at >= 0) {
    throw InputError(fmt::format(
        "{}: token {} at {} is outside the vocabulary of {}; {}", path, content.outside, content.outside_at,
        vocabulary_,
        file.expected.empty() ? "is [data] vocabulary right, and is this a token file?" : "run gyre prepare again"));
  }
  if (!file.expected.empty() && content.checksum != file.expected) {
    throw InputError(
        fmt::format("{}: is damaged, or from another gyre prepare: its checksum is not the one in "
                    "meta.json; bring it back, or run gyre prepare again",
                    path));
  }
  file.checksum = content.checksum;
  file.verified = before;
}

const std::vector<WeightedTokens>& Dataset::verified(const Split& split) const {
  for (const Named& named : split.files) verify(files_[named.file]);
  return split.sources;
}

DataIdentity Dataset::identity(const std::vector<DataPart>& parts) const {
  const auto wanted = [&](DataPart part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
  DataIdentity identity;
  if (wanted(DataPart::Tokenizer)) identity = tokenizer_of(meta_);
  const auto add = [&](const Split& split) {
    for (const Named& named : split.files) {
      const File& file = files_[named.file];
      if (file.expected.empty()) verify(file);
      identity[named.name] = file.expected.empty() ? file.checksum : file.expected;
    }
  };
  if (wanted(DataPart::Train)) add(train_);
  if (wanted(DataPart::Val)) add(val_);
  return identity;
}

std::optional<std::string> Dataset::tokenizer_as_json() const {
  if (!prepared_ && !tokenizer_) return std::nullopt;
  try {
    const TokenizerModel model = prepared_ ? load_tokenizer_model(*prepared_) : *tokenizer_;
    return hugging_face_files(model, description_).tokenizer;
  } catch (const InputError&) {  // it cannot be converted
    return std::nullopt;
  }
}

// An exported model has its tokenizer as tokenizer.json, whatever its form was, and an import brings it back as that.
bool Dataset::has_as_json(const std::string& tokenizer_json) const {
  const auto json = tokenizer_as_json();
  return json && text_checksum(*json) == tokenizer_json;
}

TokenNumbers Dataset::special_tokens() const {
  const auto json = tokenizer_as_json();
  return json ? special_token_numbers(*json) : TokenNumbers();
}

// What a message calls the file of that name in an identity. If this data has none, where it comes from must do.
std::string Dataset::shown(const std::string& name) const {
  if (is_prepared_) return *prepared_ / name;
  for (const Split* split : {&train_, &val_}) {
    for (const Named& named : split->files) {
      if (named.name == name) return fmt::format("{} ({})", name, files_[named.file].tokens->path().string());
    }
  }
  return fmt::format("{} ({})", name, description_);
}

void Dataset::check_identity(const DataIdentity& run, const std::vector<DataPart>& parts) const {
  const DataIdentity found = identity(parts);
  std::optional<bool> is_same_as_json;  // computed only if files differ
  const auto compare = [&](const std::string& name) {
    const std::string was = known_checksum(run, name), is = known_checksum(found, name);
    if (was == is) return;
    const bool is_tokenizer = part_of(name) == DataPart::Tokenizer;
    if (is_tokenizer && !is_same_as_json) is_same_as_json = has_as_json(known_checksum(run, kTokenizerJsonFile));
    if (is_tokenizer && *is_same_as_json) return;
    const std::string difference = fmt::format("(checksum {}, the run's {}); bring back the old data, or", is, was);
    if (is_tokenizer) {
      throw InputError(
          fmt::format("{}: its {} is not what this run was begun with {} use the run's tokenizer (gyre "
                      "prepare --tokenizer RUN/tokenizer; of token files, [data] tokenizer)",
                      description_, name, difference));
    }
    throw InputError(
        fmt::format("{}: is not what this run was begun with {} begin another run", shown(name), difference));
  };
  for (const auto& [name, checksum] : found) compare(name);
  for (const auto& [name, checksum] : run) {
    const auto part = part_of(name);
    if (part && std::find(parts.begin(), parts.end(), *part) != parts.end()) compare(name);
  }
}

void Dataset::check_unchanged() const {
  for (const File& file : files_) {
    if (!file.verified) continue;
    const InputFile::Stamp now = file.tokens->stamp();
    if (now == *file.verified) continue;
    if (now.bytes != file.verified->bytes || file.tokens->scan(vocabulary_).checksum != file.checksum) {
      throw RunError(
          fmt::format("{}: was changed while in use, and updates since the last save may have read what is "
                      "there now; bring back what was there",
                      file.tokens->path().string()));
    }
    file.verified = now;
  }
}

void Dataset::write_tokenizer(const std::filesystem::path& directory, FileSystem& files) const {
  if (is_prepared_) return copy_tokenizer(*prepared_, directory, files);
  DatasetMeta meta = meta_;
  if (const auto model = prepared_ ? load_tokenizer_model(*prepared_) : tokenizer_) {
    gyre::write_tokenizer(*model, directory, meta, files);
  } else {
    meta.tokenizer = kNoTokenizer;
  }
  std::erase_if(meta.checksums, [](const auto& file) {
    return is_shard_of(file.first, kTrainFile) || is_shard_of(file.first, kValFile);
  });
  meta.vocabulary = vocabulary_;
  meta.train_tokens = train_tokens();
  meta.val_tokens = val_tokens();
  meta.checksums.merge(identity());
  write_file_atomic(directory / kMetaFile, meta.to_json(), files);
}

}  // namespace gyre
