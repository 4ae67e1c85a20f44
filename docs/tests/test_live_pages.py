#!/usr/bin/env python3
"""Uses the pages that answer to their reader, in headless Chromium: `ctest --preset docs -R "live pages"`.

    test_live_pages.py HTML_FOLDER [--driver CHROMEDRIVER]

The pipeline bench, the timeline viewer, the lab's mistakes and the code of each lesson: by mouse and by keyboard, on wide and
narrow screens, light and dark, from a server, from a folder, and without scripts.
"""
import re
import statistics
import sys
from pathlib import Path

import site_in_browser
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from site_in_browser import SiteInBrowser

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "docs/site"), str(ROOT / "common/single_file")]
import code_page
import lab_page
import live_pages
import make_single_file
import mistake_page

WIDE, NARROW = (1600, 1000), (400, 800)
ELSEWHERE = """
return performance.getEntriesByType('resource').map(entry => entry.name)
  .filter(name => !name.startsWith(arguments[0]) && !name.startsWith('data:'))"""
BOXES = """
return [...document.querySelectorAll(arguments[0] + ' rect')].map(box => box.getBoundingClientRect())
  .map(box => [box.left, box.right])"""
ROWS = "return [...document.querySelectorAll('.row')].filter(row => row.checkVisibility()).length"


def mistake_row(line):
    return lab_page.MISTAKE.match(line)


class LivePages(SiteInBrowser):
    def setUp(self):
        self.show("light", WIDE)
        self.browser.get_log("browser")

    def tearDown(self):
        self.assertEqual([entry["message"] for entry in self.browser.get_log("browser")], [])

    def element(self, name):
        return self.browser.find_element(By.ID, name)

    def text(self, name):
        return self.element(name).text

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def boxes(self, within):
        return self.browser.execute_script(BOXES, within)

    def focus_by_keyboard(self, name):
        """With Tab, from the control before."""
        for _ in range(200):
            if self.browser.switch_to.active_element.get_attribute("id") == name:
                break
            self.press(Keys.TAB)
        focused = self.browser.switch_to.active_element
        self.assertEqual(focused.get_attribute("id"), name)
        self.assertNotIn(focused.value_of_css_property("outline-style"), ("none", ""), f"the focus on {name} is not seen")
        return focused

    def live(self):
        return ["bench.html", "timelines.html", "mistakes.html"] + [page for page in self.pages if page.startswith("code_")]

    def test_pages_fit_both_widths_and_themes_and_ask_nobody_else(self):
        self.assertEqual(len(self.live()), 9)
        found = []
        for page in self.live():
            for size in (WIDE, NARROW):
                for theme in ("light", "dark"):
                    self.show(theme, size)
                    self.open(page)
                    found += self.faults(page, theme, size)
            found += self.browser.execute_script(ELSEWHERE, self.site)
        self.assertEqual(found, [])

    def test_charts_are_drawn_without_a_server(self):
        for page, chart in (("bench.html", "#bench-chart"), ("timelines.html", "#upper-chart")):
            self.browser.get(Path(self.html, page).resolve().as_uri())
            self.wait("the chart", lambda: self.boxes(chart))

    def test_pages_can_be_read_without_scripts(self):
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            for page, selector, least in (("bench.html", "td", 30), ("timelines.html", "td", 30),
                                          ("mistakes.html", "section.mistake", 100), ("code_05.html", ".row", 50), ("lab.html", "details.lab-group > summary", 20)):
                self.open(page)
                self.assertGreater(len(self.browser.find_elements(By.CSS_SELECTOR, selector)), least, page)
                self.assertTrue(self.browser.find_element(By.CSS_SELECTOR, selector).is_displayed(), page)
                self.assertEqual(self.visible(".needs-script"), [], page)
        finally:
            self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    # --- The bench

    def test_the_bench_begins_with_recorded_times(self):
        presets = live_pages.bench_presets(str)
        self.assertEqual(set(live_pages.PRESET_OF) - presets.keys(), set())
        for name, preset in presets.items():
            self.open(f"bench.html?begin={name}")
            values = {key: float(self.element(f"bench-{key}").get_attribute("value")) for key in ("load", "compute", "slots")}
            self.assertEqual(values, {key: preset[key] for key in values}, name)
            self.assertEqual(self.text("bench-total"), self.text("bench-closed"), name)
            tiles, roles = int(self.element("bench-tiles").get_attribute("value")), 3 if preset["store"] else 2
            self.assertEqual(len(self.wait("the chart", lambda: self.boxes("#bench-chart"))), tiles * roles, name)

    def test_the_bench_answers_to_the_keyboard(self):
        self.open("bench.html?begin=04")
        self.wait("the chart", lambda: self.boxes("#bench-chart"))
        before, boxes = self.text("bench-total"), self.boxes("#bench-chart")
        self.assertFalse(self.element("bench-late").is_enabled())
        self.focus_by_keyboard("bench-slots").send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(self.text("bench-slots-value"), "2")
        self.assertEqual(Select(self.element("bench-preset")).first_selected_option.text, "your own values")
        number = lambda words: float(words.split()[0].replace(",", ""))
        self.assertLess(number(self.text("bench-total")), number(before))
        self.assertEqual(self.text("bench-total"), self.text("bench-closed"))
        self.assertNotEqual(self.boxes("#bench-chart"), boxes)
        self.assertTrue(self.element("bench-late").is_enabled())
        self.assertIn("--slots 2", self.text("bench-command"))
        self.assertTrue(self.browser.find_element(By.CSS_SELECTOR, "#bench-by-slots .now").text.startswith("2 slots"))
        self.focus_by_keyboard("bench-late").send_keys(Keys.SPACE)
        self.assertIn("--late-release", self.text("bench-command"))

    def test_the_bench_says_where_no_closed_form_is_known(self):
        self.open("bench.html?begin=07")
        self.wait("the chart", lambda: self.boxes("#bench-chart"))
        self.element("bench-together").click()
        self.assertEqual(self.text("bench-closed"), "not known")
        self.assertTrue(self.element("bench-interval").is_enabled())
        Select(self.element("bench-roles")).select_by_value("2")
        self.assertFalse(self.element("bench-store").is_enabled())
        self.assertEqual(self.text("bench-total"), self.text("bench-closed"))

    def test_a_box_of_the_bench_says_its_times(self):
        self.open("bench.html")
        box = self.wait("the chart", lambda: self.browser.find_elements(By.CSS_SELECTOR, "#bench-chart rect.compute"))[1]
        ActionChains(self.browser).move_to_element(box).perform()
        self.wait("its times", lambda: self.text("bench-said").startswith("compute, tile 1: from "))

    # --- The viewer

    def extent(self, panel):
        boxes = self.boxes(f"#{panel}-chart")
        return max(right for _, right in boxes) - min(left for left, _ in boxes)

    def test_04_and_05_are_drawn_at_one_scale(self):
        recorded = live_pages.timelines(str)
        self.open("timelines.html")
        self.wait("the charts", lambda: self.boxes("#upper-chart") and self.boxes("#lower-chart"))
        chosen = [self.element(f"{panel}-select").get_attribute("value") for panel in ("upper", "lower")]
        self.assertEqual(chosen, ["04_warp_specialized", "05_ws_double_buffer"])
        self.show_all_of_it()
        self.assertEqual(len(self.boxes("#lower-chart")), len(recorded[chosen[1]]["spans"]))
        upper, lower = (recorded[name]["end"] for name in chosen)
        self.assertAlmostEqual(self.extent("lower") / self.extent("upper"), lower / upper, delta=0.01)
        self.assertIn("same scale", self.text("timelines-scale"))
        self.assertIn("loader · waited", self.text("lower-chart"))

    def show_all_of_it(self):
        near = self.boxes("#upper-chart")
        self.browser.find_element(By.CSS_SELECTOR, "button[data-step='0']").click()
        self.wait("it to be whole", lambda: self.boxes("#upper-chart") != near)

    def test_the_viewer_opens_on_four_steps(self):
        self.open("timelines.html")
        self.wait("the charts", lambda: self.boxes("#upper-chart") and self.boxes("#lower-chart"))
        products = self.browser.execute_script("""
            return [...document.querySelectorAll('#upper-chart rect.compute')].map(box => box.getBoundingClientRect().y)""")
        first_lane = products.count(min(products))
        self.assertTrue(4 <= first_lane <= 6, first_lane)
        self.assertGreater(self.typical_width(), 20)

    def typical_width(self):
        return statistics.median(right - left for left, right in self.boxes("#upper-chart"))

    def test_the_viewer_zooms_and_moves(self):
        self.open("timelines.html?show=03_double_buffer-slots_1,03_double_buffer-slots_3")
        self.wait("the charts", lambda: self.boxes("#upper-chart"))
        self.show_all_of_it()
        whole, all_boxes = self.typical_width(), self.boxes("#upper-chart")
        self.browser.find_element(By.CSS_SELECTOR, "button[data-step='+']").click()
        self.wait("it to be nearer", lambda: self.typical_width() > 1.8 * whole)
        charts = self.focus_by_keyboard("timelines-charts")
        charts.send_keys("+", "+")
        self.wait("it to be nearer still", lambda: self.typical_width() > 7 * whole)
        nearer = self.boxes("#upper-chart")
        self.assertLess(len(nearer), len(all_boxes) / 2)
        charts.send_keys(Keys.ARROW_RIGHT)
        self.wait("it to move", lambda: self.boxes("#upper-chart") != nearer)
        later = self.boxes("#upper-chart")
        on_chart = ActionChains(self.browser).move_to_element(self.element("upper-chart"))
        on_chart.click_and_hold().move_by_offset(60, 0).release().perform()
        self.wait("it to be dragged", lambda: self.boxes("#upper-chart") != later)
        charts.send_keys("0")
        self.wait("it to be whole", lambda: self.boxes("#upper-chart") == all_boxes)

    def test_the_viewer_shows_what_is_chosen(self):
        self.open("timelines.html")
        self.wait("the charts", lambda: self.boxes("#upper-chart"))
        for name, timeline in live_pages.timelines(str).items():
            Select(self.element("lower-select")).select_by_value(name)
            self.assertEqual(len(self.boxes("#lower-chart")), len(timeline["spans"]), name)
            self.assertIn(f"show=04_warp_specialized,{name}", self.browser.current_url)
            one_scale = timeline["unit"] == "µs"
            self.assertEqual("same scale" in self.text("timelines-scale"), one_scale, name)
        self.focus_by_keyboard("upper-select").send_keys(Keys.ARROW_UP)
        self.assertNotIn("show=04_warp_specialized,", self.browser.current_url)
        box = self.browser.find_elements(By.CSS_SELECTOR, "#lower-chart rect")[0]
        ActionChains(self.browser).move_to_element(box).perform()
        self.wait("what the box is", lambda: re.match(r"engine: compute: lesson0[56]::(\w+::)*gemm, 0\.00 to ", self.text("lower-said")))

    # --- The mistakes

    def test_every_message_of_the_lab_is_there_word_for_word(self):
        self.open("mistakes.html")
        said = dict(self.browser.execute_script("""
            return [...document.querySelectorAll('section.mistake')].map(section =>
              [section.id, [...section.querySelectorAll('pre.message')].map(message => message.textContent)])"""))
        planted = mistake_page.mistakes.read_mistakes()
        self.assertEqual(list(said), [mistake_page.anchor(each.lesson, each.name) for each in planted])
        for half in mistake_page.lab_table.HALVES:
            for row in mistake_page.lab_table.newest(ROOT / "docs/results/lab", half)["mistakes"]:
                for finding in row["findings"].values():
                    words, name = mistake_page.words_of(finding), mistake_page.anchor(row["lesson"], row["name"])
                    if words and name in said:
                        self.assertIn(words, said[name])

    def shown_mistakes(self):
        return [section.get_attribute("id") for section in self.visible("section.mistake")]

    def test_the_mistakes_begin_with_one_that_is_noticed(self):
        self.open("mistakes.html")
        [first] = self.shown_mistakes()
        self.assertTrue(self.visible(f"[id='{first}'] details.caught[open] pre.message"))

    def test_a_mistake_is_chosen_by_mouse_keyboard_and_address(self):
        self.open("mistakes.html#05_wrong_parity")
        self.assertEqual(self.shown_mistakes(), ["05_wrong_parity"])
        removed = self.browser.find_element(By.CSS_SELECTOR, "[id='05_wrong_parity'] tr.removed .text")
        self.assertIn("position_.parity ^ 1", removed.text)
        self.assertTrue(self.visible("[id='05_wrong_parity'] pre.message"))
        self.element("mistakes-next").click()
        self.assertEqual(self.shown_mistakes(), ["05_wrong_role_ratio"])
        self.focus_by_keyboard("mistakes-lesson").send_keys(Keys.ARROW_DOWN)
        [first_of_next] = self.shown_mistakes()  # of attention, which lesson 05 leads to
        self.assertTrue(first_of_next.startswith("attention_") and self.browser.current_url.endswith(f"#{first_of_next}"))
        self.focus_by_keyboard("mistakes-choice").send_keys(Keys.ARROW_DOWN)
        self.assertNotEqual(self.shown_mistakes(), [first_of_next])
        self.browser.execute_script("location.hash = '03_dropped_wait'")
        self.wait("the mistake", lambda: self.shown_mistakes() == ["03_dropped_wait"])

    def test_patches_on_pages_lead_to_their_mistake(self):
        self.open("lesson_05.html")
        links = self.browser.find_elements(By.CSS_SELECTOR, ".contents a[href^='mistakes.html#05_']")
        self.assertGreaterEqual(len(links), 2)
        name = links[-1].get_attribute("href").partition("#")[2]
        links[-1].click()
        self.wait("the mistake", lambda: self.shown_mistakes() == [name])

    # --- The handshake lab

    def lab_rows(self):
        return self.browser.execute_script("""
            return [...document.querySelectorAll('details.lab-group')].filter(group => !group.hidden).map(group =>
              [group.dataset.lesson, group.open, [...group.querySelectorAll('tr:not([hidden]) td:first-child')].map(cell => cell.textContent.trim())])""")

    def test_the_lab_is_folded_and_has_all_its_rows(self):
        self.open("lab.html")
        groups = self.lab_rows()
        self.assertEqual([is_open for _, is_open, _ in groups if is_open], [])
        height = self.browser.execute_script("return document.querySelector('.contents').scrollHeight")
        self.assertLess(height, 10000)
        shown = [name for _, _, names in groups for name in names]
        written = [line for line in (ROOT / "docs/lab.md").read_text(encoding="utf-8").splitlines() if mistake_row(line)]
        self.assertGreater(len(written), 200)
        self.assertEqual(len(shown), len(written))
        summary = self.browser.find_element(By.CSS_SELECTOR, "details.lab-group > summary")
        summary.send_keys(Keys.ENTER)
        self.assertTrue(self.lab_rows()[0][1])

    def test_the_lab_shows_what_is_asked_for(self):
        self.open("lab.html")
        whole = self.text("lab-count")
        self.focus_by_keyboard("lab-words").send_keys("parity")
        groups = self.lab_rows()
        self.assertTrue(all(is_open for _, is_open, _ in groups))
        self.assertIn("05 wrong_parity", [name for _, _, names in groups for name in names])
        Select(self.element("lab-lesson")).select_by_value("05")
        self.assertEqual({lesson for lesson, _, _ in self.lab_rows()}, {"05"})
        self.element("lab-words").clear()
        self.element("lab-words").send_keys(" ")
        Select(self.element("lab-lesson")).select_by_value("")
        Select(self.element("lab-detector")).select_by_visible_text("CPU device: nothing")
        found = {name for _, _, names in self.lab_rows() for name in names}
        self.assertIn("05 one_tile_order", found)
        self.assertNotIn("05 wrong_parity", found)
        Select(self.element("lab-detector")).select_by_index(0)
        self.assertEqual(self.text("lab-count"), whole)
        self.assertFalse(any(is_open for _, is_open, _ in self.lab_rows()))

    # --- The code

    def test_the_code_is_the_single_file(self):
        for lesson in code_page.names():
            self.open(f"code_{lesson[:2]}.html")
            shown = self.browser.execute_script("return [...document.querySelectorAll('.row code')].map(line => line.textContent)")
            self.assertEqual([line.rstrip() for line in shown], make_single_file.text_of(lesson).splitlines())

    def test_code_folds_and_opens(self):
        self.open("code_05.html")
        shown = lambda: self.browser.execute_script(ROWS)
        at_first = shown()
        self.browser.find_element(By.CSS_SELECTOR, "button[data-fold=open]").click()
        everything = shown()
        self.assertEqual(everything, len(make_single_file.text_of("05_ws_double_buffer").splitlines()))
        self.assertGreater(everything, 2 * at_first)
        self.browser.find_element(By.CSS_SELECTOR, "button[data-fold=closed]").click()
        self.assertLess(shown(), 50)
        summary = self.browser.find_element(By.CSS_SELECTOR, "details.file > summary")
        summary.send_keys(Keys.ENTER)
        self.assertTrue(summary.find_element(By.XPATH, "..").get_attribute("open"))
        wait_line = self.browser.execute_script("""
            return [...document.querySelectorAll('.row')].find(row => /while .*mbarrier_try_wait/.test(row.textContent)).id""")
        self.browser.execute_script("location.hash = arguments[0]", wait_line)
        self.wait("the line to be unfolded", lambda: self.element(wait_line).is_displayed())

    def test_instructions_lead_to_their_concept(self):
        for page, call, title in (("code_05.html", "ptx::tma_load", "tensor memory accelerator"),
                                  ("code_05.html", "ptx::mbarrier_wait", "Mbarriers"),
                                  ("code_06.html", "ptx::cluster_sync", "Clusters"),
                                  ("code_02.html", "ptx::wgmma_wait_group", "fragments")):
            self.open(page)
            self.browser.find_element(By.CSS_SELECTOR, "button[data-fold=open]").click()
            next(link for link in self.visible("a.instruction") if link.text == call).click()
            self.wait(f"the page about {call}", lambda: title in self.browser.title)

    def test_the_table_of_instructions_is_that_of_the_code(self):
        code_page.check_table(code_page.wrappers_of_ptx())
        with self.assertRaisesRegex(code_page.WrongTable, "ptx::new_one"):
            code_page.check_table(code_page.wrappers_of_ptx() | {"new_one"})
        with self.assertRaisesRegex(code_page.WrongTable, "tma_load"):
            code_page.check_table(code_page.wrappers_of_ptx() - {"tma_load"})


if __name__ == "__main__":
    site_in_browser.main(__doc__)
