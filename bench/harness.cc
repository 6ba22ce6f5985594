// Hands the rows of bench.h to Google Benchmark. The one C++ file.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "bench.h"

namespace {

// Google Benchmark adds how a row was timed to its name; all of ours are in real time.
template <class Base> class Plain : public Base {
  public:
    using Base::Base;
    void ReportRuns(const std::vector<benchmark::BenchmarkReporter::Run> &runs) override {
        std::vector<benchmark::BenchmarkReporter::Run> plain = runs;
        for (auto &run : plain) run.run_name.time_type.clear();
        Base::ReportRuns(plain);
    }
};

// Set by thread 0 before the barrier with which the first iteration of all threads begins.
void *shared_state;

void report(benchmark::State &state) {
    bench_reported reports[BENCH_LIST_MAX];
    const size_t count = bench_take_reports(reports);
    for (size_t i = 0; i < count; i++) state.counters[reports[i].name] = reports[i].value;
}

void run_row(benchmark::State &state, const bench_row &row) {
    const bool first = state.thread_index() == 0;
    if (first) shared_state = row.setup(&row, static_cast<unsigned>(state.threads()));
    const auto iterations = static_cast<uint64_t>(state.max_iterations);
    uint64_t wrong = 0;
    while (state.KeepRunningBatch(state.max_iterations))
        wrong += row.run(&row, shared_state, iterations,
                         static_cast<unsigned>(state.thread_index()));
    // What one thread takes for one iteration; the time that Google Benchmark prints is divided by
    // the number of threads.
    state.counters["each"] =
        benchmark::Counter(static_cast<double>(iterations),
                           static_cast<benchmark::Counter::Flags>(
                               benchmark::Counter::kAvgThreadsRate | benchmark::Counter::kInvert));
    if (first) {
        if (row.teardown != nullptr) row.teardown(&row, shared_state);
        report(state);
    }
    if (wrong != 0) {
        const std::string message = std::to_string(wrong) + " of " + std::to_string(iterations) +
                                    " answers were not what the row is about";
        state.SkipWithError(message.c_str());
    }
}

void register_row(const bench_row &row, const bench_settings &settings) {
    auto *registered = benchmark::RegisterBenchmark(
        row.name, [&row](benchmark::State &state) { run_row(state, row); });
    registered->UseRealTime();
    if (row.one_thread) {
        registered->Threads(1);
        return;
    }
    for (size_t i = 0; i < settings.thread_counts; i++)
        registered->Threads(static_cast<int>(settings.threads[i]));
}

} // namespace

int bench_measure(const bench_row *rows, size_t row_count, const bench_settings *settings,
                  int argc, char **argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    for (size_t i = 0; i < row_count; i++) register_row(rows[i], *settings);
    Plain<benchmark::ConsoleReporter> console(benchmark::ConsoleReporter::OO_None);
    Plain<benchmark::JSONReporter> file;
    const size_t ran = settings->json != nullptr
                           ? benchmark::RunSpecifiedBenchmarks(&console, &file)
                           : benchmark::RunSpecifiedBenchmarks(&console);
    benchmark::Shutdown();
    return ran == 0 ? 1 : 0;
}
