"""Settings that a command line can choose."""

def _string_setting_impl(ctx):
    if ctx.build_setting_value not in ctx.attr.values:
        fail("%s must be one of %s, not '%s'" % (ctx.label, ", ".join(ctx.attr.values), ctx.build_setting_value))
    return []

string_setting = rule(
    implementation = _string_setting_impl,
    attrs = {"values": attr.string_list(mandatory = True)},
    build_setting = config.string(flag = True),
    doc = "A setting with a closed set of values.",
)

def _plant_impl(_settings, _attr):
    return {"//bazel:planted_bugs": "on"}

_plant = transition(
    implementation = _plant_impl,
    inputs = [],
    outputs = ["//bazel:planted_bugs"],
)

def _with_planted_bugs_impl(ctx):
    program = ctx.attr.program[0][DefaultInfo]
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.executable.program, is_executable = True)
    return [DefaultInfo(
        executable = out,
        runfiles = ctx.runfiles([out]).merge(program.default_runfiles),
    )]

with_planted_bugs = rule(
    implementation = _with_planted_bugs_impl,
    attrs = {
        "program": attr.label(cfg = _plant, executable = True, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    doc = "The same program from a build in which bugs can be switched on (base/planted.h).",
    executable = True,
)
