"""Fuzz targets: one source, fuzzed with clang, replayed with whatever compiler the build has."""

load("//bazel:cc.bzl", "WARNINGS", "hb_test")

# hb_test's tests are held to these too.
_FUZZ_WARNINGS = [w for w in WARNINGS if w not in ["-Wconversion", "-Wsign-conversion"]]

def hb_fuzz(name, srcs, deps = [], corpus = [], fuzz_deps = []):
    """A libFuzzer program and a test that replays its corpus.

    NAME is the program: ./bazelw run --config=fuzz //tests/fuzz:NAME -- FOLDER. NAME_test is the
    test, in every configuration.

    Args:
      name: ends with _fuzz by habit.
      srcs: define LLVMFuzzerTestOneInput.
      deps: what is fuzzed.
      corpus: inputs that are replayed, files.
      fuzz_deps: what hb_test adds by itself, where the target uses it too.
    """
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        copts = _FUZZ_WARNINGS,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],  # has no main without --config=fuzz
        deps = deps + fuzz_deps,
    )
    hb_test(
        name = name + "_test",
        srcs = srcs + ["//tests/fuzz:replay.c"],
        args = ["$(location %s)" % file for file in corpus],
        data = corpus,
        deps = deps,
    )
