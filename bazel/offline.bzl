"""Local stand-ins for the repositories that Bazel 4's embedded tools load.

Bazel's built-in WORKSPACE suffix declares rules_cc (and others) with `maybe`,
so a repository of that name that is declared here wins and nothing is fetched.
"""

_RULES_CC_DEFS = """
cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
"""

_RULES_JAVA_DEFS = """
java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_runtime = native.java_runtime
java_toolchain = native.java_toolchain
"""

# Every cc_test names a coverage merger; Holdback does not measure coverage this way.
_REMOTE_COVERAGE_TOOLS_BUILD = """
package(default_visibility = ["//visibility:public"])

filegroup(name = "lcov_merger")

filegroup(name = "coverage_report_generator")
"""

def _files_repository_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for path, content in ctx.attr.files.items():
        ctx.file(path, content)

files_repository = repository_rule(
    implementation = _files_repository_impl,
    attrs = {"files": attr.string_dict(mandatory = True)},
    doc = "A repository made of the given files, with nothing to download.",
)

def offline_repositories():
    files_repository(
        name = "rules_cc",
        files = {
            "cc/BUILD": "exports_files([\"defs.bzl\"])\n",
            "cc/defs.bzl": _RULES_CC_DEFS,
        },
    )
    files_repository(
        name = "rules_java",
        files = {
            "java/BUILD": "exports_files([\"defs.bzl\"])\n",
            "java/defs.bzl": _RULES_JAVA_DEFS,
        },
    )
    files_repository(
        name = "remote_coverage_tools",
        files = {"BUILD": _REMOTE_COVERAGE_TOOLS_BUILD},
    )
