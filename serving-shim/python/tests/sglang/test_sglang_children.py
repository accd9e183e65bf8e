"""Child processes in which SGLang does not load plugins."""

import pytest
from sa_profile.sglang import register

try:
    import uvicorn
except ImportError:
    uvicorn = None


def start_worker():
    """Starts a further server as uvicorn does for SGLang's tokenizer workers."""
    register()
    from uvicorn import _subprocess

    worker = _subprocess.get_subprocess(uvicorn.Config("app:app"), target=tell_if_registered, sockets=[])
    worker.start()
    worker.join()
    print(worker.exitcode)


def tell_if_registered(sockets):
    from sa_profile._sglang import plugin

    print(plugin._registered, sockets, flush=True)


@pytest.mark.skipif(uvicorn is None, reason="needs uvicorn")
def test_further_servers_of_uvicorn_have_the_plugin(record):
    trace = record(start_worker, PYTHONWARNINGS="default")  # uvicorn leaves stdin open
    assert trace.stdout == "True []\n0\n"
