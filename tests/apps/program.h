// Runs the built program as a user's shell would.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::testing {

struct Outcome {
  int exit_code = -1;  // -1: ended by a signal
  std::string out, err;
  int64_t peak_bytes = 0;  // the most memory it had at once
};

using Arguments = std::vector<std::string>;

/// Runs SLUICE_PROGRAM with `input` as standard input and `environment` ("NAME=value") added to ours; none of
/// its streams is a terminal.
Outcome run_program(const Arguments& arguments, const std::string& input = "",
                    const Arguments& environment = {});

/// As run_program, but standard output is what `file` opens (a device, a pipe); `out` stays empty.
Outcome run_program_into(const std::filesystem::path& file, const Arguments& arguments,
                         const std::string& input = "");

/// In a forked child: becomes the program. Does not return.
[[noreturn]] void execute_program(const Arguments& arguments, const Arguments& environment);

/// The program must refuse with exit code 1, nothing on standard output, and one line on standard error that
/// holds all of `parts`.
/// Returns what the program did.
Outcome expect_refusal(const Arguments& arguments, const std::vector<std::string>& parts,
                       const std::string& input = "");

/// Likewise for a command line that is wrong in itself: exit code 2.
void expect_wrong_usage(const Arguments& arguments, const std::vector<std::string>& parts,
                        const std::string& input = "");

inline std::filesystem::path golden_folder(const std::string& name) {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden" / name;
}
inline std::string demo_model() { return SLUICE_SOURCE_DIR "/models/demo"; }

}  // namespace sluice::testing
