#!/bin/sh
# Stands in front of the real mpiexec where the environment cannot do the work.
#
#   mpiexec.sh, installed as mpiexec, mpirun or mpiexec.hydra, first on PATH
#
#   MPI_TRAINER_REAL_MPIEXEC  the real program; else the next of this name on PATH
#   MPI_TRAINER_RANK_WRAPPER  Hydra only: put this program before every rank's program
#   MPI_TRAINER_TAG_OPTION    the option, one word, that puts the rank before every line
#   MPI_TRAINER_STDOUT        the file that standard output must be for that: output that a
#                             script captures or redirects stays as the program wrote it
#
#   mt_agent                  set by whoever reads this script: the folder that it is in. Without
#                             it, mpirun reads and prints by itself; see streams
#
# Names of variables begin with mt_: one that the job has too would reach its ranks changed.
#
# Guarantee: a command line that is not understood in full (unknown option, -configfile,
# no program) goes to the real mpiexec exactly as it came. No argument is ever re-quoted.
# Danger: the option arities below are those of Hydra 4.0 to 5.0. Without
# MPI_TRAINER_RANK_WRAPPER nothing is parsed, so other dialects are safe.

mt_self=${0##*/}

# Sets `mt_real` to the first of our own name on PATH that is not this file, reached by any spelling
# of its folder, so that the shim can never start itself.
find_real() {
    mt_rest=$PATH:
    while [ -n "$mt_rest" ] && [ -z "$mt_real" ]; do
        mt_entry=${mt_rest%%:*}
        mt_rest=${mt_rest#*:}
        mt_entry=${mt_entry:-.}/$mt_self
        if [ ! -x "$mt_entry" ] || [ -d "$mt_entry" ]; then continue; fi
        # shellcheck disable=SC3013 # dash, busybox and bash know -ef, and POSIX since 2024
        [ "$mt_entry" -ef "$0" ] || mt_real=$mt_entry
    done
}

mt_real=${MPI_TRAINER_REAL_MPIEXEC-}
[ -n "$mt_real" ] || find_real
if [ -z "$mt_real" ]; then
    echo "$mt_self: no MPI found on PATH behind $0; install one or set MPI_TRAINER_REAL_MPIEXEC" >&2
    exit 127
fi

mt_wrapper=${MPI_TRAINER_RANK_WRAPPER-}
mt_tag=
# shellcheck disable=SC3013
if [ -n "${MPI_TRAINER_TAG_OPTION-}" ] && [ "/proc/$$/fd/1" -ef "${MPI_TRAINER_STDOUT-}" ]; then
    mt_tag=$MPI_TRAINER_TAG_OPTION
fi
# Open MPI up to 4; the next version brings prterun, and is not asked.
is_openmpi4() {
    [ ! -e "${mt_real%/*}/prterun" ] || return 1
    case $("$mt_real" --version) in *"(Open MPI) "[1-4].*) ;; *) return 1 ;; esac
} 2>/dev/null

# How streams puts the lines of ranks together: Hydra tears them, and so does Open MPI 4, which drops
# text where it marks lines that are short.
mt_mark=
if [ -n "$mt_wrapper${I_MPI_GTOOL-}" ]; then
    [ -n "$mt_tag" ] || mt_mark=hydra
elif [ "$mt_tag" = --tag-output ] || [ -n "${OMPI_MCA_orte_fork_agent-}" ] && is_openmpi4; then
    mt_mark=openmpi${mt_tag:+-marked} mt_tag=
    # shellcheck disable=SC3013
    [ "${OMPI_MCA_orte_fork_agent-}" -ef "${mt_agent-}/rank" ] || mt_mark=
    for mt_arg in "$@"; do
        case $mt_arg in
            -tag-output | --tag-output) mt_mark=${mt_mark:+openmpi-marked} ;;
            -timestamp-output | --timestamp-output | -xml* | --xml* | -output-filename* | \
                --output-filename*) mt_mark='' && break ;;
        esac
    done
fi
# A shim reached again from below (mpirun calling mpiexec) must not act twice.
unset MPI_TRAINER_RANK_WRAPPER MPI_TRAINER_TAG_OPTION MPI_TRAINER_STDOUT

# Ranks of one run have this in common, where MPI itself gives them no such name.
MPI_TRAINER_RUN=$$
export MPI_TRAINER_RUN

# Tells the launcher that ranks will start, and that each will be seen: the bound on a start counts
# from here. Opened for both, so that it never waits for a reader. Each of them will be given its
# standard input by us.
mt_input=
announce() {
    mt_input=1
    mt_events=${MPI_TRAINER_SCRATCH-}/launch/events
    [ ! -p "$mt_events" ] || echo "mpirun $$" 1<>"$mt_events"
}
if [ -n "${OMPI_MCA_orte_fork_agent-}${PRTE_MCA_odls_base_exec_agent-}${I_MPI_GTOOL-}" ]; then
    announce
fi
# Hydra may drop what ranks have said last when one of them calls MPI_Abort.
keep_words() {
    export MPI_TRAINER_KEEP_WORDS=1
}
[ -z "${I_MPI_GTOOL-}" ] || keep_words

# Becomes the real mpiexec with the arguments $@, or what carries its streams past it.
start() {
    # Intel's mpirun calls mpiexec.hydra: its streams are carried already.
    if [ -z "${mt_agent-}" ] || [ -z "${MPI_TRAINER_COMMAND-}" ] || [ -n "${OMPI_MPI_TRAINER_INPUT-}" ]
    then
        exec "$mt_real" "$@"
    fi
    # Whose input it is has been said by the caller then.
    for mt_arg in "$@"; do
        case $mt_arg in --stdin | -stdin | --stdin=*) mt_input= ;; esac
    done
    MPI_TRAINER_STREAMS=$MPI_TRAINER_COMMAND MPI_TRAINER_INPUT=$mt_input MPI_TRAINER_MARK=$mt_mark
    export MPI_TRAINER_STREAMS MPI_TRAINER_INPUT MPI_TRAINER_MARK
    unset MPI_TRAINER_COMMAND
    exec /bin/sh "$mt_agent/streams" run "$mt_real" "$@"
}

# Prints how many arguments follow the Hydra option $1; fails for an option not known.
arity() {
    mt_option=${1#-}
    mt_option=${mt_option#-}
    case $mt_option in
        *=*) mt_known=${mt_option%%=*} ;;
        *) mt_known=$mt_option ;;
    esac
    case $mt_known in
        env | genv) mt_words=2 ;;
        n | np | ppn | f | hostfile | machinefile | host | hosts | hostlist | machine | machines | \
            machinelist | rankmap | wdir | envlist | genvlist | launcher | launcher-exec | \
            bootstrap | bootstrap-exec | rmk | topolib | binding | bind-to | map-by | membind | \
            demux | iface | localhost | nameserver | order-nodes | usize | gpus-per-proc | \
            gpu-subdevs-per-proc | memory-alloc-kinds | output-from | prepend-pattern | \
            outfile | outfile-pattern | errfile | errfile-pattern) mt_words=1 ;;
        envnone | envall | genvnone | genvall | enable-x | disable-x | l | prepend-rank | \
            enable-auto-cleanup | disable-auto-cleanup | enable-hostname-propagation | \
            disable-hostname-propagation | hybrid-hosts | pmi-port | print-all-exitcodes | \
            profile | report-bindings | skip-launch-node | v | verbose) mt_words=0 ;;
        *) return 1 ;;
    esac
    case $mt_option in
        *=*) # -n=4 carries its only value; any other spelling with = is not ours to guess
            [ "$mt_words" -eq 1 ] || return 1
            mt_words=0
            ;;
    esac
}

# Starts the real mpiexec with the wrapper before the program of every section; returns,
# having done nothing, when the command line is not understood.
run_wrapped() {
    mt_left=$#
    mt_skip=0
    mt_place=options
    while [ "$mt_left" -gt 0 ]; do
        mt_arg=$1
        shift
        mt_left=$((mt_left - 1))
        if [ "$mt_place" = program ]; then
            [ "$mt_arg" != : ] || mt_place=options
        elif [ "$mt_skip" -gt 0 ]; then
            mt_skip=$((mt_skip - 1))
        else
            case $mt_arg in
                -*)
                    arity "$mt_arg" || return 0
                    mt_skip=$mt_words
                    case $mt_known in
                        l | prepend-rank | prepend-pattern) mt_tag='' mt_mark='' ;;
                        outfile* | errfile*) mt_mark='' ;;
                    esac
                    ;;
                '' | :) return 0 ;;
                *)
                    set -- "$@" "$mt_wrapper"
                    mt_place=program
                    ;;
            esac
        fi
        set -- "$@" "$mt_arg"
    done
    [ "$mt_place" = program ] || return 0
    keep_words
    announce
    start ${mt_tag:+"$mt_tag"} "$@"
}

# Hydra refuses a second prefix option, so any word that looks like one wins over ours.
run_tagged() {
    for mt_arg in "$@"; do
        case $mt_tag:$mt_arg in
            -prepend-*:-l | -prepend-*:-prepend-* | -prepend-*:--prepend-*) return 0 ;;
        esac
    done
    start "$mt_tag" "$@"
}

if [ -n "$mt_wrapper" ]; then
    run_wrapped "$@"
    mt_mark=
elif [ -n "$mt_tag" ] && [ $# -gt 0 ]; then
    run_tagged "$@"
fi
for mt_arg in "$@"; do
    case $mt_mark:$mt_arg in
        hydra:-l | hydra:-prepend-* | hydra:--prepend-* | hydra:-outfile* | hydra:--outfile* | \
            hydra:-errfile* | hydra:--errfile*) mt_mark= ;;
    esac
done
start "$@"
