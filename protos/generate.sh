#!/usr/bin/env bash
# Generates the Python code of the contract: protos/generate.sh PYTHON OUT_DIR
#
# PYTHON has grpcio-tools; OUT_DIR gets logger_service/v1/*_pb2.py, *_pb2.pyi and, for files with a service, *_pb2_grpc.py.
set -euo pipefail

python=$1
out=$(realpath "$2")
python=$(realpath -s "$python")
cd "$(dirname "$0")"

"$python" -m grpc_tools.protoc -I. --python_out="$out" --pyi_out="$out" --grpc_python_out="$out" logger_service/v1/*.proto

# The plugin writes a file without content for every proto; only those with a service are of use.
for proto in $(grep -L '^service ' logger_service/v1/*.proto); do
    rm "$out/${proto%.proto}_pb2_grpc.py"
done
