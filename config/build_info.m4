dnl What `strata-info --build` says: how this Strata was configured, and with which libraries. ST_BUILD_NAME: $st_NAME, quoted for C.
AC_DEFUN([ST_BUILD_TEXT],
    [$2=$(AS_ECHO(["$$2"]) | sed 's/[[\\"]]/\\&/g')
     AC_DEFINE_UNQUOTED([$1], ["$$2"], [$3])])
st_modversion() {
    $PKG_CONFIG --modversion "$[]1" 2>/dev/null || AS_ECHO([none])
}
st_compiler=$($CC --version 2>/dev/null | sed 1q)
st_flags="$CFLAGS $SANITIZER_FLAGS $COVERAGE_FLAGS"
st_configure=$ac_configure_args
st_pmix=$(st_modversion pmix)
st_hwloc=$(st_modversion hwloc)
st_verbs=$(st_modversion libibverbs)
st_openmpi="none: $embed_openmpi_why"
AS_IF([test $embed_openmpi = yes],
    [st_openmpi=$($MPICC_OPENMPI --showme:version | sed -n 's/.*Open MPI \([[0-9.]]*\).*/\1/p')])
ST_BUILD_TEXT([ST_BUILD_COMPILER], [st_compiler], [The compiler])
ST_BUILD_TEXT([ST_BUILD_FLAGS], [st_flags], [Flags of the compiler])
ST_BUILD_TEXT([ST_BUILD_CONFIGURE], [st_configure], [Arguments of configure])
ST_BUILD_TEXT([ST_BUILD_PMIX], [st_pmix], [Version of PMIx])
ST_BUILD_TEXT([ST_BUILD_HWLOC], [st_hwloc], [Version of hwloc])
ST_BUILD_TEXT([ST_BUILD_VERBS], [st_verbs], [Version of libibverbs])
ST_BUILD_TEXT([ST_BUILD_OPENMPI], [st_openmpi], [Version of Open MPI that the plugin is for])
