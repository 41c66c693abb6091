// The one place that writes errors and notes.
#include "apps/messages.h"

#include <cstdio>

#include "base/printable.h"

namespace sluice::apps {
namespace {

constexpr size_t kMostLineBytes =
    2000;  // names of files and tensors are whole in it, a thousand sizes are not

}  // namespace

void print_message(std::string_view message) {
  std::fprintf(stderr, "sluice: %s\n", printable_line(message, kMostLineBytes).c_str());
}

}  // namespace sluice::apps
