# strata-machines: network namespaces as machines, for `strata-perf compare --cluster`; tests/cluster/lib.sh sources the script.
EXTRA_DIST += tools/machines/machines.mk tools/machines/machines.sh tools/machines/README.md
CLEANFILES += strata-machines
pkglibexec_SCRIPTS += strata-machines
strata-machines: $(srcdir)/tools/machines/machines.sh
	$(AM_V_GEN)cp $(srcdir)/tools/machines/machines.sh $@ && chmod +x $@
