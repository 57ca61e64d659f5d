#!/bin/bash
# Bad input from users: parameters, components, files, the command line.
. "$STRATA_SOURCE/tests/hostile/lib.sh"

for launch in "" "strata-run -n 2"; do
    run 2 env STRATA_MCA_btl=slef $launch "$hostile" short
    says 'btl = "slef" \(environment STRATA_MCA_btl\): there is no btl component "slef"; did you mean "self"\?'
    run 2 env STRATA_MCA_btl_sm_eager_limt=4k $launch "$hostile" short
    says 'no parameter "btl_sm_eager_limt" .*did you mean "btl_sm_eager_limit"\?'
    run 2 env STRATA_MCA_btl_sm_eager_limit=fast $launch "$hostile" short
    says 'btl_sm_eager_limit = "fast" .*: not a valid size; allowed: '
    run 2 env STRATA_MCA_btl_sm_rings=-5 $launch "$hostile" short
    says 'btl_sm_rings = "-5" .*: out of range; allowed: 0 '
    run 2 env STRATA_MCA_pml=^ob1 STRATA_MCA_nosuchthing=1 $launch "$hostile" short
    says 'no parameter "nosuchthing"'
done
run 2 strata-run -n 2 --mca btl nosuch "$hostile" short
says 'there is no btl component "nosuch"; there are: .*self'
run 2 strata-run -n 2 --mca btl_sm_nosuch 1 "$hostile" short
says 'no parameter "btl_sm_nosuch"'

printf 'btl_sm_rings = 4\n\n# a comment\nthis line has no sign\n' >"$work/bad.conf"
run 2 env STRATA_MCA_mca_param_files="$work/bad.conf" "$hostile" short
says "bad.conf:4"
printf 'btl_sm_eager_limit = 99q\n' >"$work/bad2.conf"
run 2 env STRATA_MCA_mca_param_files="$work/bad2.conf" "$hostile" short
says "bad2.conf"
head -c 100000 /dev/urandom >"$work/noise.conf"
run 2 env STRATA_MCA_mca_param_files="$work/noise.conf" "$hostile" short
says "noise.conf:"
run 2 strata-run --mca mca_param_files "$work/bad.conf" -n 2 "$hostile" short
says "bad.conf:4"
printf 'btl_sm_rings = 4\r\n\tbtl_sm_eager_limit\t=\t4k   \n' >"$work/good.conf"
run 0 env STRATA_MCA_mca_param_files="$work/good.conf" "$hostile" short

run 2 strata-run -n 0 "$hostile" short
says '^strata-run: -n 0: a job has at least 1 rank'
run 2 strata-run -n -3 "$hostile" short
says '^strata-run: -n -3: a job has at least 1 rank'
run 2 strata-run -n many "$hostile" short
says '^strata-run: -n many: not a number'
run 2 strata-run -n 2
says 'PROGRAM is missing'
run 2 strata-run --nonsense -n 2 "$hostile" short
says "unrecognized option '--nonsense'"
run 127 strata-run -n 2 "$work/no-such-program"
says "no-such-program"
run 126 strata-run -n 2 "$work/bad.conf"
says 'bad.conf: not an executable file'
run 2 strata-info --param btl nosuch
says 'there is no btl component "nosuch"; there are: '

run 0 strata-run -n 2 "$hostile" badrank
[ "$(grep -c '^rank outside the communicator$' "$work/err")" = 2 ] || complain "not both ranks are told"
run 0 strata-run -n 2 "$hostile" short
finish
