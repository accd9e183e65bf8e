"""Blocks of recorded spans leave no references and no exceptions behind."""


def test_blocks_leave_no_references_and_no_exceptions(program):
    # Makes no other calls, which might free objects that a call has leaked.
    trace = program.record(
        """
        import asyncio
        import gc
        import weakref

        STEP = sa_profile.span("step")

        async def serve():
            task = asyncio.current_task()
            for _ in range(5000):
                with STEP:
                    pass
            assert weakref.getweakrefcount(task) < 5, weakref.getweakrefcount(task)

        asyncio.run(serve())
        for _ in range(5000):
            sa_profile.instant("hash", block=2**63 + 5)
        errors = sum(isinstance(found, OverflowError) for found in gc.get_objects())
        assert errors < 5, errors
        """
    )
    assert len(trace.spans("step")) == 5000


def test_names_of_calls_are_freed(program):
    program.record(
        """
        import weakref

        class Name(str):
            pass

        left = []
        for number in range(4096):
            name = Name(f"name {number % 3000}")
            left.append(weakref.ref(name))
            with sa_profile.span(name):
                pass
            del name
        alive = sum(reference() is not None for reference in left)
        assert alive < 2048, alive
        """
    )


def test_a_finaliser_in_the_args_may_record(program):
    trace = program.record(
        """
        from sa_profile import compat

        class Last(str):
            def __del__(self):
                with sa_profile.span("last", cat="finaliser"):
                    pass

        for _ in range(100):
            with compat.profile_span("first", args={"key": Last("value")}):
                pass
        """
    )
    assert len(trace.spans("first")) == 100 and len(trace.spans("last")) == 100


def test_finalisers_may_record_while_the_interpreter_ends(program):
    trace = program.record(
        """
        STEP = sa_profile.span("step")

        class Last:
            # Globals of the module may already be gone by then.
            def __del__(self, instant=sa_profile.instant, step=STEP):
                for _ in range(5000):
                    instant("late")
                    with step:
                        pass

        import builtins
        builtins.kept = Last()  # freed after all modules
        sa_profile.instant("first")
        """
    )
    assert len(trace.instants("first")) == 1
