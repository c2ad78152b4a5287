# Submits a job over gRPC, watches it until it has ended and prints what rank 0 wrote. Of the API,
# grpcurl knows what the server tells it (reflection).
#
#   TOKEN=... bash hello.sh 127.0.0.1:9090 default hello mpijob.json
set -euo pipefail
server=$1 namespace=$2 name=$3 file=$4

# In the environment, not as an argument, which everybody on this machine can read. To another
# machine: -cacert FILE in place of -plaintext.
export LOGIN="Bearer $TOKEN"
ask() { grpcurl -plaintext -expand-headers -H 'authorization: ${LOGIN}' "$@"; }
job="{\"namespace\": \"$namespace\", \"name\": \"$name\"}"

ask "$server" list
# Of the manifest, which is an object, the API takes the text.
python3 -c 'import json, sys
print(json.dumps({"namespace": sys.argv[1], "manifest_json": open(sys.argv[2]).read()}))' \
    "$namespace" "$file" | ask -d @ "$server" mpitrainer.v1.MPIJobs/CreateMPIJob > made.json
ask -d "$job" "$server" mpitrainer.v1.MPIJobs/WatchMPIJobStatus | grep '"state"' | uniq
ask -d "${job%\}}, \"rank\": 0}" "$server" mpitrainer.v1.MPIJobs/GetMPIJobLogs
