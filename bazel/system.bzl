"""The libraries and tools that come from the operating system's packages."""

_LIBRARY_BUILD = """
cc_library(
    name = "{name}",
    defines = {defines},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

def _run(ctx, arguments, missing):
    result = ctx.execute(arguments)
    if result.return_code != 0:
        fail("%s: %s\n%s" % (ctx.name, missing, result.stderr))
    return result.stdout.strip()

def _pkg_config_library_impl(ctx):
    missing = "install the Debian package " + ctx.attr.debian_package
    pkg_config = ctx.which("pkg-config")
    if not pkg_config:
        fail("pkg-config is not on PATH")
    for package in ctx.attr.packages:
        constraint = [package]
        if ctx.attr.at_least:
            constraint = ["--atleast-version=" + ctx.attr.at_least, package]
        _run(ctx, [pkg_config, "--exists", "--print-errors"] + constraint, missing)

    # Shared linking needs only the named libraries: those behind them are the
    # shared object's own affair. That leaves out Abseil's forty from grpc.pc.
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("BUILD", _LIBRARY_BUILD.format(
        name = ctx.name,
        defines = repr(ctx.attr.defines),
        linkopts = repr(["-l" + lib for lib in ctx.attr.libs]),
    ))

pkg_config_library = repository_rule(
    implementation = _pkg_config_library_impl,
    attrs = {
        "at_least": attr.string(),
        "debian_package": attr.string(mandatory = True),
        "defines": attr.string_list(),
        "libs": attr.string_list(mandatory = True),
        "packages": attr.string_list(mandatory = True),
    },
    configure = True,
    local = True,
    environ = ["PATH", "PKG_CONFIG_PATH"],
)

def _optional_library_impl(ctx):
    pkg_config = ctx.which("pkg-config")
    found = pkg_config and ctx.execute([pkg_config, "--exists", ctx.attr.package]).return_code == 0
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("BUILD", _LIBRARY_BUILD.format(
        name = ctx.name,
        defines = repr(["HB_HAVE_" + ctx.name.upper()] if found else []),
        linkopts = repr(["-l" + ctx.attr.lib] if found else []),
    ))

optional_library = repository_rule(
    implementation = _optional_library_impl,
    attrs = {
        "lib": attr.string(mandatory = True),
        "package": attr.string(mandatory = True),
    },
    configure = True,
    local = True,
    environ = ["PATH", "PKG_CONFIG_PATH"],
    doc = "A library that may be missing: then it is empty, and HB_HAVE_NAME is not defined.",
)

_PROTOBUF_BUILD = """
package(default_visibility = ["//visibility:public"])

exports_files(["protoc-c"])

[proto_library(
    name = name + "_proto",
    srcs = ["include/google/protobuf/%s.proto" % name],
    strip_import_prefix = "include",
) for name in ["any", "descriptor", "duration", "empty", "timestamp"]]
"""

def _protobuf_repository_impl(ctx):
    protoc = ctx.which("protoc-c")
    if not protoc:
        fail("protoc-c: install the Debian package protobuf-c-compiler")
    protos = ctx.path("/usr/include/google/protobuf/timestamp.proto")
    if not protos.exists:
        fail("google/protobuf/*.proto: install the Debian package libprotobuf-dev")
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("BUILD", _PROTOBUF_BUILD)
    ctx.symlink(protoc, "protoc-c")
    ctx.symlink("/usr/include/google/protobuf", "include/google/protobuf")

protobuf_repository = repository_rule(
    implementation = _protobuf_repository_impl,
    configure = True,
    local = True,
    environ = ["PATH"],
)

# What librocksdb.a needs besides itself; Debian's rocksdb.pc does not say it.
_ROCKSDB_STATIC_BUILD = """
cc_library(
    name = "rocksdb_static",
    linkopts = [
        "-l:librocksdb.a",
        # See storage/rocksdb/crc32c.c.
        "-Wl,--wrap=_ZN7rocksdb6crc32c6ExtendEjPKcm",
        "-lstdc++",
        "-lsnappy",
        "-lz",
        "-lbz2",
        "-llz4",
        "-lzstd",
        "-luring",
        "-ltbb",
        "-lgflags",
        "-ldl",
        "-lpthread",
    ],
    visibility = ["//visibility:public"],
)
"""

def _rocksdb_static_repository_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("BUILD", _ROCKSDB_STATIC_BUILD)

rocksdb_static_repository = repository_rule(
    implementation = _rocksdb_static_repository_impl,
    configure = True,
    local = True,
)

def system_repositories():
    for name, package, libs, pc in [
        ("cmocka", "libcmocka-dev", ["cmocka"], ["cmocka"]),
        ("crypto", "libssl-dev", ["crypto"], ["libcrypto"]),
        ("grpc", "libgrpc-dev", ["grpc", "gpr"], ["grpc", "gpr"]),
        ("inih", "libinih-dev", ["inih"], ["inih"]),
        ("jansson", "libjansson-dev", ["jansson"], ["jansson"]),
        ("protobuf_c", "libprotobuf-c-dev", ["protobuf-c"], ["libprotobuf-c"]),
        ("rocksdb", "librocksdb-dev", ["rocksdb"], ["rocksdb"]),
        ("xxhash", "libxxhash-dev", ["xxhash"], ["libxxhash"]),
    ]:
        pkg_config_library(
            name = name,
            debian_package = package,
            libs = libs,
            packages = pc,
        )
    optional_library(
        name = "nats",
        lib = "nats",
        package = "libnats",
    )
    rocksdb_static_repository(name = "rocksdb_static")
    protobuf_repository(name = "protobuf")
