#include "gyre/tokenizers/json/regex.h"

#include <fmt/format.h>

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/tokenizers/json/regex_syntax.h"

namespace gyre {
namespace {

constexpr size_t kMaxPatternBytes = 1 << 16;

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};

}  // namespace

struct Regex::Code {
  std::unique_ptr<pcre2_code, Free> compiled;
};

struct RegexScratch::State {
  std::unique_ptr<pcre2_match_data, Free> match{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Free> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Free> stack{pcre2_jit_stack_create(32 << 10, 8 << 20, nullptr)};
};

RegexScratch::RegexScratch() : state_(std::make_unique<State>()) {
  if (!state_->match || !state_->context || !state_->stack) throw std::bad_alloc();
  pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
  pcre2_set_heap_limit(state_->context.get(), 64 << 10);  // KiB
}
RegexScratch::~RegexScratch() = default;

Regex::Regex(const std::string& pattern, const std::string& where) : where_(where) {
  if (pattern.size() > kMaxPatternBytes) throw InputError(fmt::format("{}: the pattern is too long", where));
  const std::string text = to_pcre2(pattern, where);
  const std::unique_ptr<pcre2_compile_context, Free> context(pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 64);
  int error = 0;
  PCRE2_SIZE at = 0;
  auto code = std::make_shared<Code>();
  code->compiled.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                                     context.get()));
  if (!code->compiled) {
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    throw InputError(fmt::format("{}: the pattern '{}' is not understood: {}", where, printable(pattern),
                                 reinterpret_cast<const char*>(message.data())));
  }
  pcre2_jit_compile(code->compiled.get(), PCRE2_JIT_COMPLETE);  // if this fails, matching is interpreted
  code_ = std::move(code);
}

Regex Regex::literal(std::string_view text, const std::string& where) {
  std::string pattern;
  for (const char c : text) {
    const bool is_symbol =
        static_cast<unsigned char>(c) < 0x80 && !((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9');
    if (is_symbol) {
      pattern += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      pattern += c;
    }
  }
  return Regex(pattern, where);
}

bool Regex::may_be_empty() const {
  uint32_t may = 0;
  pcre2_pattern_info(code_->compiled.get(), PCRE2_INFO_MATCHEMPTY, &may);
  return may != 0;
}

std::pair<size_t, size_t> Regex::find(std::string_view text, size_t from, RegexScratch& scratch) const {
  auto& state = *scratch.state_;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int result = pcre2_match(code_->compiled.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                           state.match.get(), state.context.get());
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
    result = pcre2_match(code_->compiled.get(), subject, text.size(), from,
                         PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | PCRE2_NO_JIT, state.match.get(), state.context.get());
  }
  if (result == PCRE2_ERROR_NOMATCH) return {text.size(), text.size()};
  if (result < 0) {
    throw InputError(fmt::format("{}: its pattern takes too long over a text (PCRE2's error {})", where_, result));
  }
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer(state.match.get());
  return {found[0], found[1]};
}

}  // namespace gyre
