// The steps of a normalizer: NFC, replacing, prepending.
#include "text/normalizer.h"

namespace sluice {

Normalizer::Normalizer(const std::vector<NormalizerStepSpec>& steps, const std::string& file) {
  for (const NormalizerStepSpec& spec : steps) {
    if (const auto* replace = std::get_if<ReplaceSpec>(&spec)) {
      Replace step{replace->pattern.text, {}, replace->content};
      if (replace->pattern.is_regex) step.regex.emplace_back(replace->pattern.text, file + ": normalizer");
      steps_.emplace_back(std::move(step));
    } else if (const auto* prepend = std::get_if<PrependSpec>(&spec)) {
      steps_.emplace_back(*prepend);
    } else {
      steps_.emplace_back(NfcSpec{});
    }
  }
}

std::string_view Normalizer::normalize(std::string_view text, std::string& buffer) const {
  std::string out;
  for (const Step& step : steps_) {
    out.clear();
    if (!std::visit([&](const auto& kind) { return apply(kind, text, out); }, step)) continue;
    buffer.swap(out);
    text = buffer;
  }
  return text;
}

bool Normalizer::apply(const NfcSpec&, std::string_view text, std::string& out) {
  if (is_surely_nfc(text)) return false;
  out.reserve(text.size());
  append_nfc(out, text);
  return true;
}

bool Normalizer::apply(const Replace& step, std::string_view text, std::string& out) {
  const auto find = [&](size_t from, Regex::Match& match) {
    if (!step.regex.empty()) return step.regex[0].find(text, from, match);
    match.begin = step.literal.empty() ? std::string_view::npos : text.find(step.literal, from);
    match.end = match.begin + step.literal.size();
    return match.begin != std::string_view::npos;
  };
  size_t done = 0;
  bool changed = false;
  for (Regex::Match match; done < text.size() && find(done, match) && match.begin < match.end;
       done = match.end) {
    if (!changed) out.reserve(text.size() + text.size() / 4);
    changed = true;
    out.append(text.substr(done, match.begin - done)).append(step.content);
  }
  out += text.substr(done);
  return changed;
}

bool Normalizer::apply(const PrependSpec& step, std::string_view text, std::string& out) {
  if (text.empty() || step.content.empty()) return false;
  out.append(step.content).append(text);
  return true;
}

}  // namespace sluice
