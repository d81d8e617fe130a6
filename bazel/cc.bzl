"""C targets of Holdback: cc_* with the project's warnings, each one an error."""

# Each of these found a bug somewhere; the reasons stand in CONTRIBUTING.md.
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wold-style-definition",
    "-Wformat=2",
    "-Wvla",
    "-Wswitch-enum",
    "-Wundef",
    "-Wpointer-arith",
    "-Wcast-align",
    "-Wwrite-strings",
    "-Wimplicit-fallthrough",
    "-Wnull-dereference",
]

# cmocka's macros cast between integers and pointers, and gcc does not know that an assertion of
# cmocka's does not return; a test file is held to the rest.
_TEST_WARNINGS = [w for w in WARNINGS if w not in [
    "-Wconversion",
    "-Wnull-dereference",
    "-Wsign-conversion",
]]

def hb_library(name, copts = [], testonly = False, **kwargs):
    """A cc_library with the project's warnings."""
    native.cc_library(
        name = name,
        testonly = testonly,
        copts = (_TEST_WARNINGS if testonly else WARNINGS) + copts,
        linkstatic = True,
        **kwargs
    )

def hb_binary(name, copts = [], **kwargs):
    """A cc_binary with the project's warnings."""
    native.cc_binary(name = name, copts = WARNINGS + copts, **kwargs)

def hb_test(name, srcs, deps = [], copts = [], size = "small", **kwargs):
    """A cmocka test with the project's warnings.

    Args:
      name: as usual; by habit the file's name without .c.
      srcs: as usual.
      deps: what is tested; cmocka is added.
      copts: added to the warnings.
      size: small (60 s) unless said.
      **kwargs: to cc_test.
    """
    native.cc_test(
        name = name,
        srcs = srcs,
        copts = _TEST_WARNINGS + copts,
        size = size,
        linkstatic = True,
        deps = deps + ["@cmocka"],
        **kwargs
    )
