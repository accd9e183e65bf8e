"""Forks, workers and restarts: every process is in the trace once, no matter how it started and ended."""

from .conftest import events


def test_a_raw_fork_makes_a_profiler_of_its_own(program, tmp_path):
    program(
        """
        import os
        from sa_profile import get_profiler, merge_profile, profile_instant

        parent = get_profiler(process_name="parent")
        for _ in range(10):
            profile_instant("parent")
        children = []
        for number in range(4):
            pid = os.fork()
            if pid == 0:
                assert get_profiler(process_name="child") is not parent
                assert get_profiler().pid == os.getpid() and get_profiler().active
                profile_instant("child")
                os._exit(0)
            children.append(pid)
        for pid in children:
            assert os.waitpid(pid, 0)[1] == 0
        assert merge_profile() == 12 + 4 * 3
        """,
        SA_PROFILE_OUTPUT="out",
    )
    names = [event["name"] for event in events(tmp_path / "out" / "trace.json") if event["ph"] == "i"]
    assert sorted(names) == ["child"] * 4 + ["parent"] * 10


def test_a_configuration_applies_to_forked_children(program, tmp_path):
    program(
        """
        import os
        from sa_profile import configure_profiler, create_profile_config, get_profiler, merge_profile, profile_instant

        configure_profiler(create_profile_config(enabled=True, output="out", levels="kernel"))
        if (pid := os.fork()) == 0:
            assert get_profiler().active and get_profiler().config.levels == {"kernel"}
            profile_instant("child", level="kernel")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert merge_profile() == 1 + 3
        """
    )


def test_a_forked_child_joins_the_run_that_the_api_process_began(program, tmp_path):
    """This is how serving does it: the worker only asks for the configuration, and its forked chip process gets commands on a thread."""
    program(
        """
        import json, multiprocessing, os, socket, threading
        from pathlib import Path
        from sa_profile import (
            configure_profiler, create_profile_config, get_profiler, merge_profile, profile_instant, start_profile, stop_profile
        )

        def obey(channel, profiler):
            for command in channel.makefile("r"):
                name = command.strip()
                if name == "start":
                    answer = profiler.start()
                elif name == "stop":
                    answer = profiler.stop()
                elif name == "active":
                    answer = profiler.active
                else:
                    answer = profile_instant(name)
                channel.sendall(f"{answer}\\n".encode())

        def work(config, pipe):
            configure_profiler(config, process_name="worker", initially_active=False)
            here, there = socket.socketpair()
            config = get_profiler(initially_active=False).config
            if os.fork() == 0:
                here.close()
                profiler = configure_profiler(config, process_name="chip", initially_active=False)
                thread = threading.Thread(target=obey, args=(there, profiler))
                thread.start()
                thread.join()
                os._exit(0)
            there.close()
            answers = here.makefile("r")
            for command in iter(pipe.recv, None):
                here.sendall(f"{command}\\n".encode())
                pipe.send(answers.readline().strip())
            answers.close()
            here.close()

        if __name__ == "__main__":
            config = create_profile_config(enabled=True, output="out")
            configure_profiler(config, process_name="api", initially_active=False)
            context = multiprocessing.get_context("spawn")
            pipe, end = context.Pipe()
            worker = context.Process(target=work, args=(config, end))
            worker.start()

            def chip(command):
                pipe.send(command)
                return pipe.recv()

            assert chip("active") == "False"
            starts = [start_profile, lambda: chip("start") == "True"]
            for number in range(4):
                for start in starts[:: -1 if number % 2 else 1]:
                    assert start()
                profile_instant(f"api {number}")
                assert (chip("start"), chip("active")) == ("False", "True")
                assert chip(f"chip {number}") == "None"
                assert (chip("stop"), chip("stop"), chip("active")) == ("True", "False", "False")
                chip("not recorded")
                assert stop_profile()
                merge_profile()
                events = json.loads(Path("out/trace.json").read_text())["traceEvents"]
                found = sorted(event["name"] for event in events if event["ph"] == "i")
                assert found == [f"api {number}", f"chip {number}"], found
                fragments = [path.read_text() for path in Path("out/fragments").glob("trace.*.jsonl")]
                headers = [json.loads(text.splitlines()[0]) for text in fragments]
                assert len(headers) == 2 and len({header["args"]["run"] for header in headers}) == 1, headers
            pipe.send(None)
            worker.join()
            assert worker.exitcode == 0
        """
    )


def test_a_fork_of_the_api_process_does_not_clean_its_run(program, tmp_path):
    """The parent of a raw fork may be the process that begins runs. The child never is."""
    program(
        """
        import os
        from sa_profile import configure_profiler, create_profile_config, get_profiler, merge_profile, profile_instant, start_profile

        configure_profiler(create_profile_config(enabled=True, output="out"), process_name="api", initially_active=False)
        config = get_profiler(initially_active=False).config
        reader, writer = os.pipe()
        if (pid := os.fork()) == 0:
            profiler = configure_profiler(config, process_name="chip", initially_active=False)
            assert not profiler.active
            os.read(reader, 1)
            assert profiler.start() and profiler.active
            profile_instant("chip")
            assert profiler.stop()
            assert start_profile(), "a second time, as its route does"
            profile_instant("chip again")
            os._exit(0)
        assert start_profile()
        profile_instant("api")
        os.write(writer, b"1")
        assert os.waitpid(pid, 0)[1] == 0
        assert merge_profile() == 9
        """
    )
    found = events(tmp_path / "out" / "trace.json")
    assert sorted(event["name"] for event in found if event["ph"] == "i") == ["api", "chip", "chip again"]
    assert not (tmp_path / "out" / "previous").exists()
