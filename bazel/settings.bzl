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
