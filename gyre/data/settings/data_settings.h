// The table [data], and the tables [[data.source]] of a mixture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/core/options.h"

namespace gyre {

struct DataSource {
  std::string name;  // used in overrides and checksums; by default the source's number
  std::string tokens;
  double weight = 1;
  std::string val_tokens;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("tokens", self.tokens, Range{}, "the source's data, given as [data] tokens is");
    visit("weight", self.weight, between(1e-9, 1e9),
          "weight of the source: it gives weight / (sum of all sources' weights) of the sequences");
    visit("val_tokens", self.val_tokens, Range{}, "the source's validation data, given as [data] val_tokens is");
  }
  bool operator==(const DataSource&) const = default;
};

struct DataSettings {
  std::string tokens;
  std::string val_tokens;
  double val_fraction = 0.01;
  int64_t vocabulary = 0;
  std::string tokenizer;
  std::string order = "random";
  std::vector<DataSource> source;

  bool is_given() const { return !tokens.empty() || !source.empty(); }

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("tokens", self.tokens, Range{},
          "the data: a directory that gyre prepare made, or token files of llm.c, nanoGPT or Megatron, given as a "
          "directory, a file, a pattern such as data/*_train_*.bin, or Megatron's prefix (docs/data.md). A relative "
          "path is stored as an absolute one. For a mixture of several, use [[data.source]] instead");
    visit("val_tokens", self.val_tokens, Range{},
          "token files to validate on; empty: those that belong to tokens. In a mixture they replace the validation "
          "data of all sources");
    visit("val_fraction", self.val_fraction, between(0, 0.5),
          "fraction of the token files, at their end, that is kept for validation if they come with no validation "
          "files. Directories made by gyre prepare have their own validation data");
    visit("vocabulary", self.vocabulary, between(0, 1 << 30),
          "size of the vocabulary; all token ids are below it. 0: the size that the data states; the formats of llm.c, "
          "nanoGPT and Megatron state none. GPT-2's is 50257");
    visit("tokenizer", self.tokenizer, Range{},
          "tokenizer of token files that other programs made: a file or a directory, as for gyre prepare --tokenizer. "
          "It determines the vocabulary, and gyre generate uses it to write text. Empty: none");
    visit("order", self.order, one_of({"random", "epochs"}),
          "random: each sequence begins at a random token, independently of the others; epochs: the data is cut into "
          "sequences, and every epoch goes through all of them in a new random order");
  }
  bool operator==(const DataSettings&) const = default;
};

}  // namespace gyre
