// The commands of the program. Each function adds one subcommand; its callback does the work and throws
// Error.
#pragma once

namespace sluice::apps {

class Command;

void add_run(Command& program);
void add_chat(Command& program);
void add_eval(Command& program);
void add_tokenize(Command& program);
void add_render(Command& program);
void add_inspect(Command& program);
void add_convert(Command& program);
void add_trace(Command& program);
void add_bench(Command& program);
void add_bench_cpu(Command& bench);        // `bench cpu`
void add_bench_kernels(Command& bench);    // `bench kernels`
void add_bench_link(Command& bench);       // `bench link`
void add_bench_slots(Command& bench);      // `bench slots`
void add_bench_tokenizer(Command& bench);  // `bench text`
void add_bench_decode(Command& bench);     // `bench decode`
void add_bench_prefill(Command& bench);    // `bench prefill`
void add_synth(Command& program);
void add_plan(Command& program);
void add_pull(Command& program);

}  // namespace sluice::apps
