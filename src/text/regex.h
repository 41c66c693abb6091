// Regular expressions of tokenizer files: written for Oniguruma (Ruby syntax), run by PCRE2's compiler.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace sluice {

/// A compiled expression over valid UTF-8. Immutable; find may be called from several threads.
class Regex {
 public:
  struct Match {
    size_t begin, end;  // bytes of the subject
  };

  /// Throws Error kUnsupported, starting with `where`, if `pattern` is broken or uses syntax whose meaning
  /// differs.
  Regex(std::string_view pattern, const std::string& where);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// The first match that begins at `from` or later; returns false if there is none.
  /// Throws Error kUnsupported if the match needs more stack than PCRE2 gets here.
  bool find(std::string_view subject, size_t from, Match& match) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

/// The same expression in PCRE2's syntax. `\s`, `\d` and `\w` get Unicode's meaning, which in PCRE2 is a
/// little different. Throws Error kUnsupported, starting with `where`, for syntax that has no counterpart.
std::string pcre2_from_oniguruma(std::string_view pattern, const std::string& where);

}  // namespace sluice
