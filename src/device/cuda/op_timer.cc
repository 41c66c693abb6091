// Events are made once and used again.
#include "device/cuda/op_timer.h"

#include <algorithm>
#include <map>

#include "device/cuda/cuda_check.h"

namespace sluice {

OpTimer::~OpTimer() {
  for (const Span& span : spans_) {
    cudaEventDestroy(span.from);
    cudaEventDestroy(span.to);
  }
  for (const cudaEvent_t event : spare_) cudaEventDestroy(event);
}

cudaEvent_t OpTimer::event() {
  cudaEvent_t event = nullptr;
  if (spare_.empty()) {
    cuda_check(cudaEventCreate(&event), "making an event");
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  return event;
}

void OpTimer::begin(cudaStream_t stream, const char* name) {
  spans_.push_back({name, event(), event()});
  cuda_check(cudaEventRecord(spans_.back().from, stream), name);
}

void OpTimer::end(cudaStream_t stream) {
  cuda_check(cudaEventRecord(spans_.back().to, stream), spans_.back().name.c_str());
}

std::vector<OpTime> OpTimer::take() {
  cuda_check(cudaDeviceSynchronize(), "timing operations");
  std::map<std::string, OpTime> sums;
  for (const Span& span : spans_) {
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, span.from, span.to), span.name.c_str());
    OpTime& sum = sums[span.name];
    sum.name = span.name;
    ++sum.count;
    sum.us += ms * 1000.0;
    spare_.insert(spare_.end(), {span.from, span.to});
  }
  spans_.clear();
  std::vector<OpTime> times;
  for (auto& [name, sum] : sums) times.push_back(std::move(sum));
  std::sort(times.begin(), times.end(), [](const OpTime& a, const OpTime& b) { return a.us > b.us; });
  return times;
}

}  // namespace sluice
