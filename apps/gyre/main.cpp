// gyre: the command line. Exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdio>
#include <exception>
#include <new>

#include "command.h"
#include "gyre/core/error.h"

namespace {

// Activations come and go at every microbatch. Left to itself the allocator maps and unmaps the large ones each time,
// and the page faults cost more than the arithmetic; so large blocks stay in its own heap.
void keep_large_blocks_in_the_heap() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int fail(const char* what, int exit_code) {
  fmt::print(stderr, "gyre: {}\n", what);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  keep_large_blocks_in_the_heap();
  CLI::App app{"gyre trains transformer language models through asynchronous pipelines"};
  app.name("gyre");
  app.require_subcommand(1);
  app.set_version_flag("--version", GYRE_VERSION);
  app.get_formatter()->column_width(34);
  app.option_defaults()->always_capture_default();
  gyre::app::add_prepare(app);
  gyre::app::add_train(app);
  gyre::app::add_eval(app);
  gyre::app::add_generate(app);
  gyre::app::add_info(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::CallForHelp& request) {
    return app.exit(request);
  } catch (const CLI::CallForVersion& request) {
    return app.exit(request);
  } catch (const CLI::RuntimeError& end) {
    return end.get_exit_code();
  } catch (const CLI::Error& error) {
    return fail(fmt::format("{}; see gyre --help", error.what()).c_str(), 2);
  } catch (const gyre::Error& error) {
    return fail(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return fail("out of memory; make microbatch, context or the model smaller", 1);
  } catch (const std::exception& error) {
    return fail(fmt::format("unexpected failure: {}", error.what()).c_str(), 1);
  }
}
