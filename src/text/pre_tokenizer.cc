// The steps of a pre-tokenizer: splitting by patterns, and the two that rewrite pieces.
#include "text/pre_tokenizer.h"

#include "text/utf8.h"

namespace sluice {
namespace {

struct Part {
  size_t begin, end;
  bool is_match;
};

// Calls visit(part) for the matches of `step` in `text` and for what lies between them.
template <class Split, class Visit>
void for_each_part(const Split& step, std::string_view text, const Visit& visit) {
  size_t done = 0, from = 0;
  for (Regex::Match match; from <= text.size() && step.find(text, from, match);) {
    const bool is_empty = match.begin == match.end;
    if (is_empty && match.begin == text.size()) break;
    if (match.begin > done) visit(Part{done, match.begin, step.invert});
    if (!is_empty) visit(Part{match.begin, match.end, !step.invert});
    done = match.end;
    from = is_empty ? match.end + utf8_length(text[match.end]) : match.end;
  }
  if (done < text.size()) visit(Part{done, text.size(), step.invert});
}

// Joins neighbours as the behavior says; the names are those of the format.
void join_parts(std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Part> joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    bool extends = false;
    if (i > 0) {
      const bool previous = parts[i - 1].is_match;
      switch (behavior) {
        case SplitBehavior::kContiguous:
          extends = part.is_match == previous;
          break;
        case SplitBehavior::kMergedWithPrevious:
          extends = part.is_match && !previous;
          break;
        case SplitBehavior::kMergedWithNext:
          extends = previous && !part.is_match;
          break;
        case SplitBehavior::kIsolated:
        case SplitBehavior::kRemoved:
          break;
      }
    }
    if (extends) {
      joined.back().end = part.end;
    } else {
      joined.push_back(part);
    }
  }
  parts.swap(joined);
}

}  // namespace

PreTokenizer::PreTokenizer(const std::vector<PreTokenizerStepSpec>& steps, const std::string& file) {
  for (const PreTokenizerStepSpec& spec : steps) {
    if (const auto* split = std::get_if<SplitSpec>(&spec)) {
      Split step{split->pattern.text, {}, nullptr, split->behavior, split->invert};
      if (split->pattern.is_regex) {
        step.regex.emplace_back(split->pattern.text, file + ": pre_tokenizer");
        step.scanner = find_piece_scanner(split->pattern.text);
      }
      steps_.emplace_back(std::move(step));
    } else if (const auto* metaspace = std::get_if<MetaspaceSpec>(&spec)) {
      steps_.emplace_back(*metaspace);
    } else {
      steps_.emplace_back(SpacePrefixSpec{});
    }
  }
}

bool PreTokenizer::Split::find(std::string_view text, size_t from, Regex::Match& match) const {
  if (scanner != nullptr) {
    const ScanResult result = scanner(text, from, match);
    if (result != ScanResult::kUndecided) return result == ScanResult::kMatch;
    from = match.begin;
  }
  if (!regex.empty()) return regex[0].find(text, from, match);
  match.begin = literal.empty() ? std::string_view::npos : text.find(literal, from);
  match.end = match.begin + literal.size();
  return match.begin != std::string_view::npos;
}

void PreTokenizer::split(std::string_view text, bool at_start, Pieces& pieces) const {
  pieces.rewritten.clear();
  pieces.views.clear();
  if (!text.empty()) pieces.views.push_back(text);
  for (const Step& step : steps_) {
    std::visit([&](const auto& kind) { apply(kind, at_start, pieces); }, step);
  }
}

void PreTokenizer::apply(const Split& step, bool, Pieces& pieces) {
  pieces.scratch.clear();
  std::vector<Part> parts;
  for (const std::string_view piece : pieces.views) {
    const auto keep = [&](const Part& part) {
      pieces.scratch.push_back(piece.substr(part.begin, part.end - part.begin));
    };
    if (step.behavior == SplitBehavior::kIsolated) {
      for_each_part(step, piece, keep);
      continue;
    }
    parts.clear();
    for_each_part(step, piece, [&](const Part& part) { parts.push_back(part); });
    join_parts(parts, step.behavior);
    for (const Part& part : parts) {
      if (step.behavior != SplitBehavior::kRemoved || !part.is_match) keep(part);
    }
  }
  pieces.views.swap(pieces.scratch);
}

void PreTokenizer::apply(const SpacePrefixSpec&, bool, Pieces& pieces) {
  for (std::string_view& piece : pieces.views) {
    if (!piece.starts_with(' ')) piece = pieces.rewritten.emplace_back(" " + std::string(piece));
  }
}

void PreTokenizer::apply(const MetaspaceSpec& step, bool at_start, Pieces& pieces) {
  bool is_first = at_start;
  for (std::string_view& piece : pieces.views) {
    std::string text;
    for (const char c : piece) c == ' ' ? text += step.replacement : text += c;
    const bool prepend =
        step.prepend == PrependScheme::kAlways || (step.prepend == PrependScheme::kFirst && is_first);
    if (prepend && !text.starts_with(step.replacement)) text.insert(0, step.replacement);
    piece = pieces.rewritten.emplace_back(std::move(text));
    is_first = false;
  }
}

}  // namespace sluice
