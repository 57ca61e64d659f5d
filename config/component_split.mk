# How a component with a folder plugin/ is built: as component.mk has it, but in two objects. What lies in plugin/ is the
# plugin; the rest is the body, which the plugin loads when it has a use for it (sdk/component_body.h). In a library with
# components linked in, and for unit tests, both are one.
if BUILD_@NAME@
noinst_LTLIBRARIES += @DIR@/plugin/libplugin.la @DIR@/libbody.la @DIR@/lib@NAME@.la
@VAR@_plugin_libplugin_la_SOURCES = @PLUGIN_SOURCES@
@VAR@_plugin_libplugin_la_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/@DIR@ $(@NAME@_CPPFLAGS)
@VAR@_plugin_libplugin_la_CFLAGS = $(COMMON_CFLAGS)
@VAR@_libbody_la_SOURCES = @SOURCES@
@VAR@_libbody_la_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/@DIR@ $(@NAME@_CPPFLAGS)
@VAR@_libbody_la_CFLAGS = $(COMMON_CFLAGS)
@VAR@_libbody_la_LIBADD = $(@NAME@_LIBS)
@VAR@_lib@NAME@_la_SOURCES =
@VAR@_lib@NAME@_la_LIBADD = @DIR@/plugin/libplugin.la @DIR@/libbody.la
if @KIND@_IS_STATIC
STATIC_COMPONENT_LIBS += @DIR@/lib@NAME@.la
else
@KIND@_LTLIBRARIES += plugins/strata_@NAME@.la plugins/@NAME@.la
plugins_strata_@NAME@_la_SOURCES =
plugins_strata_@NAME@_la_LIBADD = @DIR@/plugin/libplugin.la
plugins_strata_@NAME@_la_LDFLAGS = $(PLUGIN_LDFLAGS)
EXTRA_plugins_strata_@NAME@_la_DEPENDENCIES = libstrata.la
plugins_@NAME@_la_SOURCES =
plugins_@NAME@_la_LIBADD = @DIR@/libbody.la
plugins_@NAME@_la_LDFLAGS = $(PLUGIN_LDFLAGS)
EXTRA_plugins_@NAME@_la_DEPENDENCIES = libstrata.la
endif
endif
