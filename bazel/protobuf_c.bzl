"""C code for protocol buffers, made by protobuf-c's compiler."""

def _protobuf_c_sources_impl(ctx):
    info = ctx.attr.proto[ProtoInfo]
    suffix = ".pb-c"
    sources = []
    headers = []
    names = []
    root = None
    for source in info.direct_sources:
        name = source.path
        prefix = info.proto_source_root + "/"
        if info.proto_source_root != "." and name.startswith(prefix):
            name = name[len(prefix):]
        names.append(name)
        stem = "_gen/" + name[:-len(".proto")] + suffix
        sources.append(ctx.actions.declare_file(stem + ".c"))
        headers.append(ctx.actions.declare_file(stem + ".h"))
        root = sources[-1].path[:-len(name[:-len(".proto")] + suffix + ".c") - 1]
    arguments = ctx.actions.args()
    arguments.add_all(info.transitive_proto_path, format_each = "--proto_path=%s")
    arguments.add("--c_out=" + root)
    arguments.add_all(names)
    ctx.actions.run(
        outputs = sources + headers,
        inputs = info.transitive_sources,
        executable = ctx.executable._protoc,
        arguments = [arguments],
        mnemonic = "ProtocC",
        progress_message = "Generating C from %s" % ctx.attr.proto.label,
    )
    return [
        DefaultInfo(files = depset(sources + headers)),
        OutputGroupInfo(sources = depset(sources), headers = depset(headers)),
    ]

protobuf_c_sources = rule(
    implementation = _protobuf_c_sources_impl,
    attrs = {
        "proto": attr.label(mandatory = True, providers = [ProtoInfo]),
        "_protoc": attr.label(
            default = "@protobuf//:protoc-c",
            allow_single_file = True,
            cfg = "exec",
            executable = True,
        ),
    },
)

def protobuf_c_library(name, proto, deps = [], visibility = None):
    """A cc_library of the C code for one proto_library.

    Args:
      name: the cc_library's name.
      proto: the proto_library.
      deps: the protobuf_c_library of each proto_library that it imports.
      visibility: as usual.
    """
    protobuf_c_sources(
        name = name + "_sources",
        proto = proto,
        visibility = ["//visibility:private"],
    )
    native.filegroup(
        name = name + "_c",
        srcs = [name + "_sources"],
        output_group = "sources",
    )
    native.filegroup(
        name = name + "_h",
        srcs = [name + "_sources"],
        output_group = "headers",
    )
    native.cc_library(
        name = name,
        srcs = [name + "_c"],
        hdrs = [name + "_h"],
        copts = ["-w"],
        includes = ["_gen"],
        deps = deps + ["@protobuf_c"],
        visibility = visibility,
    )

def _descriptor_set_c_impl(ctx):
    sets = depset(transitive = [d[ProtoInfo].transitive_descriptor_sets for d in ctx.attr.protos])
    out = ctx.actions.declare_file(ctx.attr.out)
    args = ctx.actions.args()
    args.add(ctx.attr.symbol)
    args.add(out)
    args.add_all(sets)
    ctx.actions.run(
        outputs = [out],
        inputs = sets,
        executable = ctx.executable._embed,
        arguments = [args],
        mnemonic = "EmbedDescriptors",
    )
    return [DefaultInfo(files = depset([out]))]

descriptor_set_c = rule(
    implementation = _descriptor_set_c_impl,
    attrs = {
        "out": attr.string(mandatory = True),
        "protos": attr.label_list(mandatory = True, providers = [ProtoInfo]),
        "symbol": attr.string(mandatory = True),
        "_embed": attr.label(
            default = "//bazel:embed",
            cfg = "exec",
            executable = True,
        ),
    },
)
