"""Forks, spawns and pools: nothing is lost, recorded twice, or hangs, no matter how a child ends."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import sa_profile

NOBODY = 65534


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing(program, method):
    trace = program.record(
        f"""
        import multiprocessing

        def work(n):
            for k in range(50):
                with sa_profile.span("child", n=n, k=k):
                    pass

        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            with sa_profile.span("parent"):
                children = [context.Process(target=work, args=(n,), name=f"child-{{n}}") for n in range(4)]
                [child.start() for child in children]
                [child.join() for child in children]
            assert [child.exitcode for child in children] == [0] * 4
        """
    )
    assert trace.counts() == {"parent": 1, "child": 200}
    seen = sorted((span["args"]["n"], span["args"]["k"]) for span in trace.spans("child"))
    assert seen == [(n, k) for n in range(4) for k in range(50)]
    assert len({span["pid"] for span in trace.spans()}) == 5
    names = {event["pid"]: event["args"]["name"] for event in trace.events if event["name"] == "process_name"}
    assert all(names[span["pid"]] == f"child-{span['args']['n']}" for span in trace.spans("child"))


def test_a_forked_child_is_named_after_its_parent_unless_the_program_names_it(program):
    trace = program.record(
        """
        import multiprocessing, os

        def fork(name):
            if (pid := os.fork()) == 0:
                with sa_profile.span(name):
                    pass
                os._exit(0)
            os.waitpid(pid, 0)

        def work():
            sa_profile.instant("one")
            fork("of the worker")

        def name_itself():
            sa_profile.set_process_name("mine")
            sa_profile.instant("two")

        if __name__ == "__main__":
            sa_profile.set_process_name("api")
            fork("of the main process")
            worker = multiprocessing.get_context("fork").Process(target=work, name="worker-0")
            worker.start()
            worker.join()
            other = multiprocessing.get_context("spawn").Process(target=name_itself, name="other")
            other.start()
            other.join()
            sa_profile.set_process_name("renamed")
            fork("later")
        """,
        PYTHONWARNINGS="ignore",
    )
    names = {event["pid"]: event["args"]["name"] for event in trace.events if event["name"] == "process_name"}
    for span, parent in [("of the main process", "api"), ("of the worker", "worker-0"), ("later", "renamed")]:
        pid = trace.span(span)["pid"]
        assert names[pid] == f"{parent} fork {pid}"
    for instant, name in [("one", "worker-0"), ("two", "mine")]:
        assert [names[event["pid"]] for event in trace.instants(instant)] == [name]


def test_forks_while_other_threads_record(program):
    trace = program.record(
        """
        import os, threading, time
        stop = threading.Event()

        def record():
            n = 0
            while not stop.is_set():
                with sa_profile.span("busy"):
                    n += 1
            return n

        threads = [threading.Thread(target=record) for _ in range(3)]
        [thread.start() for thread in threads]
        children = []
        with sa_profile.span("open at the fork"):
            for n in range(40):
                pid = os.fork()
                if pid == 0:
                    with sa_profile.span("child", n=n):
                        pass
                    os._exit(0)
                children.append(pid)
        for pid in children:
            deadline = time.monotonic() + 30
            while True:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    break
                assert time.monotonic() < deadline, "a child hangs"
                time.sleep(0.001)
            assert status == 0
        stop.set()
        [thread.join() for thread in threads]
        """,
        PYTHONWARNINGS="ignore",
    )
    assert sorted(span["args"]["n"] for span in trace.spans("child")) == list(range(40))
    assert len(trace.spans("open at the fork")) == 1
    assert len({span["pid"] for span in trace.spans("child")}) == 40
    assert trace.overlaps() == []


def test_issue_19_a_killed_process_keeps_the_args_of_open_spans(program):
    trace = program.record(
        """
        import asyncio, os, signal

        async def main():
            with sa_profile.span("request", request_id="cmpl-1") as request:
                request.arg(prompt_tokens=12)
                with sa_profile.span("step", ids=["cmpl-1", "cmpl-2"], batch=2):
                    await asyncio.sleep(0)
                    os.kill(os.getpid(), signal.SIGKILL)

        if os.fork() == 0:
            with sa_profile.span("thread", rank=3):
                asyncio.run(main())
        os.wait()
        """
    )
    assert {span["name"]: span["args"] for span in trace.unfinished()} == {
        "thread": {"rank": 3, "unfinished": True},
        "request": {"request_id": "cmpl-1", "prompt_tokens": 12, "unfinished": True},
        "step": {"ids": ["cmpl-1", "cmpl-2"], "batch": 2, "unfinished": True},
    }


def test_children_by_subprocess_join_the_run(program):
    out = program.run(
        """
        import os, subprocess, sys
        with sa_profile.span("parent"):
            child = "import sa_profile\\nwith sa_profile.span('child'): pass\\nprint(sa_profile.run(), sa_profile.is_main())"
            done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, cwd="/", check=True)
        print(done.stdout.strip(), "|", sa_profile.run(), sa_profile.is_main())
        """,
    )
    child, parent = out.strip().split(" | ")
    run = parent.split()[0]
    assert (child, parent) == (f"{run} False", f"{run} True")
    assert program.merge().counts() == {"parent": 1, "child": 1}


RAISED = """
import os
import sa_profile
from sa_profile.env import asks_to_record

with sa_profile.span("one"):
    pass
print(os.getuid() != os.geteuid(), sa_profile.is_enabled(), sa_profile.load_profile_config().enabled, asks_to_record())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_issue_19_an_interpreter_with_raised_privileges_ignores_variables():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        python, theirs = Path(folder, "python"), Path(folder, "run")
        shutil.copy(os.path.realpath(sys.executable), python)
        packages = str(Path(sa_profile.__file__).parents[1])
        variables = {"SA_PROFILE_DIR": str(theirs), "PYTHONPATH": packages, "PYTHONHOME": sys.base_prefix}
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

        def output(mode):
            python.chmod(mode)
            done = subprocess.run([python, "-c", RAISED], env=variables, cwd="/", capture_output=True, text=True, timeout=120, **user)
            assert (done.returncode, done.stderr) == (0, "")
            return done.stdout.split()

        starts = subprocess.run([python, "-c", "import sa_profile"], env={**variables, "SA_PROFILE_DIR": ""}, cwd="/", capture_output=True, timeout=120, **user)
        if starts.returncode != 0:
            pytest.skip("another user cannot read this interpreter's library")
        raised = output(0o4755)
        if raised[0] == "False":
            pytest.skip("this file system gives no program more rights")
        assert raised == ["True", "False", "False", "False"]
        assert not theirs.exists()
        assert output(0o755) == ["False", "True", "True", "True"]
        assert theirs.exists()
