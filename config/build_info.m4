dnl What `strata-info --build` says: how this Strata was configured, and with which libraries.
AC_DEFUN([ST_BUILD_TEXT],
    [AC_DEFINE_UNQUOTED([$1], ["$(AS_ECHO(["$2"]) | sed 's/[[\\"]]/\\&/g')"], [$3])])
st_modversion() {
    $PKG_CONFIG --modversion "$[]1" 2>/dev/null || AS_ECHO([none])
}
ST_BUILD_TEXT([ST_BUILD_COMPILER], [$($CC --version 2>/dev/null | sed 1q)], [The compiler])
ST_BUILD_TEXT([ST_BUILD_FLAGS], [$CFLAGS $SANITIZER_FLAGS $COVERAGE_FLAGS], [Flags of the compiler])
ST_BUILD_TEXT([ST_BUILD_CONFIGURE], [$ac_configure_args], [Arguments of configure])
ST_BUILD_TEXT([ST_BUILD_PMIX], [$(st_modversion pmix)], [Version of PMIx])
ST_BUILD_TEXT([ST_BUILD_HWLOC], [$(st_modversion hwloc)], [Version of hwloc])
ST_BUILD_TEXT([ST_BUILD_VERBS], [$(st_modversion libibverbs)], [Version of libibverbs])
ST_BUILD_TEXT([ST_BUILD_OPENMPI], [$(test $embed_openmpi = yes && $MPICC_OPENMPI --showme:version |
    sed -n 's/.*Open MPI \([[0-9.]]*\).*/\1/p' || AS_ECHO(["none: $embed_openmpi_why"]))],
    [Version of Open MPI that the plugin is for])
