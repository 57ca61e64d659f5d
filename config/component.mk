# How every component is built, as a plugin or into the library. config/discover.sh makes one copy per component
# folder: @NAME@ is framework_component, @DIR@ its folder, @VAR@ the folder as automake spells it. Components that only
# tests use (@KIND@ is check) are plugins in both forms of the build and are not installed.
if BUILD_@NAME@
noinst_LTLIBRARIES += @DIR@/lib@NAME@.la
@VAR@_lib@NAME@_la_SOURCES = @SOURCES@
@VAR@_lib@NAME@_la_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/@DIR@ $(@NAME@_CPPFLAGS)
@VAR@_lib@NAME@_la_CFLAGS = $(COMMON_CFLAGS)
@VAR@_lib@NAME@_la_LIBADD = $(@NAME@_LIBS)
if @KIND@_IS_STATIC
STATIC_COMPONENT_LIBS += @DIR@/lib@NAME@.la
else
@KIND@_LTLIBRARIES += plugins/strata_@NAME@.la
plugins_strata_@NAME@_la_SOURCES =
plugins_strata_@NAME@_la_LIBADD = @DIR@/lib@NAME@.la
plugins_strata_@NAME@_la_LDFLAGS = $(PLUGIN_LDFLAGS)
EXTRA_plugins_strata_@NAME@_la_DEPENDENCIES = libstrata.la
endif
endif
