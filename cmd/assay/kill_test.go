package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A book holds what servers were asked for, by the run that asked, and kills a run at a moment.
type book struct {
	mu     sync.Mutex
	asked  map[string][]int       // request => the runs that made it, in order
	flying map[string]map[int]int // kind of server => run => requests in flight
	most   map[string]int         // kind of server => requests of one run in flight at most

	victim *exec.Cmd
	moment string // kind of server, and whether its request has just come or is just answered
	left   int    // such moments until the kill
}

func newBook() *book {
	return &book{asked: map[string][]int{}, flying: map[string]map[int]int{"web": {}, "model": {}, "search": {}}, most: map[string]int{}}
}

// Runs tell themselves apart to the web by their contact and to the model by its address.
func (b *book) env(run int, model string) []string {
	return []string{fmt.Sprintf("ASSAY_RUNTIME_CONTACT=run%d@check.example", run), fmt.Sprintf("ASSAY_RUNTIME_ENDPOINTS_STUB_BASE_URL=%s/run%d/v1", model, run)}
}

// over enters every request that a server gets.
func (b *book) over(t *testing.T, kind string, h http.Handler) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the run is dead; what it wanted is not known
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, digits, _ := strings.Cut(r.UserAgent()+r.URL.Path, "run")
		run, err := strconv.Atoi(digits[:strings.IndexAny(digits+"@", "@/")])
		if err != nil {
			t.Errorf("a request of no run: %s by %s", r.URL, r.UserAgent())
		}
		name := kind + " " + r.Host + r.URL.RequestURI()
		if kind == "model" {
			name = fmt.Sprintf("model %x", sha256.Sum256(body))
		}
		b.enter(kind, name, run)
		b.reach(kind + " asked")
		h.ServeHTTP(rw, r)
		b.leave(kind, run)
		b.reach(kind + " answered")
	}))
	t.Cleanup(s.Close)
	return s
}

func (b *book) enter(kind, name string, run int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[name] = append(b.asked[name], run)
	b.flying[kind][run]++
	b.most[kind] = max(b.most[kind], b.flying[kind][run])
}

func (b *book) leave(kind string, run int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying[kind][run]--
}

// reach kills the victim if this is its moment.
func (b *book) reach(moment string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.victim == nil || b.moment != moment {
		return
	}
	if b.left--; b.left <= 0 {
		b.victim.Process.Signal(syscall.SIGKILL)
		b.victim = nil
	}
}

func (b *book) aim(victim *exec.Cmd, moment string, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.victim, b.moment, b.left = victim, moment, left
}

// distinct counts the different requests to a kind of server.
func (b *book) distinct(kind string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for name := range b.asked {
		if strings.HasPrefix(name, kind) {
			n++
		}
	}
	return n
}

// check fails if a run made a request twice, or if more requests of a run were made again by later ones
// than it can have had in flight.
func (b *book) check(t *testing.T, limit map[string]int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	lost := map[string]map[int]int{"web": {}, "model": {}, "search": {}} // kind => run => requests that it made in vain
	for name, runs := range b.asked {
		kind, _, _ := strings.Cut(name, " ")
		for i, run := range runs[:len(runs)-1] {
			if run == runs[i+1] {
				t.Errorf("run %d asked twice for %s", run, name)
			}
			lost[kind][run]++
		}
	}
	for kind, runs := range lost {
		for run, n := range runs {
			if n > limit[kind] {
				t.Errorf("%d requests of run %d to the %s were made again, and %d can be in flight", n, run, kind, limit[kind])
			}
		}
		if b.most[kind] > limit[kind] {
			t.Errorf("%d requests to the %s in flight, the limit is %d", b.most[kind], kind, limit[kind])
		}
		t.Logf("%s: requests made in vain by run: %v", kind, runs)
	}
}

// killLab is a workspace of n fact-checks on a web and of two posts on each, which a stub labels: with
// its listings, plans and answers without evidence more than 6 n items, of which 4 n ask a server.
func killLab(t *testing.T, n int) (*lab, *book, string) {
	t.Helper()
	b, w := newBook(), newWeb(t)
	list := wells(n)
	const perListing = 20
	for i := range list {
		list[i].Claim = fmt.Sprintf("Village number %d of %s has %d wells.", i, places[i%len(places)], i+2)
		w.on(list[i].address("check.example"), shows(list[i].page()))
	}
	for from := 0; from < n; from += perListing {
		next := ""
		if from+perListing < n {
			next = fmt.Sprintf("?page=%d&category=truth-o-meter", from/perListing+2)
		}
		page := shows(listing(next, hrefs(list[from:min(from+perListing, n)]...)...))
		w.on(fmt.Sprintf("check.example/factchecks/list/?page=%d&category=truth-o-meter", from/perListing+1), page)
	}
	var posts []post
	for i := range n {
		for k, place := range []string{"market", "church"} {
			posts = append(posts, post{
				id: fmt.Sprintf("w%03d%d", i, k), title: fmt.Sprintf("Wells of village number %d of %s", i, places[i%len(places)]),
				text: fmt.Sprintf("I counted the wells of village number %d of %s from the %s on Sunday, and there were %d of them.", i, places[i%len(places)], place, i+2),
			})
		}
	}
	l := newSite(t, w, nil, setup{
		"recipe.models":   "{annotate: {endpoint: stub, model: stub-1, temperature: 0, max_tokens: 200}, keywords: {endpoint: stub, model: stub-1, max_tokens: 200}, zero: {endpoint: stub, model: stub-1, max_tokens: 200}}",
		"recipe.planner":  "{variants: 0, per_variant: 2, keep: 2, follow_links: false}",
		"recipe.label":    "{quote_check: false}",
		"runtime.resolve": fmt.Sprintf("{check.example: %q}", b.over(t, "web", w).Listener.Addr().String()),
	})
	l.model.set(func(m *modelStub) {
		m.reply = func(body string) (int, string, string) {
			if strings.Contains(body, "Sunday") {
				return http.StatusOK, `{"quote":"","reason":"says nothing of the kind","answer":"unrelated"}`, "stop"
			}
			return http.StatusOK, `{"answer":"unknown"}`, "stop"
		}
	})
	model := b.over(t, "model", l.model).URL
	l.env = b.env(0, model)
	l.posts(posts...)
	return l, b, model
}

// A build that is killed at any moment, as often as it pleases, goes on without help: nothing that was
// finished is done again, each kill costs at most what was in flight, and the release is that of a
// build that nobody disturbed.
func TestKillAtRandomMoments(t *testing.T) {
	t.Parallel()
	kills, n := 40, 100
	if testing.Short() {
		kills, n = 5, 20
	}
	limit := map[string]int{"web": 1, "model": 4}
	calm, calmBook, _ := killLab(t, n)
	first := calm.build(0)
	want := sums(t, first.Release.Dir)
	calls := calmBook.distinct("model")
	if calls != 3*n || first.Release.Counts["pairs"] != 2*n || calmBook.distinct("web") < n {
		t.Fatalf("%d calls, %d pairs, %d pages", calls, first.Release.Counts["pairs"], calmBook.distinct("web"))
	}
	calmBook.check(t, limit)

	rng := rand.New(rand.NewPCG(7, 7))
	moments := []string{"model asked", "model answered", "web asked", "web answered", "clock"}
	killed := map[string]int{}
	l, b, model := killLab(t, n)
	var done map[string]string // items that ls showed as done, and how they looked
	run := 0
	finish := func() {
		l.env = b.env(run, model)
		r := l.build(0)
		if got := sums(t, r.Release.Dir); got != want {
			t.Errorf("release after kills:\n%s\nundisturbed:\n%s", got, want)
		}
		b.check(t, limit)
		if got := b.distinct("model"); got != calls {
			t.Errorf("%d different calls, want %d", got, calls)
		}
		if again := l.build(0); again.LLM.Calls != 0 || again.Fetch.Requests != 0 {
			t.Errorf("the build after it made %d calls and %d requests", again.LLM.Calls, again.Fetch.Requests)
		}
	}
	for k := 0; k < kills; {
		run++
		l.env = b.env(run, model)
		cmd := l.command("build")
		moment := moments[rng.IntN(len(moments))]
		if b.distinct("model") == calls {
			moment = "clock" // nothing is left but to write the release
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var timer *time.Timer
		if moment == "clock" {
			timer = time.AfterFunc(time.Duration(rng.IntN(600))*time.Millisecond, func() { cmd.Process.Signal(syscall.SIGKILL) })
		} else {
			b.aim(cmd, moment, 1+rng.IntN(20))
		}
		err := cmd.Wait()
		if timer != nil {
			timer.Stop()
		}
		b.aim(nil, "", 0)
		if err == nil { // it was done before its moment came
			finish()
			l, b, model = killLab(t, n)
			run, done = 0, nil
			continue
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("run %d ended by itself: %v", run, err)
		}
		k++
		killed[moment]++
		if k%4 == 0 { // the others are looked after by the next build alone
			now := doneItems(l)
			for item, was := range done {
				if now[item] != was {
					t.Errorf("%s was %q and is %q after a kill", item, was, now[item])
				}
			}
			done = now
		}
	}
	run++
	finish()
	t.Logf("%d kills: %v", kills, killed)
}

// doneItems lists the stored results of a workspace.
func doneItems(l *lab) map[string]string {
	out := map[string]string{}
	for _, kind := range []string{"parse", "plan", "zero", "label"} {
		for _, i := range l.ls(kind, "--state", "done") {
			out[i.Stage+" "+i.Key] = i.Label + " " + i.Summary
		}
	}
	return out
}
