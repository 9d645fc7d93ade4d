// The subcommands. Each adds itself to the application, with a callback that runs it. Those that touch tensors are in a
// second program, gyre-engine, which gyre executes when one of them is asked for: loading libtorch costs 0.3 s and 160
// MB that preparing text and simulating schedules do without.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/core/explain.h"
#include "programs.h"

namespace gyre::app {

// Add all subcommands of a program. gyre itself only lists those of the engine by name.
void add_gyre_commands(CLI::App& app);    // gyre.cpp
void add_engine_commands(CLI::App& app);  // engine.cpp

// Commands of gyre itself.
void add_init(CLI::App& app);      // init.cpp
void add_launch(CLI::App& app);    // launch.cpp
void add_prepare(CLI::App& app);   // prepare.cpp
void add_report(CLI::App& app);    // report.cpp
void add_schedule(CLI::App& app);  // schedule.cpp
void add_serve(CLI::App& app);     // serve.cpp
void add_simulate(CLI::App& app);  // simulate.cpp
void add_study(CLI::App& app);     // study.cpp
void add_top(CLI::App& app);       // top.cpp

// Commands of gyre-engine.
void add_train(CLI::App& app);          // train.cpp
void add_eval(CLI::App& app);           // eval.cpp
void add_generate(CLI::App& app);       // generate.cpp
void add_plan(CLI::App& app);           // plan.cpp
void add_diagnose(CLI::App& app);       // diagnose.cpp
void add_info(CLI::App& app);           // info.cpp
void add_import(CLI::App& app);         // import.cpp
void add_export(CLI::App& app);         // export.cpp
void add_measure_links(CLI::App& app);  // measure_links.cpp

struct CommandName {
  const char* name;
  const char* meaning;
};
inline constexpr CommandName kTrain{"train", "Train a model as CONFIG.toml says"};
inline constexpr CommandName kEval{"eval", "Measure the validation loss of a trained run"};
inline constexpr CommandName kGenerate{"generate", "Continue a prompt with a trained run"};
inline constexpr CommandName kPlan{"plan", "Measure the model's layers here and rank the schedules"};
inline constexpr CommandName kDiagnose{"diagnose",
                                       "Measure what delay does to a trained run: Hessian norm, late updates"};
inline constexpr CommandName kImport{"import", "Make a run of a model of Hugging Face's transformers or of llm.c"};
inline constexpr CommandName kExport{"export", "Write a run's model for Hugging Face's transformers or for llm.c"};
inline constexpr CommandName kInfo{"info", "Print what this build has and what machine it sees"};
inline constexpr CommandName kMeasureLinks{"measure-links",
                                           "Measure what messages between ranks cost; under a launcher"};
inline constexpr CommandName kEngineCommands[] = {kTrain,  kEval,   kGenerate, kPlan,        kDiagnose,
                                                  kImport, kExport, kInfo,     kMeasureLinks};

// Sets what both programs have: description, version, form of the help. command_line.cpp
void describe_program(CLI::App& app);
// Parses the command line, runs the chosen command and returns the exit code. `explain` turns a library's exception
// into one line. command_line.cpp
int run_command_line(int argc, char** argv, void (*add_commands)(CLI::App&),
                     std::string (*explain)(const std::exception&) = explain_exception);

// Says what is wrong with the command line, in one line of our own words. parse_errors.cpp
std::string explain(const CLI::App& app, const CLI::Error& error);
// Checks of paths: not empty, and for output that it can be written. A full disk shows later.
CLI::Validator some_path();
CLI::Validator file_to_write(std::string_view beginning);
CLI::Validator directory_to_make();
// Words that shell completion offers for a value; checks nothing.
CLI::Validator offers(const std::vector<std::string>& words);
inline constexpr const char* kOffers = "words ";  // prefix of such a validator's name
// Explains a path that cannot be examined: permissions, a name too long, a loop of links.
std::string explain(const std::filesystem::filesystem_error& error);
// The path of gyre-engine, beside gyre, for that command. Throws RunError if it is not there, or if there is too little
// address space to load it. engine_program.cpp
std::filesystem::path engine_program(std::string_view command);

}  // namespace gyre::app
