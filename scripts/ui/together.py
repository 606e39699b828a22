"""Two people who use a page each: an intersection from the files to the history, and a service."""

import csv
import re
import stat
import subprocess
import unittest
from pathlib import Path

from chromium import CHROMIUM, free_port, until

from .pages import HOSTILE, TACIT, here, seen, tables


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Together(unittest.TestCase):
    """Both pages, in the order in which two people use them."""

    def both(self):
        return zip(here.tabs, (here.alice, here.bob), ("alice", "bob"))

    def test_1_each_reads_its_file(self):
        self.__class__.joined = tables()
        self.__class__.port = free_port()
        for tab, page, name in self.both():
            tab.look()
            tab.go(page)
            # The token goes from the address into the page's own storage.
            self.assertEqual(tab.run("location.hash"), "")
            tab.read(here.home / "missing.csv")
            tab.waits("#file-fault", "missing.csv")
            tab.read(here.home / f"{name}.csv")
            self.assertFalse(tab.sees("#file-fault"))
        self.assertIn("Xxxx9@xxxxxxx.xxx", here.tabs[0].text("#columns-table"))
        self.assertNotIn("user", here.tabs[1].text("#columns-table"))
        self.assertIn(seen(), here.tabs[1].text("#columns-table"))
        here.tabs[0].click("#check-key")
        here.tabs[0].waits("#key-about", "Distinct keys: 300")
        # How the file is read holds for every command; a suggested key is of the columns that are then there.
        shown = lambda: here.tabs[1].run("document.querySelector('#file .command code').textContent")
        for is_set in (True, False):
            here.tabs[1].run("document.querySelector('#no-header').click()")
            until(lambda: ("--no-header" in shown()) == is_set, "the file is not read again")
            until(lambda: (seen() in here.tabs[1].text("#columns-table")) != is_set, "the first line is not what was said")
        self.assertIn("tacit check --input=", here.tabs[0].run("document.querySelector('#file .command code').textContent"))

    def test_2_one_invites_and_the_other_joins(self):
        alice, bob = here.tabs
        place = f"127.0.0.1:{self.port}"
        alice.look(400, 700)
        alice.turn("partner")
        alice.fill(invite_name="bob", invite_own="Alice & Co", invite_address=place)
        alice.click("#invite-form [type=submit]")
        alice.waits("#code", str(self.port))
        # The own key that is there now has moved the code down, and it is in sight.
        inside = "(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('#code').getBoundingClientRect())"
        until(lambda: alice.run(inside), "the code is out of sight")
        alice.look()
        code = alice.text("#code")
        alice.waits("#invite-status", f"Your partner has not joined yet. Waiting at {place}")
        alice.waits("#invite-since", "so far")
        self.assertIn("Only this machine can reach this address", alice.text("#code-note"))
        bob.turn("partner")
        bob.fill(join_code="1-wrong-words", join_name="alice", join_own=HOSTILE, join_address=place)
        bob.click("#join-form [type=submit]")
        bob.waits("#join-fault", "is not a word that codes use")
        # A tab that is closed ends nothing, and one that is opened again finds what goes on.
        alice.reopen()
        alice.go(here.alice, "partner")
        alice.waits("#code", code)
        bob.fill(join_code=code)
        bob.click("#join-form [type=submit]")
        bob.waits("#join-status", "is known now")
        alice.waits("#invite-status", "is known now")
        self.assertTrue(alice.run("document.querySelector('#partners input').checked"))
        self.assertIn("<img src=x", alice.text("#partners"))
        fingerprints = [re.search(r"fingerprint ([\w-]+)", tab.text("#partners"))[1] for tab in here.tabs]
        own = [re.search(r"fingerprint: ([\w-]+)", tab.text("#own-key"))[1] for tab in here.tabs]
        self.assertEqual(fingerprints, own[::-1])

    def test_3_a_wrong_code_of_right_words_ends_both(self):
        alice, bob = here.tabs
        port = free_port()
        alice.fill(invite_name="other", invite_address=f"127.0.0.1:{port}")
        alice.click("#invite-form [type=submit]")
        alice.waits("#code", str(port))
        code = alice.text("#code").split("-")
        bob.fill(join_code="-".join([code[0], code[2], code[1]]), join_name="other", join_address=f"127.0.0.1:{port}")
        bob.click("#join-form [type=submit]")
        until(lambda: bob.sees("#join-fault") and alice.sees("#invite-fault"), "a wrong code is not said")
        self.assertNotIn("other", [one["name"] for one in here.alice.get("/api/state")["partners"]])

    def test_3_a_key_is_replaced_only_after_a_warning(self):
        alice, bob = here.tabs
        old = next(one for one in here.alice.get("/api/state")["partners"] if one["name"] == "bob")
        place = f"127.0.0.1:{free_port()}"
        alice.fill(invite_name="bob", invite_address=place)
        alice.click("#invite-form [type=submit]")
        alice.waits("#invite-replace-about", old["fingerprint"])
        self.assertTrue(alice.fits())
        # The question has the focus, and has to be answered; another name takes it back.
        self.assertEqual(alice.run("document.activeElement.id"), "invite-replace")
        alice.click("#invite-form [type=submit]")
        self.assertFalse(alice.run("document.activeElement.checked"))
        self.assertEqual(alice.run("document.activeElement.id"), "invite-replace")
        self.assertNotIn("running", [task["status"] for task in here.alice.tasks("invite")])
        alice.speak("de")
        self.assertIn("endgültig", alice.run("document.querySelector('#invite-form [type=submit]').click(); document.querySelector('#invite-replace-about').innerText"))
        alice.speak("en")
        alice.fill(invite_name="someone")
        self.assertFalse(alice.sees("#invite-replace"))
        alice.fill(invite_name="bob")
        alice.click("#invite-form [type=submit]")
        alice.click("#invite-replace")
        alice.click("#invite-form [type=submit]")
        alice.waits("#code", "-")
        self.assertRegex(here.alice.tasks("invite")[0]["command"], r"--out=\S*/replacing/bob\.pub && mv \S*/replacing/bob\.pub \S*/partners/bob\.pub$")
        # Names have blanks.
        bob.fill(join_code=alice.text("#code"), join_name="Alice and Sons 2", join_address=place)
        bob.click("#join-form [type=submit]")
        bob.waits("#join-status", "Alice and Sons 2 is known now")
        alice.waits("#invite-status", "is known now")
        partners = {one["name"]: one["fingerprint"] for one in here.alice.get("/api/state")["partners"]}
        self.assertEqual(partners, {"bob": old["fingerprint"]})
        self.assertFalse(any((here.alice.home / "tacit-ui/replacing").iterdir()))
        bob.click("#partners input[value=alice]")
        for tab in here.tabs:
            tab.fill(address=f"127.0.0.1:{self.port}")

    def test_4_they_agree_and_see_what_each_learns(self):
        alice, bob = here.tabs
        for tab in here.tabs:
            tab.turn("ask")
        alice.click("#asks input[value=rows]")
        alice.click("#results input[value=peer]")
        proposal = alice.run("document.querySelector('#proposed').value")
        bob.run("document.querySelector('#accept').open = true")
        bob.fill(proposal="tacit-proposal-1:" + "A" * 40)
        bob.click("#take")
        bob.waits("#accept-fault", "is not a proposal")
        bob.fill(proposal=proposal)
        bob.click("#take")
        bob.waits("#accept-status", "email")
        self.assertTrue(bob.run("document.querySelector('#results input[value=me]').checked"))
        alice.shot("ui-ask", 1100)
        for tab in here.tabs:
            tab.turn("run")
            tab.waits("#terms-own", "distinct keys")
        self.assertIn("that you have 300 distinct keys, and which of its own keys are among them", alice.text("#terms-other"))
        self.assertIn("that the peer has 300 distinct keys; nothing else", alice.text("#terms-own"))
        self.assertIn("that you have 250 distinct keys; nothing else", bob.text("#terms-other"))
        # What a person agrees to is above the terms.
        summary = alice.text("#summary")
        for part in ("alice.csv", "300", "email (email)", "bob (fingerprint ", "Rows in common", "Only the partner", f"127.0.0.1:{self.port}"):
            self.assertIn(part, summary)
        self.assertTrue(alice.run("document.querySelector('#summary').compareDocumentPosition(document.querySelector('#terms')) & 4"))
        # The command's sentences are in the page's language where they are known, and marked as English where not.
        self.assertEqual((alice.language_of("#terms-other"), alice.language_of("#summary")), ("en", "en"))
        alice.speak("de")
        alice.turn("ask")
        alice.turn("run")
        alice.waits("#terms-other", "dass Sie 300 verschiedene Schlüssel haben, und welche der eigenen Schlüssel darunter sind; sonst nichts")
        alice.waits("#terms-own", "dass der Partner 300 verschiedene Schlüssel hat; sonst nichts")
        self.assertNotRegex(alice.text("#terms"), r"\b(keys|that|the|with|and)\b")
        self.assertEqual([alice.language_of(f"#terms-{side}") for side in ("other", "own")], ["de", "de"])
        alice.speak("en")
        alice.turn("ask")
        alice.turn("run")
        alice.waits("#terms-own", "distinct keys")
        shown = alice.run("document.querySelector('#terms-command code').textContent")
        self.assertRegex(shown, r"^tacit psi --listen=127.0.0.1:\d+ --identity=.* --reveal=rows --result=peer")
        self.assertEqual(len(here.alice.tasks("run")), 0)
        bob.shot("ui-terms")

    def test_5_they_run_and_the_result_is_the_plain_join(self):
        alice, bob = here.tabs
        alice.click("#start")
        alice.waits("#phase", "Waiting for your partner")
        self.assertEqual(alice.run("document.activeElement.id"), "running-title")
        # The page is closed and opened again while its run waits.
        alice.reopen()
        alice.go(here.alice)
        alice.waits("#phase", "Waiting for your partner")
        bob.click("#start")
        bob.waits("#headline", "100 keys in common")
        alice.waits("#headline", "The partner has the answer")
        bob.waits("#rows-table", seen())
        for tab in here.tabs:
            self.assertIsNone(tab.run("window.hacked"))
            self.assertEqual(tab.run("document.querySelectorAll('main img, main script').length"), 0)
        run = here.bob.tasks("run")[0]
        with open(Path(run["folder"]) / "result.csv", newline="") as file:
            found = list(csv.DictReader(file))
        self.assertEqual(found, [{name: str(value) for name, value in row.items()} for row in self.joined])
        self.assertFalse(alice.sees("#save"))
        link = here.bob.post("/api/ticket", {"id": run["id"], "name": "result.csv"})[1]["link"]
        code, headers, body = here.bob.ask(link, X_Tacit_Token=None)
        self.assertEqual((code, headers["Content-Disposition"]), (200, 'attachment; filename="result.csv"'))
        self.assertEqual(body.encode(), (Path(run["folder"]) / "result.csv").read_bytes())
        self.assertEqual(here.bob.ask(link, X_Tacit_Token=None)[0], 404, "a link is good once")
        link = here.bob.post("/api/ticket", {"id": run["id"], "name": "report.html"})[1]["link"]
        code, headers, body = here.bob.ask(link)
        self.assertIn("sandbox", headers["Content-Security-Policy"])
        self.assertNotIn("script", headers["Content-Security-Policy"])
        self.assertIn("private set intersection", body)
        # A person saves the result, and opens the report in a tab of its own.
        bob.say("Page.setDownloadBehavior", behavior="allow", downloadPath=str(here.home))
        bob.click("#save")
        until(lambda: (here.home / "result.csv").exists(), "nothing is saved")
        until(lambda: (here.home / "result.csv").read_bytes() == (Path(run["folder"]) / "result.csv").read_bytes(), "not all is saved")
        bob.click("#report")
        until(lambda: any("Report of a private set" in one["title"] for one in bob.others()), f"no report: {bob.others()}")
        bob.close_others()
        bob.run("document.querySelector('#running').scrollIntoView()")
        bob.shot("ui-result", 1000)
        self.assertEqual([tab.faults() for tab in here.tabs], [[], []])

    def test_6_settings_that_differ_are_said_on_both_pages(self):
        alice, bob = here.tabs
        for tab, ask in zip(here.tabs, ("rows", "count")):
            tab.turn("ask")
            tab.click(f"#asks input[value={ask}]")
            tab.click("#results input[value=both]")
            tab.turn("run")
        for tab in here.tabs:
            tab.click("#start")
        for tab in here.tabs:
            tab.waits("#run-fault", "--reveal")
            self.assertIn("Failed", tab.text("#running-title"))
        # Bob's count is of a few hundred keys, and tens of megabytes: that was said before it.
        self.assertRegex(bob.text("#terms-traffic"), r"About \d\d(\.\d)? MB go over the network although your file has few keys \(250\)")
        self.assertFalse(alice.sees("#terms-traffic"))
        self.assertEqual(alice.language_of("#run-fault"), "en")
        alice.speak("de")
        alice.waits("#run-fault", "Die Einstellungen unterscheiden sich: --reveal")
        self.assertEqual(alice.language_of("#run-fault"), "de")
        alice.turn("history")
        alice.waits("#history-table", "wählen Sie auf beiden Seiten dieselben")
        alice.speak("en")
        bob.speak("de")
        self.assertIn("auch bei kurzen Listen einige Dutzend Megabyte", bob.run("document.querySelector('#asks').innerText") or bob.run("document.querySelector('#asks').textContent"))
        bob.speak("en")

    def test_7_numbers_and_questions(self):
        alice, bob = here.tabs
        alice.turn("ask")
        alice.click("#asks input[value=own]")
        alice.fill(statistic="sum", own_column="amount", security="semi-honest")
        proposal = alice.run("document.querySelector('#proposed').value")
        bob.turn("ask")
        bob.fill(proposal=proposal)
        bob.click("#take")
        # It protects less than what Bob has chosen.
        bob.click("#types-take")
        self.together("#headline", "The partner has the answer", f"Sum of amount: {sum(range(200, 300)):,}")
        for tab, column in zip(here.tabs, ("own_column", "their_column")):
            tab.turn("ask")
            tab.fill(digits="decimal2", **{column: "price"})
        # 25 hundredths each, exactly and with both places.
        self.together("#headline", "The partner has the answer", f"Sum of price: {sum(range(200, 300)) + 25:,}.00")
        here.tabs[1].turn("history")
        here.tabs[1].waits("#history-table", f"{sum(range(200, 300)) + 25:,}.00")
        for tab, column in zip(here.tabs, ("own_column", "their_column")):
            tab.turn("ask")
            tab.fill(digits="", **{column: "amount"})
        alice.turn("ask")
        alice.click("#asks input[value=question]")
        alice.click("#results input[value=peer]")
        alice.fill(sql_theirKey="Mail", sql_sum="amount", sql_sumOf="me", sql_group="city", sql_groupOf="me", sql_values="Bonn, Köln")
        alice.click("#sql-make")
        self.assertIn('GROUP BY a."city"', alice.run("document.querySelector('#sql').value"))
        bob.turn("ask")
        bob.fill(proposal=alice.run("document.querySelector('#proposed').value"))
        bob.click("#take")
        self.together("#headline", "The partner has the answer", "The answer has 2 rows")
        run = here.bob.tasks("run")[0]
        answer = (Path(run["folder"]) / "result.csv").read_text().splitlines()
        self.assertEqual(sorted(answer[1:]), [f"Bonn,50,{sum(range(200, 300, 2))}", f"Köln,50,{sum(range(201, 300, 2))}"])

    def test_7_rows_match_by_any_of_several_identifiers(self):
        alice, bob = here.tabs
        for tab, column in zip(here.tabs, ("amount", "points" if here.pictures else HOSTILE)):
            tab.turn("file")
            tab.click("#add-identifier")
            tab.fill(key_1_0=column, type_1_0="int")
            self.assertTrue(tab.fits())
        alice.waits("#or-note", "works with one identifier only")
        alice.turn("run")
        alice.waits("#missing", "this question works with one identifier only")
        self.assertTrue(alice.run("document.querySelector('#start').disabled"))
        alice.turn("ask")
        alice.click("#asks input[value=rows]")
        alice.click("#results input[value=peer]")
        alice.turn("file")
        alice.waits("#or-note", "learns for each identifier")
        alice.click("#check-key")
        alice.waits("#key-identifiers", "amount: rows that have it: 300, different values: 300")
        alice.turn("ask")
        bob.turn("ask")
        bob.fill(proposal=alice.run("document.querySelector('#proposed').value"))
        bob.click("#take")
        bob.waits("#accept-status", "email or int")
        self.assertFalse(bob.sees("#accept-fault"))
        # One that has other identifiers says so at once.
        bob.turn("file")
        bob.click("#or-keys fieldset > .actions:last-child button:last-child")
        bob.turn("ask")
        bob.waits("#accept-fault", "matches by 2 identifiers (email or int)")
        bob.turn("file")
        bob.click("#add-identifier")
        bob.fill(key_1_0="points" if here.pictures else HOSTILE, type_1_0="int")
        bob.turn("ask")
        until(lambda: not bob.sees("#accept-fault"), "what fits is still a problem")
        for tab in here.tabs:
            tab.turn("run")
            tab.waits("#terms-other", "distinct identifiers in all")
            self.assertIn(" or ", tab.text("#summary"))
        bob.speak("de")
        bob.turn("ask")
        bob.turn("run")
        bob.waits("#terms-own", "für jedes der eigenen Merkmale, ob es darunter ist")
        bob.speak("en")
        self.together("#headline", "The partner has the answer", "identifiers in common")
        bob.waits("#matched-by", "Rows of yours that match by Mail, and by none named before it: 100")
        for tab in here.tabs:
            tab.turn("file")
            tab.click("#or-keys fieldset > .actions:last-child button:last-child")

    def together(self, selector, *texts):
        for tab in here.tabs:
            tab.turn("run")
            tab.click("#start")
        for tab, text in zip(here.tabs, texts):
            tab.waits(selector, text)

    def test_8_a_run_is_cancelled(self):
        alice, _ = here.tabs
        alice.turn("run")
        alice.click("#start")
        alice.waits("#phase", "Waiting for your partner")
        task = here.alice.tasks("run")[0]
        pid = self.child(here.alice)
        alice.click("#cancel")
        alice.waits("#running-title", "Cancelled")
        self.assertFalse(Path(f"/proc/{pid}").exists())
        self.assertEqual(here.alice.get(f"/api/task?id={task['id']}")["code"], 130)
        self.assertFalse((Path(task["folder"]) / "result.csv").exists())

    def child(self, page):
        """The command that a page runs at the moment."""
        processes = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return next(int(entry.name) for entry in processes if self.parent(entry) == page.process.pid)

    def parent(self, entry):
        try:
            return int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return None

    def test_9_the_history_outlives_the_page(self):
        alice, bob = here.tabs
        bob.turn("history")
        bob.waits("#history-table", "100")
        rows = len(here.bob.tasks("run"))
        until(lambda: bob.run("document.querySelector('#history-table').tBodies[0].rows.length") == rows, "runs are missing")
        self.assertEqual(here.bob.end(), 0)
        here.bob.start()
        bob.go(here.bob, "history")
        bob.waits("#history-table", "100")
        self.assertEqual(bob.run("document.querySelector('#history-table').tBodies[0].rows.length"), rows)
        self.assertIn("Failed", bob.text("#history-table"))
        bob.run("[...document.querySelectorAll('#history-table tbody tr')].filter(e => e.innerText.includes('bob.csv')).at(-1).querySelector('button').click()")
        bob.waits("#headline", "100 keys in common")
        bob.waits("#rows-table", seen())
        # It is shown with its own terms, and not below those of another question.
        self.assertFalse(bob.sees("#plan"))
        self.assertIn("that you have 250 distinct keys; nothing else", bob.text("#run-terms-other"))
        for part in ("bob.csv", "Mail (email)", "alice (fingerprint ", "Rows in common"):
            self.assertIn(part, bob.text("#run-summary"))
        bob.speak("de")
        bob.waits("#run-terms-other", "dass Sie 250 verschiedene Schlüssel haben; sonst nichts")
        bob.speak("en")
        self.assertTrue(bob.fits())
        bob.click("#back")
        self.assertTrue(bob.sees("#plan"))
        self.assertFalse(bob.sees("#running"))
        bob.turn("history")
        bob.turn("run")
        self.assertTrue(bob.sees("#plan") and not bob.sees("#running"))


def policy(name, rest):
    """Writes a policy of Alice's for Bob, whose source goes on with `rest`; where it listens."""
    own, address = here.alice.home / "tacit-ui", f"127.0.0.1:{free_port()}"
    (here.home / f"{name}.toml").write_text(f"""
version = 1
listen = "{address}"
identity = "{own}/keys/tacit.key"
state = "{here.home}/{name}"
[peers.bob]
key = "{own}/partners/bob.pub"
[sources.customers]
input = "{here.home}/alice.csv"
key = ["email:email"]
{rest.lstrip()}""")
    return address


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Service(unittest.TestCase):
    """One page serves by a policy, the other asks."""

    def test_a_service_is_asked_and_leaves_records(self):
        alice, bob = here.tabs
        own = here.alice.home / "tacit-ui"
        address = policy("rules", """
rows_in_total = 1000
[jobs.shared]
source = "customers"
allow = ["bob"]
reveal = ["rows"]
result = ["peer"]
max_peer_keys = 1000
runs_a_day = 3
purpose = "customers of both"
""")
        # Without a file of her own Alice has the page write one, and changes what it says about the address.
        alice.go(here.alice, "service")
        alice.click("#write-policy")
        written = alice.run("document.querySelector('#policy-text').value")
        self.assertIn('key = ["email:email"]', written)
        alice.fill(policy_text=written.replace("runs_a_day = 1", "runs_a_day = -1"))
        alice.click("#serve-check")
        alice.waits("#service-fault", "runs_a_day")
        alice.fill(policy_text=written)
        alice.click("#serve-check")
        alice.waits("#service-status", "no problems")
        self.assertEqual(stat.S_IMODE((own / "policy.toml").stat().st_mode), 0o600)
        alice.fill(policy=str(here.home / "rules.toml"))
        alice.click("#serve-check")
        alice.waits("#service-told", "customers of both")
        self.assertIn("shared", alice.text("#service-told"))
        alice.click("#serve")
        until(lambda: alice.sees("#services a"), "no service")
        board = alice.run("document.querySelector('#services a').href")
        self.assertRegex(board, r"^http://127\.0\.0\.1:\d+/$")
        # Bob's page is at another address since it was started again, so it begins anew.
        bob.go(here.bob)
        bob.read(here.home / "bob.csv")
        bob.turn("partner")
        bob.click("#partners input[value=alice]")
        bob.fill(way="connect", address=address)
        bob.turn("service")
        bob.click("#jobs")
        bob.waits("#jobs-told", "shared")
        bob.click("#jobs-told input")
        bob.waits("#offer-told", "300")
        bob.click("#accept-offer")
        bob.waits("#headline", "100 keys in common")
        bob.waits("#rows-table", "n210")
        bob.turn("history")
        bob.waits("#history-table", "Request: shared")
        bob.click("#verify")
        bob.waits("#verify-status", "The chain is whole: 1 record, 1 signed by both sides")
        record = here.bob.home / "tacit-ui/records/records.jsonl"
        whole = record.read_text()
        record.write_text(whole.replace('"shared"', '"stored"'))
        bob.click("#verify")
        bob.waits("#verify-fault", "record")
        record.write_text(whole)
        alice.click("#services button")
        until(lambda: not alice.sees("#services a"), "the service does not end")
        self.assertEqual(here.alice.tasks("serve")[0]["code"], 0)

    def test_b_service_looks_up_keys_and_answers_questions(self):
        bob = here.tabs[1]
        own = here.alice.home / "tacit-ui"
        publish = [TACIT, "tags", "publish", "--input", here.home / "alice.csv", "--key", "email:email", "--identity", own / "keys/tacit.key",
                   "--out", here.home / "alice.tags", "--private", here.home / "alice.oprf"]
        self.assertEqual(subprocess.run(publish, capture_output=True).returncode, 0)
        address = policy("answers", f"""
rows_in_total = 3000
aggregate_runs = 5
[jobs.known]
kind = "lookup"
allow = ["bob"]
private = "{here.home}/alice.oprf"
max_queries = 1000
queries_in_total = 5000
runs_a_day = 9
[jobs.spent]
kind = "question"
source = "customers"
allow = ["bob"]
columns = ["email:join", "amount:filter", "amount:aggregate", "city:filter", "city:group"]
result = ["peer"]
security = "semi-honest"
max_peer_keys = 1000
runs_a_day = 3
[jobs.spent.questions.by_city]
sql = \"\"\"
SELECT a.city, COUNT(*) AS buyers, SUM(CLIP(a.amount, 0, 500)) AS spent
FROM ours a JOIN theirs b ON a."email:email" = b."Mail:email"
WHERE a.amount >= :least AND a.city IN ('Bonn', 'Köln')
GROUP BY a.city
HAVING COUNT(*) >= 10
\"\"\"
parameters.least = {{ type = "integer", least = 0, most = 1000 }}
""")
        code, said = here.alice.post("/api/start", {"kind": "serve", "policy": str(here.home / "answers.toml")})
        self.assertEqual(code, 200, said)
        bob.go(here.bob, "partner")
        bob.click("#partners input[value=alice]")
        bob.fill(way="connect", address=address)
        bob.turn("service")
        bob.click("#jobs")
        bob.waits("#jobs-told", "known")
        # Single keys, of which the tag file has one; a file that is no tag file is refused before anything is sent.
        bob.click("#jobs-told input[value=known]")
        self.assertTrue(bob.fits())
        bob.fill(tags=str(here.home / "alice.csv"), values=" USER250@example.com \nnobody@example.com\n")
        bob.click("#request-form [type=submit]")
        bob.waits("#jobs-fault", "alice.csv")
        bob.fill(tags=str(here.home / "alice.tags"))
        self.assertFalse(bob.sees("#jobs-fault"))
        bob.click("#request-form [type=submit]")
        bob.waits("#offer-told", "300")
        # Terms are of what was asked, and go when it changes.
        bob.fill(values="USER250@example.com\nnobody@example.com")
        self.assertFalse(bob.sees("#offer"))
        bob.click("#request-form [type=submit]")
        bob.waits("#offer-told", "300")
        bob.click("#accept-offer")
        bob.waits("#headline", "1 key is published")
        bob.waits("#matched-by", "USER250@example.com: published")
        bob.waits("#matched-by", "nobody@example.com: not published")
        # All rows of the file.
        bob.turn("service")
        bob.fill(values="")
        bob.click("#request-form [type=submit]")
        bob.waits("#offer-told", "300")
        bob.click("#accept-offer")
        bob.waits("#headline", "100 keys are published")
        bob.waits("#rows-table", "n210")
        # A question of the service's own, with a value.
        bob.turn("service")
        bob.click("#jobs-told input[value=spent]")
        self.assertIn(":least", bob.run("document.querySelector('#service-sql').value"))
        self.assertTrue(bob.run("document.querySelector('#service-sql').readOnly"))
        self.assertTrue(bob.fits())
        bob.run("document.querySelector('#parameter-least').required = false")
        bob.click("#request-form [type=submit]")
        bob.waits("#jobs-fault", "least")
        bob.fill(parameter_least="250")
        bob.click("#request-form [type=submit]")
        bob.waits("#offer-told", "amount >= 250")
        bob.click("#accept-offer")
        bob.waits("#headline", "The answer has 2 rows")
        answer = (Path(here.bob.tasks("request")[0]["folder"]) / "result.csv").read_text().splitlines()
        self.assertEqual(sorted(answer[1:]), [f"Bonn,25,{sum(range(250, 300, 2))}", f"Köln,25,{sum(range(251, 300, 2))}"])
        self.assertIn("by_city, least = 250", bob.run("document.querySelector('#run-summary').textContent"))
        bob.turn("history")
        bob.waits("#history-table", "The answer has 2 rows")
        self.assertEqual(bob.faults(), [])
        for task in here.alice.tasks("serve"):
            here.alice.post("/api/cancel", {"id": task["id"]})
