"""One page: how it looks, its languages and its keyboard, and what it says and asks at each step."""

import base64
import csv
import json
import shutil
import time
import unittest
from pathlib import Path

from chromium import CHROMIUM, CONTRAST, free_port, until

from .pages import here

STEPS = ["file", "partner", "ask", "run", "history", "service"]


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Looks(unittest.TestCase):
    def setUp(self):
        self.tab = here.tabs[0]
        self.tab.look()
        self.tab.go(here.alice)

    def tearDown(self):
        self.tab.look()
        # The choice is kept only once the texts are here.
        self.tab.speak("en")

    def test_every_step_fits_in_both_languages_light_and_dark(self):
        for language, word in (("de", "Ihr Partner"), ("en", "Your partner")):
            self.tab.fill(language=language)
            self.tab.waits("nav", word)
            self.assertEqual(self.tab.run("document.documentElement.lang"), language)
            for step in STEPS:
                self.tab.look()
                self.tab.turn(step)
                for width, dark in ((1200, False), (400, True), (400, False)):
                    with self.subTest(language=language, step=step, width=width, dark=dark):
                        self.tab.look(width, 900, dark)
                        self.tab.run("document.querySelectorAll('details').forEach(e => e.open = true)")
                        self.assertLessEqual(self.tab.run("document.scrollingElement.scrollWidth"), width)
                        # A text that has no key shows the key.
                        self.assertNotRegex(self.tab.text("main"), r"\b(file|partner|ask|run|terms|history|service|sql|way)\.\w+\b(?!\w*\.csv)")
                        worst = self.tab.run(CONTRAST)
                        self.assertGreaterEqual(worst[0], 4.5, worst)
                        if here.pictures:
                            self.tab.picture(here.pictures / f"ui-{step}-{language}-{width}-{'dark' if dark else 'light'}.png")

    def test_the_language_is_the_browser_s_until_one_is_chosen(self):
        agent = self.tab.run("navigator.userAgent")
        self.tab.run("localStorage.removeItem('tacit-language')")
        for accepted, language in (("de-AT,en", "de"), ("fr,de", "de"), ("fr", "en")):
            self.tab.say("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=accepted)
            self.tab.go(here.alice)
            self.assertEqual(self.tab.run("document.documentElement.lang"), language, accepted)
        self.tab.fill(language="de")
        until(lambda: self.tab.run("document.documentElement.lang") == "de", "no German")
        self.tab.go(here.alice)
        self.assertEqual(self.tab.run("document.documentElement.lang"), "de")
        self.tab.say("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="en")

    def test_the_keyboard_reaches_everything_and_all_has_a_name(self):
        for step in STEPS:
            self.tab.turn(step)
            self.tab.run("document.querySelectorAll('details').forEach(e => e.open = true)")
            pressable = "a[href], button:enabled, input:enabled, select:enabled, textarea, summary, [tabindex=\"0\"]"
            wanted = self.tab.run(f"""[...document.querySelectorAll('{pressable}')].filter(e => e.checkVisibility()
                && !(e.type === 'radio' && !e.checked)).map((e, i) => (e.dataset.at = i, String(i)))""")
            self.tab.run("document.activeElement.blur(); document.querySelector('.skip').focus()")
            reached = [self.tab.run("document.activeElement.dataset.at")]
            for _ in wanted[1:]:
                self.tab.press("Tab")
                at, ring = self.tab.run("(e => [e.dataset.at, getComputedStyle(e).outlineStyle])(document.activeElement)")
                reached.append(at)
                self.assertNotEqual(ring, "none", f"the focus on {at} of {step} is not seen")
            missing = set(wanted) - set(reached)
            self.assertEqual(missing, set(), self.tab.run(f"""[...document.querySelectorAll('[data-at]')]
                .filter(e => {json.dumps(sorted(missing))}.includes(e.dataset.at)).map(e => e.outerHTML.slice(0, 90))"""))
            self.tab.run("document.querySelectorAll('[data-at]').forEach(e => delete e.dataset.at)")
            tree = self.tab.say("Accessibility.getFullAXTree")["nodes"]
            for node in tree:
                role = node.get("role", {}).get("value")
                if not node.get("ignored") and role in ("button", "combobox", "link", "textbox", "radio", "checkbox", "table", "progressbar"):
                    self.assertTrue(node.get("name", {}).get("value"), (step, node))
            heads = self.tab.run("[...document.querySelectorAll('h1, h2, h3')].filter(e => e.checkVisibility()).map(e => Number(e.tagName[1]))")
            self.assertTrue(heads[0] == 1 and all(b <= a + 1 for a, b in zip(heads, heads[1:])), heads)
        # A step is opened, and a choice made, without a pointer.
        self.tab.run("document.querySelector('nav a[href=\"#ask\"]').focus()")
        self.tab.press("Enter", text="\r")
        until(lambda: self.tab.run("document.activeElement.id") == "ask-title", "the step's title has no focus")
        self.assertEqual(self.tab.run("document.querySelector('#phase').getAttribute('aria-live')"), "polite")

    def test_the_first_paint_is_soon_and_nothing_moves(self):
        self.tab.go(here.alice)
        moved = self.tab.run("""new Promise(told => {
            new PerformanceObserver(list => told(list.getEntries().reduce((all, one) => all + one.value, 0)))
                .observe({ type: 'layout-shift', buffered: true });
            setTimeout(() => told(0), 500); })""")
        self.assertLess(moved, 0.02)

    def test_a_dropped_file_is_read(self):
        (here.home / "dropped.csv").write_text("phone;id\n" + "".join(f"+4922812345{i:02};{i}\n" for i in range(60)))
        document = self.tab.say("DOM.getDocument")["root"]["nodeId"]
        pick = self.tab.say("DOM.querySelector", nodeId=document, selector="#pick")["nodeId"]
        self.tab.turn("file")
        self.tab.say("DOM.setFileInputFiles", nodeId=pick, files=[str(here.home / "dropped.csv")])
        self.tab.waits("#columns-about", "Rows: 60")
        self.assertIn("tacit-ui/files/dropped.csv", self.tab.run("document.querySelector('#path').value"))
        self.assertIn("phone", self.tab.text("#columns-table"))

    def test_a_dropped_file_is_deleted_after_a_question(self):
        for language, words in (("en", ["Delete", "The original stays", "is deleted"]), ("de", ["Löschen", "Das Original bleibt", "ist gelöscht"])):
            body = b"mail,x\n" + b"".join(b"a%d@example.com,1\n" % i for i in range(60))
            _, _, said = here.alice.ask(f"/api/upload?name=old-{language}.csv", "POST", body, Content_Type="application/octet-stream")
            file = Path(json.loads(said)["file"])
            self.tab.go(here.alice, "file")
            self.tab.speak(language)
            self.tab.run("document.querySelector('#stored').open = true")
            self.tab.waits("#stored-files", file.name)
            row = f"[...document.querySelectorAll('#stored-files li')].find(e => e.innerText.includes('{file.name}'))"
            self.tab.run(f"{row}.querySelector('button').click()")
            self.tab.waits("#columns-about", "60")
            self.tab.run(f"{row}.querySelectorAll('button')[1].focus()")
            self.tab.press("Enter", text="\r")
            self.tab.waits("#stored-files", words[1])
            # The answer that keeps it has the focus.
            self.assertTrue(self.tab.fits())
            self.tab.press("Enter", text="\r")
            until(lambda: words[1] not in self.tab.text("#stored-files"), "the question stays")
            self.assertTrue(file.exists())
            self.assertEqual(self.tab.run(f"{row}.querySelectorAll('button')[1].getAttribute('aria-label')"), f"{words[0]}: {file.name}")
            self.tab.run(f"{row}.querySelectorAll('button')[1].click()")
            self.tab.run(f"{row}.querySelector('button').click()")
            self.tab.waits("#stored-status", words[2])
            self.assertFalse(file.exists())
            self.assertFalse(self.tab.sees("#columns"))

    def test_what_a_command_waits_for_is_said(self):
        self.tab.turn("partner")
        for language, name in (("en", "was not found"), ("de", "wurde nicht gefunden")):
            self.tab.speak(language)
            self.tab.fill(join_code="7700-walnut-harbour", join_name="lost", join_address="nobody.invalid:7700")
            self.tab.click("#join-form [type=submit]")
            self.tab.waits("#join-status", name)
            self.assertIn("nobody.invalid", self.tab.text("#join-status"))
            self.tab.click("#join-form .cancel")
            until(lambda: self.tab.sees("#join-form [type=submit]:enabled"), "it is not cancelled")
            self.assertEqual(self.tab.text("#join-since"), "")
        self.tab.speak("en")
        # One whose partner may wait as well hears of it after a while.
        self.tab.fill(invite_name="late", invite_address=f"0.0.0.0:{free_port()}")
        self.tab.click("#invite-form [type=submit]")
        self.tab.waits("#invite-status", "Your partner has not joined yet")
        addresses = here.alice.get("/api/state")["addresses"]
        self.tab.waits("#code-note", "router" if any(":" not in one for one in addresses) else "Both sides need a relay")
        for address in addresses:
            if ":" not in address:
                self.assertIn(address, self.tab.text("#code-places"))
        self.assertEqual(self.tab.text("#invite-hint"), "")
        self.tab.waits("#invite-hint", "one of you must invite, and the other join")
        self.tab.speak("de")
        self.tab.waits("#invite-hint", "Einer muss einladen")
        self.tab.waits("#invite-status", "ist noch nicht beigetreten")
        self.tab.click("#invite-form .cancel")
        until(lambda: not self.tab.sees("#code"), "it is not cancelled")

    def test_a_run_that_calls_nobody_says_so_and_so_does_one_at_a_relay_that_is_not_there(self):
        form = {"kind": "run", "partner": "bob", "file": str(here.home / "alice.csv"), "ask": "rows",
                "key": [{"column": "email", "type": "email"}], "result": "me", "address": f"127.0.0.1:{free_port()}"}
        for way, english, german in (("connect", "Nobody is waiting at", "wartet noch niemand"), ("via", "No relay answers at", "antwortet kein Relay")):
            code, said = here.alice.post("/api/start", {**form, "way": way})
            self.assertEqual(code, 200, said)
            # The page that is opened shows what goes on.
            self.tab.go(here.alice)
            for language, text in (("en", english), ("de", german)):
                self.tab.speak(language)
                self.tab.waits("#phase", text)
                self.assertIn(form["address"], self.tab.text("#phase"))
                self.assertEqual(self.tab.language_of("#phase"), language)
            self.tab.click("#cancel")
            self.tab.waits("#running-title", "Abgebrochen")

    def test_a_region_is_asked_for_and_not_made_up(self):
        (here.home / "phones.csv").write_text("nr;tel\n" + "".join(f"{7 * i};0228 12345{i:02}\n" for i in range(60, 99)))
        self.tab.read(here.home / "phones.csv")
        self.tab.fill(key_0="tel")
        self.assertEqual(self.tab.run("[document.querySelector('#type-0').value, document.querySelector('#type-0-more').value]"), ["phone:", ""])
        self.assertNotIn("REGION", self.tab.run("document.querySelector('#file').textContent + document.querySelector('#file').innerHTML"))
        for language, missing, step in (("de", "Hier fehlen zwei Buchstaben", "Vervollständigen Sie den Typ"), ("en", "Two letters are missing", "complete the type")):
            self.tab.speak(language)
            self.tab.waits("#type-0-help", missing)
            self.tab.click("#check-key")
            self.tab.waits("#key-fault", missing)
            self.tab.turn("run")
            self.tab.waits("#missing", step)
            self.tab.turn("file")
        self.assertEqual(self.tab.run("document.querySelector('#type-0-more').getAttribute('aria-invalid')"), "true")
        self.tab.fill(type_0_more="d")
        self.assertEqual(self.tab.run("document.querySelector('#type-0-more').getAttribute('aria-invalid')"), "true")
        self.tab.fill(type_0_more="de")
        self.assertEqual(self.tab.text("#type-0-help"), "")
        self.tab.click("#check-key")
        self.tab.waits("#key-about", "Distinct keys: 39")
        self.assertIn("--key=tel:phone:DE", self.tab.run("document.querySelector('#file .command code').textContent"))
        self.assertTrue(self.tab.fits())

    def proposal(self, **more):
        said = {"ask": "rows", "result": "me", "types": ["email"], "columns": [], "statistic": "sum", "column": "", "digits": "", "sql": "",
                "side": "ours", "least": "", "security": "malicious", "way": "listen", "address": "", "port": "7700", **more}
        return "tacit-proposal-1:" + base64.b64encode(json.dumps(said).encode()).decode()

    def take(self, **more):
        self.tab.turn("ask")
        self.tab.run("document.querySelector('#accept').open = true")
        self.tab.fill(proposal=self.proposal(**more))
        self.tab.click("#take")

    def test_a_proposal_changes_no_type_unasked_and_says_at_once_what_does_not_fit(self):
        kind = lambda: self.tab.run("JSON.parse(localStorage.getItem('tacit-form')).keys[0].type")
        self.tab.read(here.home / "alice.csv")
        for language, changes, lacks in (("en", "email: yours is email, the partner’s text", "no column of this name: nope"),
                                         ("de", "email: Ihrer ist email, der des Partners text", "keine Spalte dieses Namens: nope")):
            self.tab.speak(language)
            self.take(types=["text"])
            self.tab.waits("#types-changes", changes)
            self.assertEqual((kind(), self.tab.run("document.activeElement.id")), ("email", "types-about"))
            self.assertTrue(self.tab.fits())
            self.tab.click("#types-keep")
            self.assertEqual((kind(), self.tab.sees("#types-ask")), ("email", False))
            self.take(ask="give", result="peer", columns=["city", "nope"])
            self.tab.waits("#accept-fault", lacks)
            self.assertNotIn("city", self.tab.text("#accept-fault"))
            self.take(ask="own", result="peer", column="nope")
            self.tab.waits("#accept-fault", lacks)
            self.take(ask="question", result="peer", sql='SELECT SUM(CLIP(a."nope", 0, 9)) FROM ours a JOIN theirs b ON a."email:email" = b.mail')
            self.tab.waits("#accept-fault", lacks)
            self.assertNotIn("email", self.tab.text("#accept-fault"))
            self.tab.turn("run")
            self.tab.turn("ask")
        self.tab.speak("en")
        self.take(ask="give", result="peer", columns=["nope"])
        self.tab.turn("run")
        self.tab.waits("#missing", "no column of this name: nope")
        self.take(types=["text"])
        self.tab.click("#types-take")
        self.assertEqual(kind(), "text")
        # How each side writes its numbers is its own affair, so another region is no other type.
        self.tab.fill(key_0="email", type_0="phone:")
        self.tab.turn("file")
        self.tab.fill(type_0_more="NL")
        self.take(types=["phone:DE"])
        self.assertEqual((kind(), self.tab.sees("#types-ask")), ("phone:NL", False))
        # Without a table what is missing is the table.
        self.tab.read(here.home / "missing.csv")
        self.take(ask="give", result="peer", columns=["city"])
        self.tab.waits("#accept-fault", "needs these columns of it: city")
        self.tab.read(here.home / "alice.csv")
        self.tab.turn("ask")
        until(lambda: not self.tab.sees("#accept-fault"), "what fits is still a problem")
        self.take()

    def test_a_proposal_lowers_no_protection_unasked(self):
        chosen = lambda: self.tab.run("(({ security, least }) => [security, least])(JSON.parse(localStorage.getItem('tacit-form')))")
        self.tab.read(here.home / "alice.csv")
        self.take(ask="count")
        self.tab.fill(least="25")
        self.take(ask="count", security="semi-honest", least="7")
        self.tab.waits("#types-changes", "yours is 25, the partner’s 7")
        self.assertIn("yours is a partner that cheats", self.tab.text("#types-changes"))
        self.assertEqual(chosen(), ["malicious", "25"])
        self.tab.click("#types-keep")
        self.assertEqual(chosen(), ["malicious", "25"])
        self.take(ask="count", security="semi-honest", least="7")
        self.tab.click("#types-take")
        self.assertEqual(chosen(), ["semi-honest", "7"])
        # What protects more needs no question; nor does a way that has no address yet.
        self.take(ask="count", security="malicious", least="30")
        self.assertEqual((chosen(), self.tab.sees("#types-ask")), (["malicious", "30"], False))
        self.take(way="via", address="evil.example:1")
        self.take(way="connect")
        self.assertEqual(self.tab.run("JSON.parse(localStorage.getItem('tacit-form')).address"), "")
        # A name of many colons is looked through in time.
        begin = time.monotonic()
        self.take(ask="question", result="me", sql=f'SELECT 1 FROM ours a WHERE a."{":" * 60000}!"')
        self.assertLess(time.monotonic() - begin, 10)
        self.take(least="")
        if self.tab.sees("#types-ask"):
            self.tab.click("#types-take")

    def test_a_file_is_read_in_a_run_as_it_was_seen(self):
        path = here.home / "titled.csv"
        path.write_bytes("Kundenliste März\nE-Mail;Ort\na@x.org;Köln\nb@x.org;Bönen\n".encode("cp1252"))
        self.tab.read(path)
        self.tab.waits("#columns-about", "Rows: 2")
        self.tab.click("#check-key")
        self.tab.waits("#key-about", "Distinct keys: 2")
        self.tab.turn("service")
        self.tab.click("#write-policy")
        written = self.tab.run("document.querySelector('#policy-text').value")
        self.assertIn('encoding = "windows-1252"\nskip_lines = 1\n', written)
        # Of another file nothing of this holds.
        self.tab.read(here.home / "alice.csv")
        self.tab.click("#check-key")
        self.tab.waits("#key-about", "Distinct keys: 300")

    def test_columns_that_are_sent_are_named_and_without_keys_nothing_starts(self):
        self.tab.read(here.home / "alice.csv")
        self.tab.turn("partner")
        self.tab.click("#partners input[value=bob]")
        self.tab.fill(way="listen", address=f"127.0.0.1:{free_port()}")
        self.take(ask="give", result="peer", columns=["city", "amount"])
        self.tab.turn("run")
        self.tab.waits("#terms-other-columns", "the partner gets these columns of yours: city, amount")
        self.assertIn("city, amount", self.tab.text("#summary"))
        self.assertTrue(self.tab.run("document.querySelector('#start:enabled') !== null"))
        self.take(ask="take", result="me", columns=["note"])
        self.tab.turn("run")
        self.tab.waits("#terms-own-columns", "you get these columns of the partner: note")
        self.assertFalse(self.tab.sees("#terms-other-columns"))
        self.take()
        self.tab.turn("file")
        self.tab.fill(key_0="city", type_0="uuid")
        self.tab.turn("run")
        self.tab.waits("#terms-fault", "No row of your file has a valid key")
        self.assertTrue(self.tab.run("document.querySelector('#start').disabled"))
        self.assertIn("terms-fault", self.tab.run("document.querySelector('#start').getAttribute('aria-describedby')"))
        self.tab.speak("de")
        self.tab.turn("ask")
        self.tab.turn("run")
        self.tab.waits("#terms-fault", "Keine Zeile Ihrer Datei hat einen gültigen Schlüssel")

    def test_a_sentence_that_is_not_known_stays_english_and_is_marked_so(self):
        self.tab.turn("file")
        self.tab.speak("de")
        (here.home / "odd.zip").write_bytes(b"PK\3\4xxxx")
        self.tab.read(here.home / "odd.zip")
        self.tab.waits("#file-fault", "not a whole zip archive")
        self.assertEqual(self.tab.language_of("#file-fault"), "en")
        self.tab.read(here.home / "missing.csv")
        self.tab.waits("#file-fault", "Diese Datei gibt es nicht")
        self.assertEqual(self.tab.language_of("#file-fault"), "de")
        self.tab.fill(path="")
        self.tab.click("#file-form [type=submit]")
        self.tab.waits("#file-fault", "Geben Sie den Pfad")
        self.assertEqual(self.tab.language_of("#file-fault"), "de")

    def test_a_policy_is_checked(self):
        self.tab.turn("service")
        (here.home / "policy.toml").write_text("version = 1\nlisten = 7\n")
        self.tab.fill(policy=str(here.home / "policy.toml"))
        self.tab.click("#serve-check")
        self.tab.waits("#service-fault", "problems")
        self.assertIn("listen", self.tab.text("#service-told"))

    def test_a_policy_that_the_page_writes_is_right_for_any_name(self):
        odd = 'tel, "own": x'
        with open(here.home / "odd.csv", "w", newline="") as file:
            csv.writer(file).writerows([[odd, "mail"], *([f"n{i}", f"a{i}@example.com"] for i in range(60))])
        partners = here.alice.home / "tacit-ui/partners"
        shutil.copy(partners / "bob.pub", partners / "Bob and Co.pub")
        self.tab.read(here.home / "odd.csv")
        self.tab.fill(key_0="mail", type_0="email")
        self.tab.click("#add-identifier")
        self.tab.fill(key_1_0=odd, type_1_0="text")
        self.tab.turn("partner")
        self.tab.click("#partners input[value='Bob and Co']")
        self.tab.fill(way="listen", address=f"127.0.0.1:{free_port()}")
        self.tab.turn("service")
        self.tab.click("#write-policy")
        self.tab.click("#serve-check")
        self.tab.waits("#service-status", "no problems")
        self.tab.waits("#service-told", "Bob-and-Co")
        # The check has read the table by the policy's identifiers.
        self.assertIn("identifiers", self.tab.text("#service-told"))
        (partners / "Bob and Co.pub").unlink()
        self.tab.turn("file")
        self.tab.click("#or-keys fieldset > .actions:last-child button:last-child")
