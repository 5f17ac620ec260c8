#!/bin/sh
# This backend takes vLLM's own 16.
DYN_ROUTER_MODE=kv python3 -m dynamo.frontend &
python3 -m dynamo.vllm --model m --attention-backend FLASH_ATTN --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557"}'
