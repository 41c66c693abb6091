// Generators of sample texts.
#include "apps/sample_text.h"

#include <array>
#include <cmath>

#include "base/random.h"

namespace sluice::apps {
namespace {

// In the order of how often they come, roughly.
constexpr std::string_view kWords =
    "the of and to in a is that for it as was with be by on not he his but at are this have from they which "
    "one had you were all their her she there would we him been has when who will no more if out so said "
    "what "
    "up its about into than them can only other new some could time these two may then do first any my now "
    "such like our over man me even most made after also did many before must through back years where much "
    "your way well down should because each just those people how too little state good very make world "
    "still "
    "own see men work long get here between both life being under never day same another know while last "
    "might "
    "us great old year off come since against go came right used take three system value number order point "
    "memory table request buffer index token layer weight result error length engine reader writer queue "
    "thread "
    "handle cache stream device model expert router update window record signal module vector string format "
    "parser config option message history context session account response structure condition government "
    "development information particular themselves experience additional understanding nevertheless";

class Generator {
 public:
  explicit Generator(uint64_t seed) : seed_(seed) {
    for (size_t begin = 0; begin < kWords.size();) {
      const size_t end = std::min(kWords.find(' ', begin), kWords.size());
      words_.push_back(kWords.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  size_t below(size_t limit) {
    return static_cast<size_t>(uniform(seed_, count_++) * static_cast<double>(limit)) % limit;
  }
  bool one_in(size_t n) { return below(n) == 0; }
  // Zipf's law: the n-th word comes about 1/n as often as the first.
  std::string_view word() {
    const double rank = std::pow(static_cast<double>(words_.size() + 1), uniform(seed_, count_++));
    return words_[std::min(static_cast<size_t>(rank), words_.size()) - 1];
  }
  std::string_view rarer_word() { return words_[below(words_.size())]; }
  std::string made_up_word() {
    constexpr std::array<std::string_view, 20> kSyllables = {"an",  "ber", "con", "dil", "er",  "fen", "gra",
                                                             "hol", "in",  "jas", "kel", "lor", "mi",  "ner",
                                                             "op",  "pre", "qui", "ros", "ti",  "ven"};
    std::string word;
    for (size_t parts = 2 + below(3); parts > 0; --parts) word += kSyllables[below(kSyllables.size())];
    return word;
  }

 private:
  uint64_t seed_, count_ = 0;
  std::vector<std::string_view> words_;
};

std::string capitalised(std::string word) {
  if (word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

class CodeGenerator {
 public:
  explicit CodeGenerator(uint64_t seed) : random_(seed) {}

  std::string function() {
    std::string code = "// " + capitalised(std::string(random_.rarer_word()));
    for (size_t words = 4 + random_.below(8); words > 0; --words) code += ' ' + std::string(random_.word());
    code += ".\nstatic " + type() + ' ' + name() + '(' + type() + ' ' + name() + ", " + type() + ' ' + name();
    code += ") {\n";
    for (size_t lines = 3 + random_.below(8); lines > 0; --lines) code += statement(2);
    return code + "  return " + name() + ";\n}\n\n";
  }

 private:
  std::string type() {
    constexpr std::array<std::string_view, 6> kTypes = {"int",         "size_t",        "const char*",
                                                        "std::string", "const Status&", "uint32_t"};
    return std::string(kTypes[random_.below(kTypes.size())]);
  }
  std::string name() {
    if (random_.one_in(6)) return std::string(1, static_cast<char>('a' + random_.below(26)));
    std::string name(random_.rarer_word());
    for (size_t parts = random_.below(3); parts > 0; --parts) name += '_' + std::string(random_.rarer_word());
    if (random_.one_in(4)) name = capitalised(name) + capitalised(std::string(random_.rarer_word()));
    return name;
  }
  std::string number() {
    return random_.one_in(3) ? std::to_string(random_.below(100000)) : std::to_string(random_.below(10));
  }
  std::string expression() {
    switch (random_.below(5)) {
      case 0:
        return number();
      case 1:
        return name() + '(' + name() + ", " + number() + ')';
      case 2:
        return name() + "->" + name() + '[' + name() + ']';
      case 3:
        return name() + " + " + name() + " * " + number();
      default:
        return '"' + std::string(random_.word()) + ' ' + std::string(random_.word()) + ": %s\\n\"";
    }
  }
  std::string statement(size_t indent) {
    const std::string margin(indent, ' ');
    switch (random_.below(indent > 6 ? 3 : 5)) {
      case 0:
        return margin + "const " + type() + ' ' + name() + " = " + expression() + ";\n";
      case 1:
        return margin + name() + " += " + expression() + ";  // " + std::string(random_.word()) + '\n';
      case 2:
        return margin + name() + '(' + expression() + ");\n";
      case 3:
        return margin + "if (" + name() + " != " + expression() + ") {\n" + statement(indent + 2) + margin +
               "}\n";
      default:
        return margin + "for (int i = 0; i < " + name() + ".size(); ++i) {\n" + statement(indent + 2) +
               statement(indent + 2) + margin + "}\n";
    }
  }

  Generator random_;
};

void append_character(std::string& out, uint32_t code) {
  if (code < 0x800) {
    out += {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  } else {
    out += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  }
}

std::string repeated(std::string_view part, size_t bytes) {
  std::string text;
  text.reserve(bytes + part.size());
  while (text.size() < bytes) text += part;
  return text;
}

}  // namespace

std::string sample_code(uint64_t seed, size_t bytes) {
  CodeGenerator generator(seed);
  std::string code;
  while (code.size() < bytes) code += generator.function();
  return code;
}

std::string sample_prose(uint64_t seed, size_t bytes) {
  Generator random(seed);
  std::string prose;
  while (prose.size() < bytes) {
    for (size_t sentences = 2 + random.below(6); sentences > 0; --sentences) {
      prose += capitalised(std::string(random.word()));
      for (size_t words = 5 + random.below(20); words > 0; --words) {
        prose += ' ';
        prose += random.one_in(15) ? random.made_up_word() : std::string(random.word());
        if (random.one_in(9)) prose += ',';
      }
      prose += sentences > 1 ? ". " : ".\n\n";
    }
  }
  return prose;
}

std::vector<WorstCase> worst_cases(uint64_t seed, size_t bytes) {
  Generator random(seed);
  std::string letters, ideographs, marks = "a";
  while (letters.size() < bytes) letters += static_cast<char>('a' + random.below(26));
  while (ideographs.size() < bytes)
    append_character(ideographs, static_cast<uint32_t>(0x4E00 + random.below(0x5000)));
  while (marks.size() < bytes) append_character(marks, static_cast<uint32_t>(0x300 + random.below(0x62)));
  return {{"one letter", repeated("a", bytes)},
          {"random letters", letters},
          {"spaces", repeated(" ", bytes)},
          {"newlines", repeated("\n", bytes)},
          {"digits", repeated("1234567890", bytes)},
          {"signs", repeated("!", bytes)},
          {"emoji", repeated("\U0001F600", bytes)},
          {"ideographs", ideographs},
          {"combining marks", marks},
          {"invalid bytes", repeated("\xFF", bytes)}};
}

}  // namespace sluice::apps
