"""Shows that each check finds what is wrong, and lets pass what is right: `python3 tests/docs/selftest.py`. `check` begins with it."""

import pathlib
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import blocks
import links
import messages
import pages
import prose
import shape
import variables

LONG = "A " + " ".join(["word"] * 30) + ". "
SHORT = "A short sentence. "


class Links(unittest.TestCase):
    page = pages.ROOT / "docs" / "README.md"

    def test_targets_are_files_and_headings(self):
        for target, is_good in [("README.md", True), ("../README.md#merge", True), ("#record", True), ("https://example.org/x", True),
                                ("nothing.md", False), ("#nothing", False), ("../README.md#nothing", False)]:
            self.assertEqual(links.problem_of(self.page, target) is None, is_good, target)

    def test_headings_become_anchors_as_on_github(self):
        text = "# A `b`, *c*\n## Same\n## Same\n```sh\n# no heading\n```\n"
        self.assertEqual(links.anchors(text), {"a-b-c", "same", "same-1"})

    def test_code_has_no_links(self):
        text = "[a](x.md) `[b](y.md)`\n```\n[c](z.md)\n```\n![d](e.png)\n"
        self.assertEqual(list(links.targets(text)), [(1, "x.md"), (5, "e.png")])


class Prose(unittest.TestCase):
    def test_a_page_may_have_five_long_sentences_in_a_hundred(self):
        self.assertEqual(list(prose.problems_of("x.md", SHORT * 95 + LONG * 5)), [])
        self.assertEqual(len(list(prose.problems_of("x.md", SHORT * 94 + LONG * 6))), 1)

    def test_most_sentences_are_short(self):
        found = list(prose.problems_of("x.md", SHORT * 8 + ("A " + " ".join(["word"] * 27) + ". ") * 4))
        self.assertEqual(len(found), 1, found)

    def test_readme_has_a_bound(self):
        self.assertEqual(len(list(prose.problems_of("README.md", SHORT * 301))), 1)
        self.assertEqual(list(prose.problems_of("README.md", SHORT * 300)), [])

    def test_code_tables_and_headings_are_no_sentences(self):
        text = "# Heading\n\nOne `a b c`, [two three](x).\n\n| a | b |\n| --- | --- |\n\n```sh\nls\n```\n- Item.\n"
        self.assertEqual([len(sentence.split()) for sentence in prose.sentences(text)], [4, 1])


class Shape(unittest.TestCase):
    good = "# Title\n\nDo this.\n\n```sh\nls\n```\n\n## What you see\n\nX.\n\n## Limits\n\nY.\n"

    def test_each_part_is_there(self):
        self.assertEqual(list(shape.problems_of(self.good)), [])
        for part in ["## What you see", "## Limits", "Do this.\n\n"]:
            self.assertEqual(len(list(shape.problems_of(self.good.replace(part, "")))), 1, part)


class Variables(unittest.TestCase):
    def test_both_ways(self):
        page = "| variable | |\n| `SA_PROFILE_DIR` | x |\n| `SA_PROFILE_GONE` | x |\n"
        found = list(variables.problems_of(page, {"SA_PROFILE_DIR": "a.rs", "SA_PROFILE_NEW": "a.rs"}))
        self.assertEqual([("SA_PROFILE_NEW" in one, "SA_PROFILE_GONE" in one) for one in found], [(True, False), (False, True)])

    def test_the_sources_are_read(self):
        self.assertIn("SA_PROFILE_MAX_MB", variables.in_sources())


class Messages(unittest.TestCase):
    def test_rust_and_python(self):
        rust = 'fn f() { warn(&format!("{name}: expected one of {words}, \\\n    found nothing")); x.expect("this is no message"); }\n// "nor is this one"\n#[cfg(test)]\n"nor is that one here"'
        self.assertEqual([line for text in messages.in_rust(rust) for line in messages.lines(text)], ["…: expected one of …, found nothing"])
        python = 'warn_once(f"{name} has no such function: its spans are missing")\nprint("this is data for stdout")\nprint(40 + 2, file=sys.stderr)'
        self.assertEqual(list(messages.in_python(python)), ["… has no such function: its spans are missing"])

    def test_the_folders_above_the_repository_do_not_matter(self):
        with unittest.mock.patch.object(pages, "ROOT", pathlib.Path("/tests/check/main")):
            self.assertTrue(messages.is_source(pages.ROOT / "merge" / "src" / "app.rs"))
            self.assertFalse(messages.is_source(pages.ROOT / "merge" / "check" / "src" / "rules.rs"))

    def test_both_ways(self):
        page = "| line | means |\n| `…: expected one of …, found …` | x |\n| `nobody says these words` | x |\n"
        found = list(messages.problems_of(page, {"…: expected one of …, found nothing": "a.rs", "this is not on the page": "b.rs"}))
        self.assertEqual(len(found), 2, found)
        self.assertIn("this is not on the page", found[0])
        self.assertIn("nobody says these words", found[1])


class Blocks(unittest.TestCase):
    page = pages.ROOT / "docs" / "README.md"

    def setUp(self):
        self.stage = blocks.Stage(with_sources=False)
        self.addCleanup(self.stage.close)

    def problems(self, text):
        return [problem for _, problem in blocks.problems_of(self.page, text, self.stage)]

    def problems_of_runs(self, *runs):
        return self.problems("".join(f"<!-- run -->\n```sh\n{lines}\n```\n" for lines in runs))

    def test_a_block_needs_a_mark(self):
        for mark, count in [("", 1), ("<!-- not run: it needs an NPU -->\n", 0), ("<!-- not run: -->\n", 1), ("<!-- run by: no/such/file.rs -->\n", 1)]:
            self.assertEqual(len(self.problems(f"Text.\n\n{mark}```sh\nls\n```\n")), count, mark)

    def test_output_needs_none(self):
        self.assertEqual(self.problems("```text\nx\n```\n"), [])

    def test_a_block_without_a_fence_is_none(self):
        self.assertEqual(len(self.problems("Text:\n\n    ls\n")), 1)

    def test_commands_are_run_in_the_order_of_the_page(self):
        page = "<!-- setup: echo 1 > a -->\n<!-- run -->\n```sh\ngrep 1 a\n```\n<!-- file: b -->\n```text\n2\n```\n<!-- run -->\n```sh\ngrep 2 b\n```\n"
        self.assertEqual(self.problems(page), [])
        self.assertEqual(len(self.problems(page.replace("grep 2", "grep 3"))), 1)

    def test_one_shell_runs_the_blocks_of_all_pages(self):
        self.assertEqual(self.problems_of_runs("export A=1; cd /tmp", '[ "$A $PWD" = "1 /tmp" ]'), [])
        self.assertEqual(self.problems_of_runs('[ "$A $PWD" = "1 /tmp" ]'), [])

    def test_each_command_of_a_block_counts(self):
        for lines, count in [("true\ntrue", 0), ("false\ntrue", 1), ("true\nfalse", 1), ("false | true", 1), ("false || true", 0), ("exit 3", 1)]:
            self.assertEqual(len(self.problems_of_runs(lines)), count, lines)
        self.assertEqual(self.problems("<!-- run: exit 0 or 1 -->\n```sh\nfalse\n```\n"), [])

    def test_what_a_program_names_as_next_is_run(self):
        for said, count in [("next: true", 0), ("next       false", 1), ("x: done. next: false", 0), ("sa-profile: done. next: false", 1), ("next: true    # is false", 0)]:
            self.assertEqual(len(self.problems_of_runs(f"echo '{said}'")), count, said)

    def test_rows_are_the_same_but_for_the_last_digits_of_doubles(self):
        for one, other, expected in [([1, "a", None], [1, "a", None], True), ([0.1 + 0.2], [0.3], True), ([1], [2], False), ([1, 2], [1], False), (["1"], [1], False)]:
            self.assertEqual(blocks.are_equal(one, other), expected, (one, other))

    def test_readers_begin_with_readme_and_the_index(self):
        names = [pages.name(page) for page in blocks.in_reading_order()]
        self.assertEqual(names[:3], ["README.md", "docs/README.md", "docs/first-trace.md"])
        self.assertEqual(len(names), len(set(names)))

    def test_what_is_missing_here_is_said(self):
        before = len(blocks._skipped)
        self.assertEqual(self.problems("<!-- setup: echo no compiler; exit 3 -->\n<!-- run -->\n```sh\nfalse\n```\n"), [])
        self.assertIn("no compiler", blocks._skipped[before])
        del blocks._skipped[before:]


def passes():
    """Whether all of it holds; what does not is on stderr."""
    result = unittest.TextTestRunner(verbosity=0, stream=open("/dev/null", "w")).run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    for _, why in result.failures + result.errors:
        print(why, file=sys.stderr)
    blocks._done.clear()
    return result.wasSuccessful(), result.testsRun


if __name__ == "__main__":
    unittest.main()
