package assay

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/pipeline"
	"assay/scrapers"
)

// PublishedPage is what the last release says of one page.
type PublishedPage struct {
	URL    string           `json:"url"`
	Claims []PublishedClaim `json:"claims"`
}

// PublishedClaim is a claim as it was released.
type PublishedClaim struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Verdict string `json:"verdict"` // the source's slug, or what it printed
}

// SourceRun is the last time that a source was released.
type SourceRun struct {
	At   time.Time `json:"at"`
	Good time.Time `json:"good,omitzero"` // the last time at which the run had asked the source, and it answered
	Note string    `json:"note,omitzero"` // why the last run that asked it was not good for it
}

// A Change is a claim that is not what the last release says.
type Change struct {
	URL string `json:"url"`
	ID  string `json:"id"`           // of the claim that is there now, "" if none is
	Was string `json:"was,omitzero"` // id of the claim that it replaced
	Old string `json:"old,omitzero"` // verdict; of a replaced claim its text
	New string `json:"new,omitzero"` // likewise
}

// Fates of a page, against the last release.
const (
	fateNew       = "new"
	fateChanged   = "changed"
	fateGone      = "gone"
	fateLeft      = "left" // excluded for another reason
	fateFailed    = "failed"
	fateUnchanged = "unchanged"
)

// A fate is what became of one page.
type fate struct {
	source, url string
	kind        string // "" for a page that is not of the corpus and was not
	was         bool   // of the last release
	now         []PublishedClaim
	verdicts    []Change
	texts       []Change
	reason      string // of a failure or an exclusion
	standing    fetch.Standing
}

// A ledger compares what a walk meets with the last release.
type ledger struct {
	w        *Workspace
	standing bool // with what the hosts said the last time

	mu    sync.Mutex
	fates map[string]fate // by key of Published
}

func (w *Workspace) newLedger(standing bool) *ledger {
	return &ledger{w: w, standing: standing, fates: map[string]fate{}}
}

// page is a visitor of pages.
func (l *ledger) page(source string, ref corpus.Ref, claims []corpus.Claim, err error) error {
	key := kv.Key(source, shortened(ref.URL))
	before, was, readErr := l.w.tables.Published.Get(key)
	var corrupt *kv.CorruptError
	if readErr != nil && !errors.As(readErr, &corrupt) {
		return fmt.Errorf("read what was released of %s: %w", ref.URL, readErr)
	}
	f := fate{source: source, url: ref.URL, was: was}
	if l.standing {
		if f.standing, readErr = l.w.fetch.Standing(ref.URL); readErr != nil {
			return readErr
		}
	}
	var item *pipeline.ItemError
	switch {
	case err == nil:
		f.compare(before.Claims, claims)
	case errors.As(err, &item) && item.Excl != nil:
		f.reason = item.Excl.Reason
		if was {
			f.kind = fateLeft
		}
		if was && f.reason == fetch.ReasonGone {
			f.kind = fateGone
		}
	case errors.As(err, &item):
		f.kind, f.reason = fateFailed, item.Fail.Class+": "+item.Fail.Reason
	default:
		f.reason = err.Error() // it may not run now, and is not released
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fates[key] = f
	return nil
}

// compare tells the claims of a page from those that were released.
func (f *fate) compare(before []PublishedClaim, claims []corpus.Claim) {
	old := map[string]PublishedClaim{}
	for _, c := range before {
		old[c.ID] = c
	}
	still := map[string]bool{}
	for _, c := range claims {
		now := PublishedClaim{ID: c.ID, Text: c.Text, Verdict: cmp.Or(c.Rating, c.RatingRaw)}
		f.now = append(f.now, now)
		was, ok := old[c.ID]
		still[c.ID] = true
		if ok && was.Verdict != now.Verdict {
			f.verdicts = append(f.verdicts, Change{URL: f.url, ID: c.ID, Old: was.Verdict, New: now.Verdict})
		}
	}
	for _, c := range claims {
		if _, ok := old[c.ID]; ok {
			continue
		}
		// A page that was edited twice since names the wording between.
		change := Change{URL: f.url, ID: c.ID, New: c.Text}
		if was, ok := old[c.Supersedes]; ok && !still[was.ID] {
			change.Was, change.Old = was.ID, was.Text
			still[was.ID] = true
		}
		f.texts = append(f.texts, change)
	}
	for _, c := range before {
		if !still[c.ID] {
			f.texts = append(f.texts, Change{URL: f.url, Was: c.ID, Old: c.Text})
		}
	}
	switch {
	case len(before) == 0 && len(claims) == 0:
	case len(before) == 0:
		f.kind, f.texts = fateNew, nil
	case len(f.verdicts)+len(f.texts) > 0:
		f.kind = fateChanged
	default:
		f.kind = fateUnchanged
	}
}

// publish notes that what the ledger met was released, and clears what held its sources back. Asked names the
// sources that the run asked, with why that was not good for one, or "". What a run says that asked nothing of
// a source is about the store alone.
func (l *ledger) publish(at time.Time, asked map[string]string) error {
	var ops []kv.Op
	for _, key := range slices.Sorted(maps.Keys(l.fates)) {
		f := l.fates[key]
		switch {
		case f.kind == fateUnchanged || len(f.now) == 0 && !f.was:
			continue
		case len(f.now) == 0:
			ops = append(ops, l.w.tables.Published.DeleteOp(key))
			continue
		}
		op, err := l.w.tables.Published.PutOp(key, PublishedPage{URL: f.url, Claims: f.now})
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	for _, s := range l.w.Config.Recipe.Sites {
		source := l.w.Config.Recipe.source(s)
		run, _, err := l.w.tables.Runs.Get(source)
		var corrupt *kv.CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			return err
		}
		run.At = at.UTC()
		if note, ok := asked[source]; ok {
			if run.Note = note; note == "" {
				run.Good = run.At
			}
		}
		op, err := l.w.tables.Runs.PutOp(source, run)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	for batch := range slices.Chunk(ops, 1000) {
		if err := l.w.store.Write(batch...); err != nil {
			return fmt.Errorf("note what was released: %w", err)
		}
	}
	return nil
}

// asked names the sources that were asked since a run began, with why one did not answer as it should, or "".
// A source is asked by its listings, by all that it starts with; where the recipe reads no listings, by any
// request to its hosts. Before is what had been sent when the run began.
func (w *Workspace) asked(began time.Time, before fetch.Stats) (map[string]string, error) {
	out := map[string]string{}
	if w.replays {
		return out, nil
	}
	now := w.fetch.Stats()
	sent := func(hosts ...string) bool {
		for host, s := range now.ByHost {
			if s.Requests > before.ByHost[host].Requests && slices.ContainsFunc(hosts, func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) }) {
				return true
			}
		}
		return false
	}
	for _, sr := range w.Config.Recipe.Sites {
		site, err := scrapers.SiteNamed(sr.Name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(sr.Base, "/")
		all, note := sent(siteHosts(site, base)...), ""
		if slices.Contains(w.Config.Recipe.Discover, DiscoverListing) {
			starts := site.Start(base, w.Config.Recipe.Speakers)
			all = len(starts) > 0
			for _, start := range starts {
				s, err := w.fetch.Standing(start)
				switch {
				case err != nil:
					return nil, err
				case s.Asked.IsZero(): // it is asked by other means than its address alone
					all = all && sent(corpus.Host(start))
				case s.Asked.Before(began):
					all = false
				case s.Latest != fetch.ClassOK:
					note = cmp.Or(note, start+": "+cmp.Or(s.Reason, string(s.Latest)))
				}
			}
		}
		if all {
			out[w.Config.Recipe.source(sr)] = note
		}
	}
	return out, nil
}

// A Stop is a guard rail that keeps a source from being released.
type Stop struct {
	Source   string   `json:"source"`
	What     string   `json:"what"`  // changed, gone, failed; drift or listing, see driftStops
	Count    int      `json:"count"` // of Of, the pages that were asked for since the last release
	Of       int      `json:"of"`
	Limit    float64  `json:"limit"` // of their share
	Detail   string   `json:"detail,omitzero"`
	Examples []string `json:"examples,omitzero"`
	Accepted bool     `json:"accepted,omitzero"` // by the person who ran the refresh
}

func (s Stop) String() string {
	text := fmt.Sprintf("%s: %s", s.Source, s.Detail)
	if s.Of > 0 {
		text = fmt.Sprintf("%s: %d of the %d pages asked for since its last release %s (%.0f %%; publish.%s allows %.0f %%)", s.Source, s.Count, s.Of,
			map[string]string{fateChanged: "say something else now", fateGone: "are gone", fateFailed: "cannot be read"}[s.What], 100*float64(s.Count)/float64(s.Of), s.What, 100*s.Limit)
	}
	if len(s.Examples) > 0 {
		text += ", e.g. " + strings.Join(s.Examples, ", ")
	}
	return text
}

// StopError ends a run whose release a guard rail stopped.
type StopError struct{ Stops []Stop }

func (e *StopError) Error() string {
	var b strings.Builder
	b.WriteString("nothing was released:")
	var sources []string
	for _, s := range e.Stops {
		fmt.Fprintf(&b, "\n  %s", s)
		if flag := "--accept " + s.Source; !slices.Contains(sources, flag) {
			sources = append(sources, flag)
		}
	}
	fmt.Fprintf(&b, "\nThe last release stands, and what was retrieved is kept. Look at these pages, with assay show ADDRESS too. If the source really is like this now: assay refresh %s\nIf not, wait for it to come back, or mend its scraper; the next refresh looks again.", strings.Join(sources, " "))
	return b.String()
}

// held is a *StopError while a source waits for a person.
func (w *Workspace) held() error {
	var stops []Stop
	for entry, err := range w.tables.Holds.Scan("", "") {
		if err != nil {
			return fmt.Errorf("read what is held back: %w", err)
		}
		stops = append(stops, entry.Value)
	}
	if len(stops) > 0 {
		return &StopError{Stops: stops}
	}
	return nil
}

// hold replaces what is held back.
func (w *Workspace) hold(stops []Stop) error {
	var ops []kv.Op
	for key, err := range w.tables.Holds.Keys("", "") {
		if err != nil {
			return fmt.Errorf("read what is held back: %w", err)
		}
		ops = append(ops, w.tables.Holds.DeleteOp(key))
	}
	for _, s := range stops {
		if s.Accepted {
			continue
		}
		op, err := w.tables.Holds.PutOp(kv.Key(s.Source, s.What), s)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 {
		return nil
	}
	return w.store.Write(ops...)
}

// stops applies the thresholds to every source that was released before. A page counts if it was asked
// for since: of a source whose pages all vanished only those that were due are known to have.
func (l *ledger) stops(p Publish) ([]Stop, error) {
	type count struct {
		of       int
		affected map[string][]string
	}
	counts := map[string]*count{}
	released := map[string]time.Time{}
	for _, key := range slices.Sorted(maps.Keys(l.fates)) {
		f := l.fates[key]
		if !f.was {
			continue
		}
		if counts[f.source] == nil {
			run, _, err := l.w.tables.Runs.Get(f.source)
			if err != nil {
				return nil, err
			}
			counts[f.source], released[f.source] = &count{affected: map[string][]string{}}, run.At
		}
		c := counts[f.source]
		what := map[string]string{fateChanged: fateChanged, fateLeft: fateChanged, fateGone: fateGone, fateFailed: fateFailed}[f.kind]
		switch {
		case what != "":
		case f.standing.Leaving():
			what = fateGone
		case f.standing.Kept():
			what = fateFailed
		case f.standing.Asked.After(released[f.source]):
		default:
			continue
		}
		c.of++
		if what != "" {
			c.affected[what] = append(c.affected[what], f.url)
		}
	}
	var out []Stop
	for _, source := range sortedKeys(counts) {
		c := counts[source]
		for _, rail := range []struct {
			what  string
			limit float64
		}{{fateChanged, p.Changed}, {fateGone, p.Gone}, {fateFailed, p.Failed}} {
			list := c.affected[rail.what]
			if n := len(list); n >= p.Least && float64(n) > rail.limit*float64(c.of) {
				out = append(out, Stop{Source: source, What: rail.what, Count: n, Of: c.of, Limit: rail.limit, Examples: list[:min(n, 3)]})
			}
		}
	}
	return out, nil
}
