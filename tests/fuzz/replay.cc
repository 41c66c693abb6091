// Runs a target over the files of a folder, one after the other, as an ordinary test.
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "fuzz/target.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::printf("%s\n", entry.path().filename().c_str());
    std::fflush(stdout);  // the last line names the file that ended the program
    const std::string bytes = sluice::read_text_file(entry.path());
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    LLVMFuzzerTestOneInput(data, bytes.size());
    LLVMFuzzerTestOneInput(data, bytes.size() / 2);
    ++files;
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
