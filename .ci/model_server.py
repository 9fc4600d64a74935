#!/usr/bin/env python3
"""Serve a model file on loopback by the protocol of OpenAI, until the process is told to end.

    python model_server.py MODEL.gguf NAME PORT THREADS
"""

import signal
import sys

import xllamacpp


def main():
    model, name, port, threads = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_ctx = 8192
    params.n_parallel = 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    params.sampling.penalty_repeat = 1.15
    params.warmup = False
    params.ui = False
    server = xllamacpp.Server(params)
    print("serving", name, "at", server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
