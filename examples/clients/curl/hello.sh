# Submits a job over REST, prints its lines as they come, and asks how it ended.
#
#   TOKEN=... bash hello.sh http://127.0.0.1:8800 default hello mpijob.yaml
set -euo pipefail
server=$1 namespace=$2 name=$3 file=$4
jobs=$server/api/v1/namespaces/$namespace/mpijobs

# Not as an argument, which everybody on this machine can read.
ask() { curl -sS --fail-with-body -K <(printf 'header = "Authorization: Bearer %s"\n' "$TOKEN") "$@"; }

ask -H 'Content-Type: application/yaml' --data-binary "@$file" "$jobs" > made.json
ask -N "$jobs/$name/logs/live?rank=0"
ask "$jobs/$name/status" > status.json
grep -q '"state":"Succeeded"' status.json
